import streamlit as st

from ui import cached, questions, retrieval, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Influence vs retrieval",
    "Does the model use the passages in the order the retriever gave them? Influence is how much the "
    "answer changes when one passage is left out.",
)

if show.needs_run():
    left, right = st.columns(2)
    with left:
        st.subheader("Rank against rank", anchor=False)
        show.figure(cached.chart("rank_against_rank"), "rank_against_rank")
    with right:
        st.subheader("Influence by retrieval rank", anchor=False)
        show.figure(cached.chart("influence_by_rank"), "influence_by_rank")

    st.subheader("One question, two orders", anchor=False)
    chosen = questions.picker("influence_question")
    if chosen is not None:
        show.figure(cached.chart("rank_slope", query_id=chosen), "slope")
        questions.link(chosen)

    st.subheader("Failure modes", anchor=False)
    show.figure(cached.chart("failure_mode_counts"), "failure_mode_counts")
    questions.modes_table()

    st.subheader("Retrieval quality", anchor=False)
    retrieval.quality()

    st.subheader("All questions", anchor=False)
    questions.filtered_table()
