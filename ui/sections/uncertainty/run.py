"""Uncertainty in the whole run: how to get samples, what they say, and which estimator to believe."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.text.display import count
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.conditions import ADDED, WITHOUT
from core.uncertainty.context import ContextTest
from core.uncertainty.definitions import FAILS, PASSES, UNTOLD
from core.uncertainty.estimators import ESTIMATORS
from core.uncertainty.grounding import quadrant_counts
from core.uncertainty.quality import told_apart
from ui import cached, headlines, router, show, sources, step_form
from ui.plain import plain

_FEWEST = 3  # questions that make a figure
_GUESSING = 0.5
# What a model says of answers and samples, by an estimator that reads it: how a run gets it.
_FROM_MODELS = {
    "semantic_entropy_entailment": "Semantic entropy and SumEigen by entailment, and contradictions: not "
    "measured. Under *Sample again*, set *Entailment by* to the language model or to an NLI "
    "cross-encoder; on the command line, `--entailment`.",
    "p_true": "P(True): not measured. Set *Entailment by* to the language model, with one that can score a "
    "given reply: a Hugging Face model in this process (`--llm embedded`).",
    "verbalised": "Stated confidence: not measured. *Confidence* has the step that asks for it; on the "
    "command line, `--steps confidence`.",
}


def first() -> None:
    """Draw what is to be decided before a run has samples."""
    text = (
        "**{questions}** to ask again, each several times at random temperatures, with the same passages. "
        "The result is a new run; this one stays as it is."
    )
    step_form.first("uncertainty", "Not sampled", text, "Sample answers")
    st.caption("If you already have sampled answers, import them with the run.")
    sources.link(router.DATA, "Upload a file", "upload", door="Upload")


def again() -> None:
    """Draw the form for other samples of the same questions."""
    with step_form.folded("Sample again with other options", "casino"):
        step_form.on_loaded_run("uncertainty", "Sample again")


def questions() -> None:
    """Draw how spread the samples of each question are against how far the answer agrees with them."""
    q = cached.diagnosis()["uncertainty"].queries
    n = int((q["entropy"].notna() & q["agreement"].notna()).sum())
    if n < _FEWEST:
        st.caption(f"{count(n, 'question')} with both numbers: too few for a figure.")
        return
    st.markdown(
        "Top left: samples and answer agree. Bottom left: the samples agree on something else, or the answer "
        "is much longer than they are. Right: the samples differ."
    )
    show.chart("uncertainty", "entropy_agreement")


def estimators() -> None:
    """Draw which estimator finds incorrect answers, or say why that is not known."""
    found = cached.diagnosis()["uncertainty"]
    if found.not_judged is not None:
        st.caption(plain(found.not_judged))
        return
    board = found.leaderboard
    n, wrong = int(board["n"].max()), int(board["n_wrong"].max())
    judged = f"{count(n, 'labelled answer')}, {wrong:,} of them incorrect"
    if not _separates(board):
        st.markdown(f"**No estimator demonstrably separates incorrect from correct answers** on {judged}.")
        return
    st.markdown(
        f"Judged on {judged}. An estimator is worth its calls only if it beats the trivial baselines, which "
        "cost none."
    )
    show.chart("uncertainty", "estimator_leaderboard")
    st.caption(
        f"The best of {len(board)} looks better than it is because it was selected on these answers: rely on "
        "the intervals."
    )


def _separates(board: pd.DataFrame) -> bool:
    """Whether the interval of any estimator's AUROC lies above guessing."""
    return bool((board["auroc_low"] > _GUESSING).any())


def more() -> None:
    """Draw what the page does not open with: each part under its own title, or a line on how to get it."""
    found = cached.diagnosis()["uncertainty"]
    _grounding(found.queries["quadrant"])
    if found.embedded:
        st.markdown("**Semantic entropy vs embedding variance**")
        show.chart("uncertainty", "entropy_variance")
    if found.not_judged is None:
        _judged(found)
    _context(found.context)
    st.markdown("**Methods**")
    st.caption(found.rule)
    if not found.embedded:
        st.caption(
            "*Measure embeddings too*, among the settings, adds MC dropout confidence and the estimators "
            "by embedding."
        )
    for name, how in _FROM_MODELS.items():
        if name not in found.scores:
            st.caption(how)
    show.export("samples-csv", "Download samples (CSV)")


def _grounding(quadrants: pd.Series) -> None:
    """Draw whether answers that stay the same are grounded, or say what is missing for it."""
    st.markdown("**Stable and grounded?**")
    counts = quadrant_counts(quadrants)
    if not counts["n"].sum():
        st.caption(
            "No question has both samples and verified claims: run the claims step on this run to see which "
            "stable answers lack evidence."
        )
        return
    columns = {
        "quadrant": show.wide("Answers", "medium"),
        "n": show.numeric("Number", "localized"),
        "expected": show.numeric("By chance", "%.1f", "If agreement and grounding were unrelated"),
        "meaning": show.wide("Meaning"),
    }
    meaning = [headlines.meaning("uncertainty", name) for name in counts["quadrant"]]
    st.markdown(f"{count(int(counts['of'].max()), 'question')} with samples and verified claims.")
    show.table(counts.assign(meaning=meaning), "Answers by stability and grounding", columns)
    table = counts["n"].to_numpy().reshape(2, 2)
    if table.any(axis=0).all() and table.any(axis=1).all():  # else there is nothing to compare
        show.chart("uncertainty", "stability_grounding")


def _judged(found: UncertaintyAnalysis) -> None:
    """Draw what rejecting by an estimator gains, which can be told apart, and the measures of all."""
    if _separates(found.leaderboard):
        st.markdown("**Error rate of the answers that an estimator is most certain of**")
        show.chart("uncertainty", "risk_coverage")
        st.caption("A good estimator keeps it below the dotted line.")
    pairs = found.comparisons
    apart = int(pairs["distinguishable"].sum())
    board = cached.diagnosis()["uncertainty"].leaderboard
    st.markdown(told_apart(apart, len(pairs), int(board["n"].max()), int(board["n_wrong"].max())))
    if pairs["p_value"].isna().all():
        return
    titles = {name: one.title for name, one in ESTIMATORS.items()}
    frame = pairs.assign(first=pairs["first"].map(titles), second=pairs["second"].map(titles))
    columns = {
        "first": show.wide("Better", "medium"),
        "second": show.wide("Than", "medium"),
        "difference": show.numeric("Difference of AUROC"),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
        "p_value": show.numeric("p", "%.3f", "Adjusted for all pairs (Holm)"),
        "n": show.numeric("n", "localized", "Answers that both judge"),
        "distinguishable": "Told apart",
    }
    show.table(frame, "Estimators compared in pairs", columns)
    columns = {
        "title": show.wide("Estimator", "medium"),
        "auroc": show.numeric("AUROC", about="Of finding incorrect answers; guessing gives 0.5"),
        "auroc_low": show.numeric("95 % from"),
        "auroc_high": show.numeric("to"),
        "auprc": show.numeric("AUPRC", about="Guessing gives the share of incorrect answers"),
        "prr": show.numeric("PRR", about="Share of the possible gain from rejecting; guessing gives 0"),
        "aurc": show.numeric("AURC", about="Mean error rate over all coverages; lower is better"),
        "e_aurc": show.numeric("E-AURC", about="Its excess over a perfect ranking; lower is better"),
        "n": show.numeric("n", "localized", "Answers with a label and a value"),
        "is_baseline": "Trivial",
        "meaning": show.wide("Meaning"),
    }
    board = found.leaderboard
    frame = board.assign(meaning=[headlines.meaning("uncertainty", name) for name in board["name"]])
    st.markdown(f"**All estimators ({len(frame)})**")
    show.table(frame, "Estimators and how well they find incorrect answers", columns)


_CHANGED = {
    WITHOUT: ("Supporting passages left out", "Uncertainty should rise: the evidence is missing."),
    ADDED: (
        "Unrelated passages added",
        "Uncertainty should not fall: these passages say nothing about the question.",
    ),
}
_MOVES = ["n_rising", "n_falling", "n_same"]
_SIGNS = {PASSES: "✓", FAILS: "✗", UNTOLD: "?"}


def _context(found: ContextTest) -> None:
    """Draw whether the estimators move the right way when the passages change, or say how to find out."""
    st.markdown("**Context test**")
    if not found.query_ids:
        st.caption(
            "Not run. It asks some questions again without their supporting passages, and with unrelated "
            "ones added: choose how many under *Sample again*, or use `--context-questions 30`."
        )
        return
    passed_over = "; ".join(
        f"{headlines.reason(name, 'uncertainty').title.lower()}: {n:,}"
        for name, n in found.passed_over.items()
    )
    st.markdown(
        f"**{count(len(found.query_ids), 'question')}** asked again with other passages, with samples drawn "
        "as before. " + (f"Skipped: {plain(passed_over)}." if passed_over else "")
    )
    for condition, (title, about) in _CHANGED.items():
        st.markdown(f"**{title}.** {about}")
        _changes(found.compared, condition)
        _not_measured(found, condition)
    st.caption(headlines.meaning("uncertainty", "context_test"))
    st.markdown(f"Other estimators ({found.others['name'].nunique()})")
    for condition, (title, _) in _CHANGED.items():
        st.markdown(f"**{title}**")
        _changes(found.others, condition)
    show.export("context-csv", "Download context test (CSV)")


def _changes(tests: pd.DataFrame, condition: str) -> None:
    """Draw how each estimator moves under one condition."""
    rows = tests[tests["condition"] == condition]
    frame = rows.assign(
        outcome=[f"{_SIGNS[outcome]} {outcome}" for outcome in rows["outcome"]],
        moved=[f"{up} / {down} / {same}" for up, down, same in rows[_MOVES].itertuples(index=False)],
    )
    columns = {
        "title": show.wide("Estimator", "medium"),
        "outcome": "Outcome",
        "mean": show.numeric(
            "Mean change", about="Of uncertainty, in the estimator's own unit; chance gives 0"
        ),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
        "p_value": show.numeric("p", "%.3f", "Adjusted for the estimators in this table (Holm)"),
        "moved": show.wide("Up / down / same", "small", "Questions in which uncertainty does"),
        "n": show.numeric("n", "localized", "Questions with a value before and after"),
        "needed": show.numeric("Needed", "localized", "About how many questions would tell, tested alone"),
        "is_baseline": "Trivial",
    }
    show.table(frame, f"How estimators move: {_CHANGED[condition][0].lower()}", columns)


def _not_measured(found: ContextTest, condition: str) -> None:
    """Say in how many questions nothing could be compared."""
    declined, lost = found.declined(condition), found.lost(condition)
    said = []
    if declined:
        said.append(f"the model declines in every sample of {count(declined, 'question')}")
    if lost:
        said.append(f"{count(lost, 'question')} could not be asked again (see the run's notes)")
    if said:
        sentence = "; ".join(said)
        st.caption(f"{sentence[0].upper()}{sentence[1:]}: no estimator has a value there.")
