"""Figures of the answers."""

from core.charts.answers.split import evidence_split

__all__ = ["evidence_split"]
