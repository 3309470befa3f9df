"""Figures of sampling uncertainty, one module each; two numbers of every question in one."""

from core.charts.uncertainty.coverage import risk_coverage
from core.charts.uncertainty.leaderboard import estimator_leaderboard
from core.charts.uncertainty.questions import entropy_agreement, entropy_variance, stability_grounding
from core.charts.uncertainty.scatter import answer_scatter

__all__ = [
    "answer_scatter",
    "entropy_agreement",
    "entropy_variance",
    "estimator_leaderboard",
    "risk_coverage",
    "stability_grounding",
]
