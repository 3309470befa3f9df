"""Influence: one question in the workbench, the whole run on its page, and its part of the methods page."""

from ui.sections.influence.asking import in_progress
from ui.sections.influence.method import method
from ui.sections.influence.question import draw, part

__all__ = ["draw", "in_progress", "method", "part"]
