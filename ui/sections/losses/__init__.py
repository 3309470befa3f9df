"""Where answers are lost: one question in the workbench, the whole run on its page and on the Overview."""

from ui.sections.losses.question import draw, part
from ui.sections.losses.run import overview

__all__ = ["draw", "overview", "part"]
