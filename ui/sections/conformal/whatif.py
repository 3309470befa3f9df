"""What if: another threshold on the confidence, what it lets through, and what is promised of that."""

from __future__ import annotations

import math

import streamlit as st

from core.calibration.in_use import AUTO, THRESHOLD_SETTING, WEIGHTS_SETTING, threshold_in_use
from core.text.display import count, number, percent
from ui import router, show, sources
from ui.plain import plain, shortened
from ui.sections.conformal import run
from ui.state import session, settings

_HERE, _MADE_OF = "confidence_threshold_here", "confidence"


def draw() -> None:
    """Draw the confidence in use, a threshold to move, what it lets through, and what is certified of it."""
    _made_of()
    analysis, threshold = run.found(), _threshold()
    if not analysis.queries["confidence"].notna().any():
        st.info("No answer has a confidence.", icon=":material/inbox:")
        return
    now, tested = analysis.at(threshold)
    wrong = now.n_labelled - now.n_correct
    share = percent(wrong / now.n_labelled) if now.n_labelled else "—"
    ends = f"; 95 %: {percent(0, (1 - now.high, 1 - now.low))}" if now.n_labelled else ""
    show.cards(
        [
            ("Answered", percent(now.coverage), f"{now.n_passing:,} of {count(now.n, 'answer')}",
             "Answers whose confidence, rounded to two places, reaches the threshold."),
            ("Wrong among them", share, f"{wrong:,} of {now.n_labelled:,} labelled{ends}",
             "Incorrect ones of the labelled answers that are given."),
            ("Withheld", percent(1 - now.coverage), f"{now.n - now.n_passing:,} of {count(now.n, 'answer')}",
             "Answers below the threshold: send them to a person, or say that you do not know."),
        ]
    )  # fmt: skip
    _promise(threshold, tested is not None and tested.certified)
    show.chart("conformal", "certified_risk", analysis, threshold, of=f"threshold {threshold}")
    frame = analysis.final.to_frame()
    if not len(frame) or not analysis.final.n:
        return
    frame["certified"] = ["✓" if one else "" for one in frame["certified"]]
    columns = {
        "threshold": show.numeric("Confidence from", about="Empty: a start within a tie, no threshold"),
        "certified": show.wide("Certified", "small"),
        "n_answered": show.numeric("Answered", "localized", "Labelled answers with at least this confidence"),
        "n_wrong": show.numeric("Wrong", "localized"),
        "risk": show.numeric("Share wrong"),
        "p_value": show.numeric("p", "%.3f", "How likely so few are wrong if a share of α is"),
        "level": show.numeric("Level", "%.3f", "Certified where p is at most this; never where it is 0"),
    }
    with st.expander(f"Thresholds tested ({len(frame)})"):
        show.table(frame, "Thresholds tested for the certificate", columns)
        show.export("risk-csv", "Download thresholds (CSV)")


def _made_of() -> None:
    """Say which signals the confidence is made of; warn where they cannot be used."""
    analysis, chosen = run.found(), str(settings()[WEIGHTS_SETTING.name])
    if analysis.score is None:
        st.warning(
            f"No confidence by “{plain(shortened(chosen, 80))}”: the run lacks it. Choose other signals."
            if chosen != AUTO and analysis.scores
            else "The run has no signal that says without a reference answer how sure an answer is: measure "
            "confidence signals, sample answers or extract claims first.",
            icon=":material/link_off:",
        )
        if chosen != AUTO:
            st.button("Back to automatic", icon=":material/undo:", key="conformal_auto", on_click=_automatic)
        return
    made = chosen if chosen != AUTO else analysis.score.title
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Confidence by: {plain(shortened(made, 120))}")
        if (page := router.page_of(_MADE_OF)) is not None:
            sources.link(page, "What is it made of?")


def _automatic() -> None:
    session().choose(WEIGHTS_SETTING.name, "")


def _threshold() -> float:
    """Draw the threshold of the sidebar a second time; there is one value."""
    one = THRESHOLD_SETTING
    st.session_state[_HERE] = float(settings()[one.name])
    st.slider(one.title, one.low, one.high, step=one.step, key=_HERE, help=one.help, on_change=_move)
    threshold = threshold_in_use(settings())
    if not math.isclose(threshold, st.session_state[_HERE]):
        st.caption(f"In use: {number(threshold)}, of the environment.")
    return threshold


def _move() -> None:
    session().choose(THRESHOLD_SETTING.name, st.session_state[_HERE])


def _promise(threshold: float, is_certified: bool) -> None:
    """Say what is certified at the threshold, from where on anything is, or how many labels it would take."""
    one = run.found().final
    labels = count(one.n, "labelled answer")
    if not one.n:
        st.info("Nothing can be promised: no answer with a confidence is labelled.", icon=":material/inbox:")
        return
    risk = f"at most {percent(one.alpha)} of the answers given are wrong, with probability "
    risk += percent(1 - one.delta)
    if one.threshold is None:
        st.markdown(
            f"**No confidence can be certified** for at most {percent(one.alpha)} wrong on {labels}: "
            f"{one.missing}."
        )
        return
    if is_certified or math.isclose(threshold, one.threshold):
        st.markdown(f"**Certified at {number(threshold)}:** {risk} over {labels}.")
    else:
        st.markdown(f"**Not certified at {number(threshold)}.**")
    st.markdown(
        f"**Answer from a confidence of {number(one.threshold)} on:** the lowest that is certified; "
        f"{one.n_wrong:,} of {count(one.n_answered, 'labelled answer')} there are wrong "
        f"({percent(one.risk)}), and {risk}."
    )
    if not math.isclose(threshold, one.threshold) and one.threshold <= 1:
        st.button(
            f"Use {number(one.threshold)}", icon=":material/check:", key="conformal_use",
            on_click=session().choose, args=(THRESHOLD_SETTING.name, round(one.threshold, 4)),
        )  # fmt: skip
