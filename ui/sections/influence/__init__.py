"""Influence: one question in the workbench, the whole run on its page, and its part of the methods page."""

from ui.sections.influence.question import draw, in_progress, part
from ui.sections.influence.run import method

__all__ = ["draw", "in_progress", "method", "part"]
