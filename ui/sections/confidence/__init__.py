"""Confidence: one question in the workbench, the whole run on its page, and its methods."""

from ui.sections.confidence.method import method
from ui.sections.confidence.question import draw, part

__all__ = ["draw", "method", "part"]
