"""One question in detail: what was asked, then every diagnostic's own section."""

from __future__ import annotations

import streamlit as st

from core import diagnostics
from core.diagnosis import Diagnostic
from core.sources.formats.kept import is_kept
from core.text.display import count
from ui import headlines, questions, router, sections, show
from ui.plain import plain
from ui.state import session


def question(query_id: str) -> None:
    """Draw the question, and what an imported file says of it."""
    st.markdown(f"**{plain(questions.row(query_id)['question']) or '(no text)'}**")
    _reported(query_id)


def _reported(query_id: str) -> None:
    """Draw what an imported file says of the question beyond its texts, as the file says it."""
    run = session().run
    assert run is not None
    frame = run["reported"]
    frame = frame[(frame["query_id"] == query_id) & ~frame["name"].map(is_kept).astype(bool)]
    if frame.empty:
        return
    with st.expander(f"Values from the file ({count(len(frame), 'value')})"):
        st.caption("Shown as the file has them; not used in calculations.")
        number, text = show.numeric("Number", "%g"), show.wide("Text")
        columns = {"name": "Name", "by": "Source", "value": number, "text": text}
        show.table(frame, "Values that the file reports", columns)


def every_section(query_id: str) -> None:
    """Draw what every diagnostic says of the question, or why it says nothing."""
    for diagnostic in diagnostics.DIAGNOSTICS:
        _title(diagnostic, query_id)
        missing = headlines.lacks(diagnostic.name)
        if missing is not None:
            st.caption(plain(missing))
        else:
            sections.draw(diagnostic, query_id)


def _title(diagnostic: Diagnostic, query_id: str) -> None:
    page = router.page_of(diagnostic.name)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(plain(diagnostic.title), anchor=False, width="content")
        if page is not None:
            questions.link(query_id, "Whole run", page)
