import streamlit as st

from ui import headlines, show
from ui.router import require_entrypoint
from ui.sections.influence import run

require_entrypoint()
if headlines.opening("influence"):
    run.chance()

    left, right = st.columns([2, 3])
    with left:
        st.subheader("Verdicts", anchor=False)
        show.chart("influence", "label_counts")
    with right:
        st.subheader("Rank agreement of every question", anchor=False)
        show.chart("influence", "rho_histogram")

    left, right = st.columns(2)
    with left:
        st.subheader("Does what the model uses come first?", anchor=False)
        show.chart("influence", "ndcg_against_chance")
    with right:
        st.subheader("Influence by retrieval rank", anchor=False)
        show.chart("influence", "influence_by_rank")

    left, right = st.columns(2)
    with left:
        st.subheader("Influence rank vs retrieval rank", anchor=False)
        show.chart("influence", "rank_against_rank")
    with right:
        st.subheader("How concentrated the influence is", anchor=False)
        show.chart("influence", "entropy_dominance")

    st.subheader("The two orders of one question", anchor=False)
    run.slope()

    st.subheader("Failure modes", anchor=False)
    run.modes()

    run.checks()

    st.subheader("All questions", anchor=False)
    run.table()
