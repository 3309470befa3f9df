"""The passages of a prompt as a list to switch off, drag into another order and edit.

A component of our own: the sortable lists that there are take bare texts, each in a frame without the page's
theme, and can neither switch an entry off nor be used from the keyboard. Texts from data reach the browser as
data and are put on the page as text, never as HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

_FOLDER = Path(__file__).parent
_component = st.components.v2.component(
    "leadline_whatif",
    html='<ol class="prompt" aria-label="Passages of the prompt"></ol><p class="told" role="status"></p>',
    css=(_FOLDER / "whatif.css").read_text(encoding="utf-8"),
    js=(_FOLDER / "whatif.js").read_text(encoding="utf-8"),
)


def draw(
    rows: Sequence[Mapping[str, Any]],
    arranged: Callable[[Sequence[str], Sequence[str]], None],
    edited: Callable[[str, str | None], None],
    key: str,
) -> None:
    """Draw the list.

    ``rows`` have ``id, title, text, on, edited, tags``. ``arranged`` gets all ids in their new order, and
    those that are on; ``edited`` the id of a passage and its new text, None for the one it had.
    """

    def moved() -> None:
        given = st.session_state[key].moved
        if given:
            arranged([str(one) for one in given["order"]], [str(one) for one in given["keep"]])

    def written() -> None:
        given = st.session_state[key].written
        if given:
            text = given["text"]
            edited(str(given["id"]), None if text is None else str(text))

    _component(key=key, data={"rows": list(rows)}, on_moved_change=moved, on_written_change=written)
