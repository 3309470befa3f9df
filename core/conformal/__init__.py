"""Statements about new answers with a promised probability: conformal prediction and certified thresholds."""

from core.calibration.provenance import Provenance, provenance_of
from core.calibration.store import CalibrationCase, CalibrationStore, StoreError
from core.conformal.drift import Drift, drift_martingale, online_p_values
from core.conformal.labelled import cases_of, context_text
from core.conformal.rag import ConformalRAG, ConformalResult
from core.conformal.selective import Certificate, Tested, certify_threshold
from core.conformal.sets import Backoff, SetRule, calibrate_sets, factuality_backoff, rarity
from core.conformal.split import (
    GroupThreshold,
    conformal_threshold,
    coverage_band,
    group_p_values,
    group_thresholds,
    label_shortage,
    labels_needed,
    p_values,
    threshold_rank,
)

__all__ = [
    "Backoff",
    "CalibrationStore",
    "CalibrationCase",
    "Certificate",
    "ConformalRAG",
    "ConformalResult",
    "Drift",
    "GroupThreshold",
    "Provenance",
    "SetRule",
    "StoreError",
    "Tested",
    "calibrate_sets",
    "cases_of",
    "certify_threshold",
    "conformal_threshold",
    "context_text",
    "coverage_band",
    "drift_martingale",
    "factuality_backoff",
    "group_p_values",
    "group_thresholds",
    "label_shortage",
    "labels_needed",
    "online_p_values",
    "p_values",
    "provenance_of",
    "rarity",
    "threshold_rank",
]
