import streamlit as st

from ui import agreement, headlines, sections, show, uploads, worklist
from ui.router import require_entrypoint

require_entrypoint()
show.heading("Overview", "What is wrong with this run, what to do, and which questions to read.")

if show.needs_run():
    uploads.banner()
    headlines.verdict()
    sections.overview()
    headlines.overview()
    headlines.all_findings()
    show.export("html", "Download report (HTML)")

    st.subheader("Questions", anchor=False)
    worklist.draw("overview")
    agreement.draw()
