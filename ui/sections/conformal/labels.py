"""What if: how many labels a promise needs, and how exact they make it."""

from __future__ import annotations

import streamlit as st

from core.conformal import certify_threshold, coverage_band, label_shortage, labels_needed
from core.conformal.definitions import DELTA, OF_CORRECT
from core.conformal.diagnostic import ALPHA
from core.text.display import count, percent
from ui.plain import plain
from ui.sections.conformal import run

_MOST = 10_000


def needed() -> None:
    """Draw, for a number of labels and an α of the visitor's choice, what they promise."""
    analysis = run.found()
    own = max(1, min(_MOST, analysis.coverages[OF_CORRECT].n_calibration))
    left, right = st.columns(2)
    # A key for each default, so that the widgets follow the run and the setting until they are changed.
    with left:
        n = st.number_input(
            "Calibration labels n",
            1,
            _MOST,
            own,
            key=f"conformal_n_{own}",
            help="Labelled cases that calibrate; correct answers only, where answers are to be flagged.",
            persist_state="session",
        )
    with right:
        alpha = st.number_input(
            ALPHA.title,
            ALPHA.low,
            ALPHA.high,
            analysis.alpha,
            ALPHA.step,
            key=f"conformal_alpha_{analysis.alpha:g}",
            help=ALPHA.help,
            persist_state="session",
        )
    alpha = round(alpha, 6)
    st.markdown(f"**{plain(_said(n, alpha))}**")
    answers = certify_threshold([], [], alpha, DELTA).answers_needed
    st.caption(
        f"A certified confidence needs at least {count(answers, 'labelled answer')} from it on, even if none "
        "of them is wrong."
    )


def _said(n: int, alpha: float) -> str:
    short = label_shortage(n, alpha)
    if short:
        return short
    (low, high), ends = (map(percent, coverage_band(many, alpha)) for many in (n, 4 * n))
    return (
        f"With {count(n, 'label')} 95 of 100 calibrations cover {low} to {high} where {percent(1 - alpha)} "
        f"is promised, with four times as many {' to '.join(ends)}; at least {labels_needed(alpha):,} are "
        "needed."
    )
