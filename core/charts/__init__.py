"""Figures: each function takes a result and returns a plotly figure; where nothing is there, it says so."""

from core.charts.by_rank import influence_by_rank
from core.charts.claims_f1 import f1_at_k_chart
from core.charts.claims_heatmap import claims_heatmap
from core.charts.claims_importance import passage_importance_bars
from core.charts.claims_quadrants import claims_quadrants
from core.charts.entropy import entropy_dominance
from core.charts.labels import label_counts
from core.charts.modes import failure_mode_counts
from core.charts.passages import passage_bars
from core.charts.ranks import rank_against_rank
from core.charts.recovery import recovery_chart
from core.charts.retrieval_quality import retrieval_quality_chart
from core.charts.rho import rho_histogram
from core.charts.side_by_side import rho_side_by_side
from core.charts.slope import rank_slope
from core.charts.theme import alt_text
from core.charts.verdicts import verdict_changes

__all__ = [
    "alt_text",
    "claims_heatmap",
    "claims_quadrants",
    "entropy_dominance",
    "f1_at_k_chart",
    "failure_mode_counts",
    "influence_by_rank",
    "label_counts",
    "passage_bars",
    "passage_importance_bars",
    "rank_against_rank",
    "rank_slope",
    "recovery_chart",
    "retrieval_quality_chart",
    "rho_histogram",
    "rho_side_by_side",
    "verdict_changes",
]
