"""Uncertainty in the whole run: how to get samples, what they say, and which estimator to believe."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.text.display import count
from core.uncertainty.conditions import ADDED, WITHOUT
from core.uncertainty.context import ContextTest
from core.uncertainty.definitions import FAILS, PASSES, UNTOLD
from core.uncertainty.estimators import ESTIMATORS
from core.uncertainty.grounding import quadrant_counts
from core.uncertainty.quality import told_apart
from ui import cached, headlines, router, show, sources, step_form
from ui.plain import plain
from ui.state import session


def first() -> None:
    """Draw what is to be decided before a run has samples."""
    run = session().run
    assert run is not None, "the form is for the run that is loaded"
    with st.container(border=True):
        st.subheader("Not sampled", anchor=False)
        st.markdown(
            f"**{count(len(run.queries), 'question')}** to ask again, each several times and at random, with "
            "the passages that its answer was given. The result is a new run beside this one; the answers "
            "stay as they are."
        )
        step_form.on_loaded_run("uncertainty", "Sample answers")
        st.caption("Sampled answers that you have already can be imported with the answers instead.")
        sources.link(router.DATA, "Upload a file", "upload", door="Upload")


def again() -> None:
    """Draw the form for other samples of the same questions."""
    with step_form.folded("Sample again with other options", "casino"):
        step_form.on_loaded_run("uncertainty", "Sample again")


def questions() -> None:
    """Draw how spread the samples of each question are against how far the answer agrees with them."""
    found = cached.diagnosis()["uncertainty"]
    st.markdown(
        "Top left, the samples agree and the answer says what they say. Bottom left, they agree on "
        "something else, or the answer is much longer than they are. To the right, the answer is one of many."
    )
    show.chart("uncertainty", "entropy_agreement")
    st.caption(found.rule)
    if found.embedded:
        st.markdown("**Semantic entropy vs embedding variance**")
        show.chart("uncertainty", "entropy_variance")
    else:
        st.caption("*Measure embeddings too*, among the settings, adds the estimators by embedding.")


def grounding() -> None:
    """Draw whether answers that stay the same are grounded, or say what is missing for it."""
    quadrants = cached.diagnosis()["uncertainty"].queries["quadrant"]
    counts = quadrant_counts(quadrants)
    if not counts["n"].sum():
        st.info(
            "No question has both samples and verified claims: run the claims step on this run to see which "
            "stable answers lack evidence.",
            icon=":material/inbox:",
        )
        return
    columns = {
        "quadrant": show.wide("Answers", "medium"),
        "n": show.numeric("Number", "localized"),
        "expected": show.numeric(
            "By chance", "%.1f", "If agreement and grounding had nothing to do with each other"
        ),
        "meaning": show.wide("Meaning"),
    }
    meaning = [headlines.meaning("uncertainty", name) for name in counts["quadrant"]]
    st.markdown(f"{count(int(counts['of'].max()), 'question')} with samples and verified claims.")
    show.table(counts.assign(meaning=meaning), "Answers by stability and grounding", columns)
    show.chart("uncertainty", "stability_grounding")


def estimators() -> None:
    """Draw which estimator finds incorrect answers, or why that is not known."""
    found = cached.diagnosis()["uncertainty"]
    if found.not_judged is not None:
        st.info(plain(found.not_judged), icon=":material/inbox:")
        return
    board = found.leaderboard
    n = count(int(board["n"].max()), "answer")
    st.markdown(
        f"Judged on {n} with a reference answer, {int(board['n_wrong'].max()):,} of them incorrect. An "
        "estimator is worth its calls only where it beats the trivial baselines, which cost none."
    )
    left, right = st.columns(2)
    with left:
        show.chart("uncertainty", "estimator_leaderboard")
        st.caption(
            f"The best of {len(board)} looks better than it is, being chosen on these answers: go by "
            "the intervals."
        )
    with right:
        show.chart("uncertainty", "risk_coverage")
        st.caption(
            "Give only the answers an estimator is surest of: a good one keeps the error rate below the "
            "dotted line."
        )
    _pairs()
    _table()


def _pairs() -> None:
    """Say which of the compared estimators can be told apart, and list the comparisons."""
    pairs = cached.diagnosis()["uncertainty"].comparisons
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
    with st.expander(f"Pairs compared ({len(frame)})"):
        show.table(frame, "Estimators compared in pairs", columns)


def _table() -> None:
    board = cached.diagnosis()["uncertainty"].leaderboard
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
    frame = board.assign(meaning=[headlines.meaning("uncertainty", name) for name in board["name"]])
    with st.expander(f"All estimators ({len(frame)})"):
        show.table(frame, "Estimators and how well they find incorrect answers", columns)


_CHANGED = {
    WITHOUT: (
        "Supporting passages left out",
        "Uncertainty should rise: what the answer relies on is missing.",
    ),
    ADDED: (
        "Unrelated passages added",
        "Uncertainty should not fall: nothing was learned about the question.",
    ),
}
_MOVES = ["n_rising", "n_falling", "n_same"]
_SIGNS = {PASSES: "✓", FAILS: "✗", UNTOLD: "?"}


def context() -> None:
    """Draw whether the estimators move the right way when the passages are changed, or how to find out."""
    found = cached.diagnosis()["uncertainty"].context
    if not found.query_ids:
        st.info(
            "Not run. It asks some questions again without their supporting passages, and with unrelated "
            "ones added: choose how many under *Sample again*, or use `--context-questions 30`.",
            icon=":material/inbox:",
        )
        return
    passed_over = "; ".join(
        f"{headlines.reason(name).title.lower()}: {n:,}" for name, n in found.passed_over.items()
    )
    st.markdown(
        f"**{count(len(found.query_ids), 'question')}** asked again with other passages, with samples drawn "
        "as before. " + (f"Passed over: {plain(passed_over)}." if passed_over else "")
    )
    for condition, (title, about) in _CHANGED.items():
        st.markdown(f"**{title}.** {about}")
        _changes(found.compared, condition)
        _not_measured(found, condition)
    st.caption(headlines.meaning("uncertainty", "context_test"))
    with st.expander(f"Other estimators ({found.others['name'].nunique()})"):
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
