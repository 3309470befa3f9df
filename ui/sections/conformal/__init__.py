"""Conformal prediction: one question in the workbench, the whole run on its page, and its methods."""

from ui.sections.conformal.question import draw, part

__all__ = ["draw", "part"]
