"""Figures of retrieval quality."""

from core.charts.retrieval_quality.metrics import retrieval_quality_chart

__all__ = ["retrieval_quality_chart"]
