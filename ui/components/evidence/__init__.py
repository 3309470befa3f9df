"""An answer with its claims marked, and its passages as rows: pointing at one side lights the other.

Texts from data reach the browser as data and are put on the page as text, never as HTML. `rows` says what the
script is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from core.charts.theme import STYLES

_FOLDER = Path(__file__).parent
# How a claim is underlined says its state as well as the colour does.
_LINES = {
    "well supported": "solid",
    "fragile": "dashed",
    "joint": "double",
    "unsupported": "wavy",
    "unscored": "dotted",
    "irrelevant": "solid",
}
_STATES = "\n".join(
    f".{state.replace(' ', '-')} {{ --c: {STYLES[state].color}; --line: {line}; }}"
    for state, line in _LINES.items()
)
_component = st.components.v2.component(
    "leadline_evidence",
    html='<div class="bench"></div><div class="note" role="tooltip" id="note" hidden></div>',
    css=(_FOLDER / "evidence.css").read_text(encoding="utf-8") + _STATES,
    js=(_FOLDER / "evidence.js").read_text(encoding="utf-8"),
)


def draw(data: Mapping[str, Any], key: str = "evidence") -> None:
    """Draw an answer and its passages, as `rows.evidence` puts them together; or an answer alone."""
    _component(key=key, data=dict(data))
