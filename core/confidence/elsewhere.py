"""Names that the source documents have in their package of confidence and that belong to others here."""

from core.conformal.rag import ConformalRAG
from core.uncertainty.mc_dropout import ConfidenceResult, MCDropoutConfidence

__all__ = ["ConfidenceResult", "ConformalRAG", "MCDropoutConfidence"]
