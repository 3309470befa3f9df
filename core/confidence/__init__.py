"""One confidence per answer from several signals, its calibration, and what it is made of.

`MCDropoutConfidence` and `ConformalRAG` with their results are found here too, as in rag_uq; they belong to
`core.uncertainty` and `core.conformal`, and load with their first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.calibration.mapping import ConfidenceMap, Mapped, Quality, calibrate_map, fit_map, quality
from core.calibration.saved import Method, SavedCalibration
from core.calibration.weighted import (
    RANGES,
    THRESHOLD,
    THRESHOLD_VARIABLE,
    WEIGHTS,
    Confidence,
    RangeWarning,
    Weighting,
    calculate_confidence,
    confidences,
    configured,
    half_up,
    normalised,
    range_warning,
    weigh,
)
from core.confidence.combined import (
    LAMBDAS,
    combined_decision,
    combined_uncertainty,
    retrieval_uncertainty,
)
from core.confidence.compare import Compared, compare_confidences, compare_weightings
from core.confidence.labelled import Labelled, labelled_run
from core.confidence.learning import Learned, learn
from core.confidence.weights import LearnedWeights, WeightCalibration, calibrate_weights
from core.context_score import Adjustment, Band, ContextScore, Failure, band, context_score

if TYPE_CHECKING:
    from core.confidence.elsewhere import (
        ConfidenceResult,
        ConformalRAG,
        ConformalResult,
        MCDropoutConfidence,
    )

__all__ = [
    "LAMBDAS",
    "RANGES",
    "THRESHOLD",
    "THRESHOLD_VARIABLE",
    "WEIGHTS",
    "Band",
    "Compared",
    "Confidence",
    "ConfidenceResult",
    "ConformalRAG",
    "ConformalResult",
    "MCDropoutConfidence",
    "ConfidenceMap",
    "ContextScore",
    "Failure",
    "Learned",
    "LearnedWeights",
    "Labelled",
    "Mapped",
    "Method",
    "Quality",
    "RangeWarning",
    "Adjustment",
    "SavedCalibration",
    "WeightCalibration",
    "Weighting",
    "band",
    "calculate_confidence",
    "calibrate_map",
    "calibrate_weights",
    "combined_decision",
    "combined_uncertainty",
    "compare_confidences",
    "compare_weightings",
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
    "weigh",
]


def __getattr__(name: str) -> Any:
    if name in ("ConfidenceResult", "ConformalRAG", "ConformalResult", "MCDropoutConfidence"):
        from core.confidence import elsewhere

        return getattr(elsewhere, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
