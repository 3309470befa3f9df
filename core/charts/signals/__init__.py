"""Figures of the signals of a run against each other, one module each."""

from core.charts.signals.heatmap import correlation_heatmap
from core.charts.signals.histogram import signal_histogram

__all__ = ["correlation_heatmap", "signal_histogram"]
