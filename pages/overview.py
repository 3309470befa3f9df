import streamlit as st

from ui import headlines, show, uploads, worklist
from ui.router import require_entrypoint

require_entrypoint()
show.heading("Overview", "What is wrong with this run, where to look, and its headline numbers.")

if show.needs_run():
    uploads.banner()
    st.subheader("Findings", anchor=False)
    headlines.findings()

    st.subheader("Headline numbers", anchor=False)
    headlines.overview()
    st.subheader("Questions", anchor=False)
    worklist.draw("overview")
