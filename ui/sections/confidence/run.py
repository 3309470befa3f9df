"""The confidence in the whole run: how to measure its signals, its bands, and whether it is true."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.calibration.in_use import WEIGHTS_SETTING, write_weights
from core.conditions import where
from core.confidence.analysis import ConfidenceAnalysis
from core.confidence.combined import LAMBDAS, RELIABLE_ABOVE
from core.confidence.definitions import LABELS
from core.context_score import GREEN, ORANGE, RED
from core.text.display import count, number, percent, share_interval
from ui import cached, headlines, questions, router, show, sources, step_form
from ui.plain import held, plain
from ui.state import session

FEWEST = 10  # labelled answers, below which a reliability diagram shows chance
CALIBRATES = "conformal"  # the diagnostic of the threshold
BANDS = {one.word: one for one in (GREEN, ORANGE, RED)}
PARTS = {
    "retrieval_uncertainty": ("Retrieval", "Entropy of the retrieval scores: 1 where all score alike."),
    "sampling_uncertainty": ("Sampling", "1 − agreement of the answer with its samples."),
    "conformal_uncertainty": ("Conformal", "1 − confidence of the conformal score."),
}
_RULES = {
    "is_reliable": "Reliable: {}.** Their MC dropout confidence is above {:g}, and conformal prediction "
    "does not flag them.",
    "is_reliable_strict": "By the stricter rule: {}.** Their agreement with the samples is above {:g}, and "
    "conformal prediction does not flag them.",
}
_FROM = {"sampling_uncertainty": "uncertainty", "conformal_uncertainty": "conformal"}


def first() -> None:
    """Draw what is to be decided before the signals of a run are measured."""
    with st.container(border=True):
        st.subheader("Not measured", anchor=False)
        st.markdown(
            "Three signals make the confidence: how similar question and passages are, how many words they "
            "share, and how sure the model says it is. The first two call no model; the third is one call an "
            "answer. The result is a new run beside this one; the answers stay as they are."
        )
        step_form.on_loaded_run("confidence", "Measure signals")
        st.caption(
            "Signals that you have already can be imported with the answers: columns similarity, lexical, "
            "llm_score."
        )
        sources.link(router.DATA, "Upload a file", "upload", door="Upload")


def again() -> None:
    """Draw the form that measures again, with other options."""
    with step_form.folded("Measure again with other options"):
        step_form.on_loaded_run("confidence", "Measure again")


def found() -> ConfidenceAnalysis:
    """Return the analysis of the session's run at the current settings."""
    analysis: ConfidenceAnalysis = cached.diagnosis()["confidence"]
    return analysis


def use(weights: dict[str, float]) -> None:
    """Make weights those of the session; a callback of buttons."""
    session().choose(WEIGHTS_SETTING.name, write_weights(weights))


def is_usable() -> bool:
    """Tell whether an answer has a confidence; where none has, say why and offer what can be done."""
    analysis = found()
    if np.isfinite(analysis.confidence).any():
        return True
    if analysis.used.reason:
        st.warning(plain(analysis.used.reason), icon=":material/link_off:")
        st.button(
            "Back to the default weights", icon=":material/undo:", key="confidence_reset", on_click=reset
        )
        return False
    weights = analysis.weighting.weights
    there = {name: weight for name, weight in weights.items() if np.isfinite(analysis.signals[name]).any()}
    missing = " and ".join(analysis.used.titles[name] for name in weights if name not in there)
    if not missing or not sum(there.values()):
        st.info("No answer has all signals that have a weight.", icon=":material/inbox:")
        return False
    st.info(
        f"**No answer has a confidence:** {plain(missing)} has a weight and no value. Measure it, or weigh "
        "only the signals that are there.",
        icon=":material/inbox:",
    )
    st.button(
        f"Weigh {plain(' and '.join(analysis.used.titles[name] for name in there), one_line=True)} only",
        icon=":material/balance:",
        type="primary",
        key="confidence_there",
        on_click=use,
        args=(there,),
    )
    return False


def reset() -> None:
    """Go back to the default weights; a callback of buttons."""
    session().choose(WEIGHTS_SETTING.name, "")


def bands() -> None:
    """Draw how many answers have a high, a medium and a low confidence, and how many of them are correct."""
    frame = found().bands()
    with st.grid(3, min_column_width=200):
        for row in frame.itertuples():
            one = BANDS[str(row.band)]
            with st.container(border=True, gap="xsmall", height="stretch"):
                st.badge(f"{one.icon} {one.word.capitalize()}", color=one.colour)  # type: ignore[arg-type]
                st.markdown(f"**{row.n:,} of {count(int(frame['n'].sum()), 'answer')}**")
                st.caption(plain(LABELS[one.word].meaning))
                if row.n_labelled:
                    share = held(percent(row.accuracy))
                    st.markdown(f"{row.n_correct:,} of {row.n_labelled:,} labelled are correct ({share}).")
                    st.caption(f"{share_interval((row.low, row.high))}.")
                elif row.n:
                    st.markdown("None of them is labelled.")
                if row.n:
                    band = where("confidence", "queries", band=one.word)
                    sources.link(router.WORKBENCH, f"Read {count(row.n, 'answer')}", where=band)


def reliability() -> None:
    """Draw the reliability diagram where enough answers are labelled, and say its errors in words."""
    analysis = found()
    quality, parts = analysis.quality, analysis.brier
    if quality.n < FEWEST:
        n = count(quality.n, "labelled answer")
        st.info(f"Unknown: it takes {FEWEST} labelled answers, and there are {n}.", icon=":material/inbox:")
        return
    show.chart("confidence", "reliability_diagram")
    gap, (low, high) = analysis.gap
    by_chance, most = analysis.ece_by_chance
    far = f"{number(abs(gap))} {'above' if gap > 0 else 'below'}"
    if number(abs(gap)) == number(0.0):
        far = "equal to"
    n = count(quality.n, "labelled answer")
    show.sentence(
        f"On average the confidence is **{far}** the share of correct answers (95 % "
        f"interval of the difference {number(low)} to {number(high)}, n = {n})."
    )
    if analysis.fit_note:
        st.info(plain(analysis.fit_note), icon=":material/model_training:")
    with show.more("Calibration error and Brier score"):
        show.sentence(
            f"- **Calibration error (ECE) {number(quality.ece)}:** mean gap over the bins. A confidence that "
            f"is exactly right has {number(by_chance)} by chance, and at most {number(most)} in 95 % of such "
            "runs.\n"
            f"- **Brier score {number(quality.brier)}:** {number(parts.uncertainty)} from the questions "
            "(what always stating the share of correct answers gives), plus "
            f"{number(parts.reliability)} because bins are off the diagonal, minus "
            f"{number(parts.resolution)} because they separate correct from incorrect ones, plus "
            f"{number(parts.within)} within the bins. Lower is better."
        )
        show.export("reliability-csv", "Download bins (CSV)")


def decision() -> None:
    """Say from where on to answer, and lead to the threshold: what it lets through, and what is promised."""
    final = cached.diagnosis()[CALIBRATES].final
    if final.threshold is not None:
        st.markdown(
            f"**Answer from a confidence of {number(final.threshold)} on:** the lowest from which at most "
            f"{percent(final.alpha)} wrong answers are certified, by {count(final.n, 'labelled answer')}."
        )
    if (page := router.page_of(CALIBRATES)) is not None:
        sources.link(page, "Move the threshold: answer or withhold")


def combined() -> None:
    """Draw the most uncertain answers with the parts, or which steps would give them."""
    frame = found().queries
    known = int(frame["combined_uncertainty"].notna().sum())
    if known:
        mean = number(float(frame["combined_uncertainty"].mean()))
        st.markdown(f"Mean combined uncertainty **{mean}** (n = {count(known, 'answer')}).")
    for rule, said in _RULES.items():
        k, n = found().reliable(rule)
        if n:
            st.markdown("**" + said.format(f"{k:,} of {count(n, 'answer')}", RELIABLE_ABOVE))
    if frame["mc_confidence"].isna().all() and frame["sampling_uncertainty"].notna().any():
        st.caption("MC dropout confidence is not measured: turn on *Measure embeddings too* in the settings.")
    _missing()
    if not known:
        return
    columns = {
        "question": show.wide("Question"),
        "combined_uncertainty": show.numeric(
            "Combined",
            about=" + ".join(
                f"{weight:g} · {title.lower()}"
                for weight, (title, _) in zip(LAMBDAS, PARTS.values(), strict=True)
            ),
        ),
        **{name: show.numeric(title, about=about) for name, (title, about) in PARTS.items()},
        "is_reliable": st.column_config.CheckboxColumn("Reliable", width="small"),
        "is_reliable_strict": st.column_config.CheckboxColumn("By the stricter rule", width="small"),
        "correct": st.column_config.CheckboxColumn("Correct", width="small"),
    }
    shown = frame.sort_values("combined_uncertainty", ascending=False, kind="stable", na_position="last")
    st.caption("The most uncertain first; choose a row to open its question.")
    questions.table(
        shown.reset_index(drop=True), "Combined uncertainty of each answer", columns, "confidence_combined"
    )


def _missing() -> None:
    """Say which parts no answer has, and which page has the step for each."""
    frame = found().queries
    for name, (title, _) in PARTS.items():
        if frame[name].notna().any():
            continue
        diagnostic = _FROM.get(name)
        if diagnostic is None:
            st.caption(f"{title}: no question has two passages with retrieval scores.")
            continue
        lacks = headlines.lacks(diagnostic)
        page = router.page_of(diagnostic)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"**{title} is missing.** {plain(lacks or 'No answer has a value.')}", width="content"
            )
            if page is not None:
                sources.link(page, plain(cached.diagnosis().diagnostic(diagnostic).title))
