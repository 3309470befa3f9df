"""Sampling uncertainty: one question in the workbench, and the whole run on its page."""

from ui.sections.uncertainty.question import draw, part

__all__ = ["draw", "part"]
