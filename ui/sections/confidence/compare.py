"""Two configurations of the confidence on the same answers: the one in use and another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import streamlit as st

from core.confidence import ConfidenceMap, Weighting, compare_confidences, configured
from core.confidence.analysis import CALIBRATED, ConfidenceAnalysis
from core.confidence.diagnostic import write_weights
from core.errors import InputError
from core.text.display import count
from ui import cached
from ui.plain import plain
from ui.sections.confidence import calibrate, measures, run


class _Other(NamedTuple):
    title: str
    weighting: Weighting
    map: ConfidenceMap
    favours: str  # why the comparison may favour it; "" where it does not


def draw() -> None:
    """Draw the choice of the other configuration, and the differences."""
    analysis = run.found()
    others = _others(analysis)
    title = st.segmented_control(
        "Compare what is in use with",
        list(others),
        default=next(iter(others)),
        required=True,
        key="confidence_compare",
    )
    other = others.get(title or "", next(iter(others.values())))
    try:
        confidence = analysis.by(other.weighting, other.map)
    except InputError as error:
        st.warning(plain(error), icon=":material/link_off:")
        return
    both = ~np.isnan(analysis.confidence) & ~np.isnan(confidence) & ~np.isnan(analysis.correct)
    if not both.any():
        st.info("No answer has a label and both confidences.", icon=":material/inbox:")
        return
    thresholds = analysis.weighting.threshold, other.weighting.threshold
    if thresholds[0] == thresholds[1] and np.allclose(analysis.confidence[both], confidence[both]):
        st.info("The two are the same: choose other weights above.", icon=":material/drag_handle:")
        return
    found = cached.once(
        f"confidence compared {write_weights(other.weighting.weights)} {other.map} {thresholds}",
        lambda _: compare_confidences(
            analysis.confidence[both], confidence[both], analysis.correct[both], thresholds
        ),
    )
    st.markdown(measures.said(found, other.title))
    measures.table(found, "In use", other.title)
    for favours in filter(None, (_learned_in_use(analysis), other.favours)):
        st.caption(f":material/warning: {favours}")


def _others(analysis: ConfidenceAnalysis) -> dict[str, _Other]:
    default = configured(threshold=analysis.weighting.threshold)
    found = [_Other("Default weights", default, ConfidenceMap(), "")]
    if (learned := calibrate.learned()) is not None and learned.weights.best is not None:
        saved = learned.saved
        favours = (
            "The learned weights come from these answers, which favours them." if calibrate.of_run() else ""
        )
        found.append(_Other("Learned weights", saved.weighting, saved.map, favours))
    if (file := calibrate.loaded()) is not None:
        saved = file[1]
        favours = f"The file was learned from {count(saved.n, 'answer')}; if they are these, that favours it."
        found.append(_Other("Calibration file", saved.weighting, saved.map, favours))
    return {one.title: one for one in found}


def _learned_in_use(analysis: ConfidenceAnalysis) -> str:
    """Say that the configuration in use may have been learned from these answers."""
    if analysis.origin == CALIBRATED:
        return "The weights in use come from a calibration; learned from these answers, it is favoured."
    learned = calibrate.learned()
    if learned is None or not calibrate.of_run() or learned.weights.best is None:
        return ""
    same = write_weights(analysis.weighting.weights) == write_weights(learned.saved.weighting.weights)
    return "The weights in use were learned from these answers, which favours them." if same else ""
