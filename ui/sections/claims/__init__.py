"""Claims and evidence: one answer in the workbench, the whole run on its page, and the form of its step."""

from ui.sections.claims.answer import draw, part
from ui.sections.claims.form import options

__all__ = ["draw", "options", "part"]
