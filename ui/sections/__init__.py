"""The parts of the workbench: one module per diagnostic and of its name; one for all the others.

A module has ``draw(query_id)``, and may have ``method()``: how its numbers come about, for the methods page.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import streamlit as st

from core.diagnosis import Diagnostic
from ui import headlines, questions, show
from ui.plain import plain


def draw(diagnostic: Diagnostic, query_id: str) -> None:
    """Draw what a diagnostic says of a question: by its own module, or its columns."""
    own = of(diagnostic.name)
    if own is not None:
        own.draw(query_id)
        return
    row = questions.row(query_id, diagnostic.name)
    reason = row.get("reason")
    if isinstance(reason, str):
        st.info(plain(headlines.reason(reason).meaning), icon=":material/do_not_disturb_on:")
    show.cards([(column.title, column.text(row[column.name]), "", "") for column in diagnostic.columns])


def of(name: str) -> Any:
    """Return the module of a diagnostic's own section, or None."""
    path = f"{__name__}.{name}"
    return importlib.import_module(path) if importlib.util.find_spec(path) is not None else None
