"""One confidence per answer from several signals, its calibration, and what it is made of.

`MCDropoutConfidence` and `ConformalRAG` with their results are found here too, as in rag_uq; they belong to
`core.uncertainty` and `core.conformal`, and load with their first use.
"""

from __future__ import annotations

from typing import Any

from core.calibration.mapping import ConfidenceMap, calibrate_map, fit_map, quality
from core.calibration.saved import Method, SavedCalibration
from core.calibration.weighted import (
    RANGES,
    THRESHOLD_VARIABLE,
    WEIGHTS,
    Weighting,
    calculate_confidence,
    confidences,
    configured,
    half_up,
    normalised,
    range_warning,
)
from core.confidence.combined import combined_decision, combined_uncertainty, retrieval_uncertainty
from core.confidence.labelled import Labelled, labelled_run
from core.confidence.learning import Compared, Learned, compare_confidences, learn
from core.confidence.weights import calibrate_weights
from core.context_score import Failure, band, context_score

__all__ = [
    "RANGES",
    "THRESHOLD_VARIABLE",
    "WEIGHTS",
    "Compared",
    "ConfidenceMap",
    "Failure",
    "Labelled",
    "Learned",
    "Method",
    "SavedCalibration",
    "Weighting",
    "band",
    "calculate_confidence",
    "calibrate_map",
    "calibrate_weights",
    "combined_decision",
    "combined_uncertainty",
    "compare_confidences",
    "confidences",
    "configured",
    "context_score",
    "fit_map",
    "half_up",
    "labelled_run",
    "learn",
    "normalised",
    "quality",
    "range_warning",
    "retrieval_uncertainty",
]


def __getattr__(name: str) -> Any:
    if name in ("ConformalRAG", "ConformalResult"):
        from core.conformal import rag

        return getattr(rag, name)
    if name in ("ConfidenceResult", "MCDropoutConfidence"):
        from core.uncertainty import mc_dropout

        return getattr(mc_dropout, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
