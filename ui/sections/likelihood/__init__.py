"""Fixed-answer scores: one question in the workbench, the whole run on its page, and their methods."""

from ui.sections.likelihood.question import draw, part

__all__ = ["draw", "part"]
