"""Conformal prediction in the whole run: how to calibrate, what is promised, and whether it is kept."""

from __future__ import annotations

import math

import streamlit as st

from core.conformal.analysis import OWN, ConformalAnalysis
from core.conformal.definitions import CALIBRATION, DEFAULT_ALPHA, METRICS, OF_CORRECT, OF_SETS
from core.conformal.findings import flagged_said
from core.conformal.promises import Coverage
from core.conformal.split import labels_needed
from core.text.display import count, number, percent
from core.text.matching import labelled
from ui import cached, router, show, sources, step_form
from ui.plain import held, plain
from ui.sections.conformal import alarms
from ui.state import session

_NOUNS = {OF_CORRECT: "correct answer", OF_SETS: "question"}


def first() -> None:
    """Draw what is to be decided before a run is calibrated, or that labels are missing."""
    run = session().run
    assert run is not None, "the form is for the run that is loaded"
    n, of = int(labelled(run.queries).sum()), len(run.queries)
    with st.container(border=True):
        st.subheader("Not calibrated", anchor=False)
        if n:
            st.markdown(
                f"**{n:,} of {count(of, 'question')}** with a label or a reference answer. A random half of "
                "them calibrates, the other half tests what is promised. No model is called. The result is a "
                "new run beside this one; the answers stay as they are."
            )
        else:
            st.markdown(
                f"**None of {count(of, 'question')} has a label or a reference answer**, so nothing can "
                f"be calibrated: at α = {DEFAULT_ALPHA:g} at least {labels_needed(DEFAULT_ALPHA)} correct "
                "answers are needed. Say of some answers whether they are correct in the column `correct` of "
                "your file, or write their reference answers into `reference_answers`, and upload it again; "
                "or name a calibration store."
            )
            sources.link(router.DATA, "Upload a file", "upload", door="Upload")
        _form("Calibrate")


def again() -> None:
    """Say what calibrates, and draw the form for another calibration of the same answers."""
    analysis = found()
    alarms.draw(analysis)
    n = int((analysis.queries["role"] == CALIBRATION).sum())
    if analysis.origin == OWN:
        st.caption(f"Calibrated on {count(n, 'question')} of this run, tested on the other labelled ones.")
    elif analysis.origin:
        part = f" {count(n, 'question is', 'questions are')} of this run and test nothing." if n else ""
        st.caption(f"Calibrated on the labelled questions of the store {plain(analysis.origin)}.{part}")
    with step_form.folded("Calibrate again with other options"):
        _form("Calibrate again")


def _form(label: str) -> None:
    step_form.on_loaded_run("conformal", label, reads_passages=False)


def found() -> ConformalAnalysis:
    """Return the analysis of the session's run at the current settings."""
    analysis: ConformalAnalysis = cached.diagnosis()["conformal"]
    return analysis


def promises() -> None:
    """Draw one promise: what it says, whether the tested cases keep it, and how that is at other α."""
    analysis = found()
    every = analysis.coverages
    first = next(iter(every))
    name = st.segmented_control(
        "Promise",
        list(every),
        default=next((name for name, one in every.items() if not one.reason and one.n_test), first),
        required=True,
        key="conformal_promise",
        format_func=lambda name: METRICS[name].title if name in METRICS else name,
        persist_state="session",
    )
    one = every.get(name or first, every[first])
    st.markdown(METRICS[one.name].meaning)
    st.markdown(_kept(one, analysis.alpha))
    if not one.reason and one.splits is not None:
        show.chart("conformal", "coverage_by_alpha", analysis, one.name, of=one.name)
        st.caption(
            "Random splits of the labelled questions show that the threshold is right, not that new "
            "questions will be like these."
        )


def _kept(one: Coverage, alpha: float) -> str:
    """Say what is promised and how many of the tested cases keep to it."""
    noun = _NOUNS.get(one.name, "answer")
    calibrated = f"calibrated on {count(one.n_calibration, noun)}"
    if one.reason:
        return f"**Nothing is promised** ({calibrated}). {plain(one.reason)}"
    by = (
        "a threshold for each group"
        if math.isnan(one.threshold)
        else f"the threshold {number(one.threshold)}"
    )
    promised = f"at least {percent(1 - alpha)} promised, by {by}, {calibrated}"
    if not one.n_test:
        return f"**Not tested:** no {noun} is left for it; {promised}."
    share = one.n_covered / one.n_test
    low, high = map(percent, one.band)
    verdict = "Broken" if share < one.band[0] else "In line with the promise"
    return held(
        f"**{verdict}: {one.n_covered:,} of {count(one.n_test, noun)} tested ({percent(share)})**; {low} to "
        f"{high} is to be expected of so many, and {promised}."
    )


def sets() -> None:
    """Draw how many sampled meanings a set holds, and how often no sample is correct."""
    analysis = found()
    if analysis.sets is None:
        st.info(
            "No sets: a calibration store holds no samples. Calibrate on labelled questions of the run."
            if analysis.origin not in (OWN, "")
            else "No sets: nothing was sampled. Sample answers on the page Uncertainty.",
            icon=":material/inbox:",
        )
        return
    rule, one = analysis.sets.rule, analysis.coverages[OF_SETS]
    interval = f" ({percent(rule.share_without_correct)}; 95 % interval {percent(0, (rule.low, rule.high))})"
    show.sentence(
        f"In **{rule.n_without_correct:,} of {count(rule.n, 'calibration question')}**"
        f"{interval if rule.n else ''} no sample is correct: no set can hold a correct answer there."
    )
    if one.n_test:
        st.markdown(
            f"A set holds {number(analysis.sets.mean_size)} meanings on average "
            f"(n = {count(one.n_test, 'tested question')})."
        )
    if not rule.reason:
        show.chart("conformal", "set_size")


def flagged() -> None:
    """Draw which answers are less typical by the confidence than correct ones."""
    analysis = found()
    if analysis.score is None:
        return
    one = analysis.coverages[OF_CORRECT]
    if one.reason:
        st.markdown(f"**No answer can be flagged.** {plain(one.reason)}")
    elif analysis.n_judged:
        show.sentence(flagged_said(analysis))
        if math.isfinite(analysis.final_threshold) and analysis.origin == OWN and analysis.groups.empty:
            st.caption(
                "For new answers use the threshold from all labels: "
                f"{number(analysis.final_threshold, '{:.3f}')}."
            )
        show.chart("conformal", "score_histogram")
    show.export("conformal-csv", "Download verdicts (CSV)")


def kept_claims() -> None:
    """Say how many claims can be kept, where claims were compared with reference answers."""
    analysis = found()
    kept = analysis.kept_claims
    if kept is None:
        return
    st.subheader("Claims that can be kept", anchor=False)
    if kept.rule.reason:
        st.markdown(f"**No claim can be kept with a promise.** {plain(kept.rule.reason)}")
        return
    tested = f" ({percent(kept.n_right / kept.n)})" if kept.n else ""
    show.sentence(
        f"**{kept.n_kept:,} of {count(kept.n_claims, 'claim')}** of the tested answers can be kept: support "
        f"above {number(kept.rule.threshold)} (calibrated on {count(kept.rule.n, 'answer')}). In "
        f"{kept.n_right:,} of {count(kept.n, 'tested answer')}{tested} all kept claims are right; "
        f"{percent(1 - analysis.alpha)} is promised."
    )


def drift() -> None:
    """Draw whether the scores of the other questions look like the calibrated ones."""
    analysis = found()
    one = analysis.drift
    if analysis.origin == OWN:
        st.markdown(
            "**Not tested here:** questions of the run calibrate, and the order of a file says nothing of "
            "time. Drift is tested where new questions meet a calibration store."
        )
        return
    if not one.n:
        st.info("No other question has a score: there is nothing to compare.", icon=":material/inbox:")
        return
    evidence = next(value for value in cached.numbers("conformal") if value.key == "drift_factor")
    show.sentence(
        f"**{'No alarm' if one.alarm is None else 'Alarm'}:** after {count(one.n, 'question')} a bet that "
        f"they differ is at {evidence.text} times its stake. If they do not, it reaches {1 / one.level:.0f} "
        f"times, the alarm, with a probability of at most {percent(one.level)}. The bet sees a change of "
        "level, not of spread."
    )
    show.chart("conformal", "p_value_plot")


def groups() -> None:
    """Draw a threshold and the coverage per group, where the questions have groups."""
    analysis = found()
    if analysis.groups.empty:
        return
    st.subheader("Groups", anchor=False)
    frame = analysis.groups
    finite = int((frame["threshold"] < math.inf).sum())
    st.markdown(
        f"**{finite:,} of {count(len(frame), 'threshold')}** by group {'is' if finite == 1 else 'are'} "
        "finite. Verdicts and tests use the threshold of the group: one for all may flag too many in one "
        "group and too few in another."
    )
    columns = {
        "group": show.wide("Group", "medium"),
        "n_calibration": show.numeric("Calibration n", "localized", "Correct answers that calibrate"),
        "threshold": show.numeric("Threshold"),
        "n_test": show.numeric("Test n", "localized", "Correct answers that test"),
        "n_covered": show.numeric("Not flagged", "localized"),
        "share": show.numeric("Share not flagged"),
        "low": show.numeric("Band from", about="Where the share not flagged lies in 95 of 100 calibrations"),
        "high": show.numeric("to"),
        "reason": show.wide("Undefined because"),
    }
    shown = frame.assign(
        threshold=frame["threshold"].where(frame["threshold"] < math.inf),
        share=frame["n_covered"] / frame["n_test"].where(frame["n_test"] > 0),
    )
    show.table(shown, "Threshold and coverage of each group", columns)
