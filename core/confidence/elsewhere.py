"""Names that rag_uq has in its module of confidence and that belong to other packages here."""

from core.conformal.rag import ConformalRAG, ConformalResult
from core.uncertainty.mc_dropout import ConfidenceResult, MCDropoutConfidence

__all__ = ["ConfidenceResult", "ConformalRAG", "ConformalResult", "MCDropoutConfidence"]
