"""Statements about new answers with a promised probability: conformal prediction and risk control."""

from core.calibration.provenance import Provenance, provenance_of
from core.calibration.store import CalibrationStore, Case, StoreError
from core.conformal.coverage import coverage_band
from core.conformal.drift import Drift, drift_martingale, online_p_values
from core.conformal.labelled import cases_of, context_text
from core.conformal.mondrian import GroupThreshold, group_p_values, group_thresholds
from core.conformal.rag import ConformalRAG, ConformalResult
from core.conformal.risk_control import Backoff, RiskControl, control_risk, factuality_backoff
from core.conformal.selective import Certificate, Tested, certify_threshold
from core.conformal.sets import SetRule, calibrate_sets, rarity
from core.conformal.split import (
    conformal_threshold,
    label_shortage,
    labels_needed,
    p_values,
    threshold_rank,
)

__all__ = [
    "Backoff",
    "CalibrationStore",
    "Case",
    "Certificate",
    "ConformalRAG",
    "ConformalResult",
    "Drift",
    "GroupThreshold",
    "Provenance",
    "RiskControl",
    "SetRule",
    "StoreError",
    "Tested",
    "calibrate_sets",
    "cases_of",
    "certify_threshold",
    "conformal_threshold",
    "context_text",
    "control_risk",
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
