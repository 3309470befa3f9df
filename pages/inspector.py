import streamlit as st

from ui import cached, inspector, questions, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Question inspector", "One question: its answer, its passages, and what leaving each one out changed."
)

if show.needs_run():
    chosen = questions.deep_linked_picker()
    if chosen is not None:
        inspector.answer(chosen)
        inspector.reported(chosen)

        left, right = st.columns(2)
        with left:
            st.subheader("Retrieval and influence", anchor=False)
            show.figure(cached.chart("passage_bars", query_id=chosen), "passage_bars")
        with right:
            st.subheader("From retrieval to use", anchor=False)
            show.figure(cached.chart("rank_slope", query_id=chosen), "rank_slope")

        st.subheader("Passages", anchor=False)
        inspector.passages(chosen)
