"""Attribution: one question in the workbench, the whole run on its page, and its part of the methods page."""

from ui.sections.attribution.question import draw, part

__all__ = ["draw", "part"]
