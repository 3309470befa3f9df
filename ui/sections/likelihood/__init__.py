"""Fixed-answer scores: one question in the workbench, and the whole run on its page."""

from ui.sections.likelihood.question import draw, part

__all__ = ["draw", "part"]
