"""Validation: checks of an answer without a model, safe fallbacks, and what they change."""

from core.validation.chain import ValidatorChain, default_chain, scored, validate
from core.validation.fallback import FallbackHandler, Served, Wording
from core.validation.metrics import Metrics, Observation, metrics, observe, windowed
from core.validation.types import Case, Code, Reason, Severity, ValidationOutcome, Verdict
from core.validation.validators import (
    CitationRequired,
    ConfidenceValidator,
    EthicsAdapter,
    EvidenceOverlap,
    NumericUnits,
    NumericUnitsBasic,
)

__all__ = [
    "Case",
    "CitationRequired",
    "Code",
    "ConfidenceValidator",
    "EthicsAdapter",
    "EvidenceOverlap",
    "FallbackHandler",
    "Metrics",
    "NumericUnits",
    "NumericUnitsBasic",
    "Observation",
    "Reason",
    "Served",
    "Severity",
    "ValidationOutcome",
    "ValidatorChain",
    "Verdict",
    "Wording",
    "default_chain",
    "metrics",
    "observe",
    "scored",
    "validate",
    "windowed",
]
