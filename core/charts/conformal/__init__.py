"""Figures of conformal prediction, one module each."""

from core.charts.conformal.coverage import coverage_by_alpha
from core.charts.conformal.groups import group_coverage
from core.charts.conformal.labels import coverage_by_labels
from core.charts.conformal.martingale import martingale
from core.charts.conformal.p_values import p_value_plot
from core.charts.conformal.risk import certified_risk
from core.charts.conformal.scores import score_histogram
from core.charts.conformal.set_size import set_size

__all__ = [
    "certified_risk",
    "coverage_by_alpha",
    "coverage_by_labels",
    "group_coverage",
    "martingale",
    "p_value_plot",
    "score_histogram",
    "set_size",
]
