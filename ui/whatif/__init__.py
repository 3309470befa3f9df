"""Try a change of one question's prompt, and then on all questions: folded away in the workbench."""

from __future__ import annotations

import streamlit as st

from ui import uploads
from ui.state import session
from ui.whatif import asked, bench, every, kept

_OPEN = "whatif_open"


def draw(query_id: str) -> None:
    """Draw the bench of a question; what a run of all questions came to stands above it."""
    every.job()
    if kept.follow(query_id):
        st.session_state[_OPEN] = True
    fits = kept.write(query_id)
    with st.expander("Try a change", icon=":material/science:", key=_OPEN, on_change="rerun") as box:
        if not box.open:
            return
        if not uploads.has_texts(session().the_run):
            st.info(uploads.NO_TEXTS, icon=":material/inbox:")
            return
        choice, repeats = bench.draw(query_id, fits)
        asked.draw(query_id, choice, repeats)
        every.draw(query_id, choice)
