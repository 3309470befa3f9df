"""Figures of the confidence, one module each."""

from core.charts.confidence.reliability import reliability_diagram
from core.charts.confidence.waterfall import waterfall

__all__ = ["reliability_diagram", "waterfall"]
