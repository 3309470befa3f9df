"""Figures of conformal prediction."""

from core.charts.conformal.curves import coverage_by_alpha, set_size
from core.charts.conformal.p_values import p_value_plot
from core.charts.conformal.risk import certified_risk
from core.charts.conformal.scores import score_histogram

__all__ = [
    "certified_risk",
    "coverage_by_alpha",
    "p_value_plot",
    "score_histogram",
    "set_size",
]
