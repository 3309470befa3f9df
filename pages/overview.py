import streamlit as st

from ui import cached, headlines, show
from ui.router import require_entrypoint
from ui.state import session

require_entrypoint()
show.heading("Overview", "Which retrieved passages do the answers really rest on?")

if show.needs_run():
    summary = cached.current_summary()
    headlines.numbers(summary)
    headlines.chance(summary)
    headlines.undefined(summary)

    st.subheader("What to look at first", anchor=False)
    headlines.attention()

    left, right = st.columns([2, 3])
    with left:
        st.subheader("Verdicts", anchor=False)
        show.figure(cached.chart("label_counts"), "label_counts")
    with right:
        st.subheader("Rank agreement of every question", anchor=False)
        show.figure(cached.chart("rho_histogram"), "rho_histogram")
    st.subheader("How concentrated the influence is", anchor=False)
    show.figure(cached.chart("entropy_dominance"), "entropy_dominance")

    headlines.reported()
    if session().run.simulated:
        headlines.planted()
