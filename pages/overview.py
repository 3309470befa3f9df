import streamlit as st

from ui import headlines, show, uploads
from ui.router import require_entrypoint

require_entrypoint()
show.heading("Overview", "What is wrong with this run, where to look, and its headline numbers.")

if show.needs_run():
    uploads.banner()
    st.subheader("Findings", anchor=False)
    headlines.findings()

    st.subheader("Headline numbers", anchor=False)
    headlines.overview()
