"""Influence of each retrieved passage on the answer, and how it agrees with the retriever's order."""

from core.influence.analysis import InfluenceAnalysis, analyse
from core.influence.chance import chance_band
from core.influence.metrics import (
    above_noise_by_chance,
    attainable_rho,
    average_ranks,
    dominance_ratio,
    influence_entropy,
    influence_score,
    label,
    noise_quantile,
    rank_biased_overlap,
    rbo_by_chance,
    spearman,
)
from core.influence.ndcg import influence_ndcg, ndcg_by_chance
from core.influence.recovery import recovery
from core.influence.reported import compare_reported
from core.influence.summary import summary

__all__ = [
    "InfluenceAnalysis",
    "above_noise_by_chance",
    "analyse",
    "attainable_rho",
    "average_ranks",
    "chance_band",
    "compare_reported",
    "dominance_ratio",
    "influence_entropy",
    "influence_ndcg",
    "influence_score",
    "label",
    "ndcg_by_chance",
    "noise_quantile",
    "rank_biased_overlap",
    "rbo_by_chance",
    "recovery",
    "spearman",
    "summary",
]
