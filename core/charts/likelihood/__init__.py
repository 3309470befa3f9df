"""Figures of fixed-answer scores."""

from core.charts.likelihood.evidence import answer_against_reference

__all__ = ["answer_against_reference"]
