"""Figures of influence, one module each; two numbers of every question in one."""

from core.charts.influence.by_rank import influence_by_rank
from core.charts.influence.modes import failure_mode_counts
from core.charts.influence.questions import entropy_dominance, ndcg_against_chance
from core.charts.influence.ranks import rank_against_rank
from core.charts.influence.rho import rho_histogram
from core.charts.influence.slope import rank_slope
from core.charts.influence.verdicts import verdict_changes

__all__ = [
    "entropy_dominance",
    "failure_mode_counts",
    "influence_by_rank",
    "ndcg_against_chance",
    "rank_against_rank",
    "rank_slope",
    "rho_histogram",
    "verdict_changes",
]
