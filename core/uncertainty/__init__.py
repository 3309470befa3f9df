"""How sure a model is of an answer, told from several answers to the same question."""

from core.uncertainty.analysis import measure
from core.uncertainty.context import changes
from core.uncertainty.estimators import ESTIMATORS, TEXT_ONLY, score
from core.uncertainty.measures import discrete_semantic_entropy
from core.uncertainty.quality import comparisons, leaderboard, risk_coverage_band, told_apart
from core.uncertainty.samples import Samples

__all__ = [
    "ESTIMATORS",
    "TEXT_ONLY",
    "Samples",
    "changes",
    "comparisons",
    "discrete_semantic_entropy",
    "leaderboard",
    "measure",
    "risk_coverage_band",
    "score",
    "told_apart",
]
