"""Figures of claims and evidence, one module each."""

from core.charts.claims.evidence_matrix import evidence_matrix
from core.charts.claims.f1 import f1_at_k_chart
from core.charts.claims.heatmap import claims_heatmap
from core.charts.claims.quadrants import claims_quadrants

__all__ = ["claims_heatmap", "claims_quadrants", "evidence_matrix", "f1_at_k_chart"]
