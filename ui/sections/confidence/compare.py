"""Two configurations of the confidence on the same answers: the one in use and another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import streamlit as st

from core.confidence import (
    ConfidenceMap,
    SavedCalibration,
    Weighting,
    compare_confidences,
    configured,
    held_out,
)
from core.confidence.analysis import ConfidenceAnalysis
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
    saved: SavedCalibration | None = None  # what was learned, where it was learned from labels


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
        replaced, n_used = held_out(
            analysis.run.queries["question"], analysis.measured, analysis.correct, other.saved
        )
        if replaced is not None:
            confidence = np.where(np.isinf(replaced), confidence, replaced)
    except InputError as error:
        st.warning(plain(error), icon=":material/link_off:")
        return
    both = ~np.isnan(analysis.judged) & ~np.isnan(confidence) & ~np.isnan(analysis.correct)
    if not both.any():
        st.info("No answer has a label and both confidences.", icon=":material/inbox:")
        return
    thresholds = analysis.weighting.threshold, other.weighting.threshold
    if thresholds[0] == thresholds[1] and np.allclose(analysis.judged[both], confidence[both]):
        st.info("The two are the same: choose other weights above.", icon=":material/drag_handle:")
        return
    found = cached.once(
        f"confidence compared {write_weights(other.weighting.weights)} {other.map} {thresholds}",
        lambda _: compare_confidences(
            analysis.judged[both], confidence[both], analysis.correct[both], thresholds
        ),
    )
    st.markdown(measures.said(found, other.title))
    measures.table(found, "In use", other.title)
    for note in filter(None, (_in_use(analysis), _of_other(n_used))):
        st.caption(note)


def _others(analysis: ConfidenceAnalysis) -> dict[str, _Other]:
    default = configured(threshold=analysis.weighting.threshold)
    found = [_Other("Default weights", default, ConfidenceMap())]
    if (learned := calibrate.learned()) is not None and learned.weights.best is not None:
        saved = learned.saved
        found.append(_Other("Learned weights", saved.weighting, saved.map, saved))
    if (file := calibrate.loaded()) is not None:
        saved = file[1]
        found.append(_Other("Calibration file", saved.weighting, saved.map, saved))
    return {one.title: one for one in found}


def _of_other(n_used: int | None) -> str:
    """Say what the other configuration was learned from, where that could favour it."""
    if n_used is None:
        return (
            "The file does not say which answers it was learned from; if these are among them, it is ahead."
        )
    if not n_used:
        return ""
    used = count(n_used, "of these answers", "of these answers")
    return f"It was learned from {used}; each is judged by what was learned from the others (five folds)."


def _in_use(analysis: ConfidenceAnalysis) -> str:
    """Say that the configuration in use was learned from these answers."""
    learned = calibrate.learned()
    if analysis.fit_note or learned is None or not calibrate.of_run() or learned.weights.best is None:
        return analysis.fit_note
    same = write_weights(analysis.weighting.weights) == write_weights(learned.saved.weighting.weights)
    return "The weights in use were learned from these answers, which favours them." if same else ""
