"""Figures of sampling uncertainty, one module each."""

from core.charts.uncertainty.coverage import risk_coverage
from core.charts.uncertainty.entropy import entropy_agreement, entropy_variance
from core.charts.uncertainty.grounding import stability_grounding
from core.charts.uncertainty.heatmap import similarity_heatmap
from core.charts.uncertainty.leaderboard import estimator_leaderboard
from core.charts.uncertainty.scatter import answer_scatter

__all__ = [
    "answer_scatter",
    "entropy_agreement",
    "entropy_variance",
    "estimator_leaderboard",
    "risk_coverage",
    "similarity_heatmap",
    "stability_grounding",
]
