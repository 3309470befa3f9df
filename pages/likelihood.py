import streamlit as st

from ui import headlines, job_panel, show, worklist
from ui.router import require_entrypoint
from ui.sections.likelihood import run

require_entrypoint()
headlines.heading("likelihood")

job_panel.draw("likelihood")
if show.needs_run():
    if headlines.lacks("likelihood"):
        run.first()
    else:
        run.approximate()
        headlines.body("likelihood")
        run.again()

        st.subheader("Effect of each passage on the given and the correct answer", anchor=False)
        run.evidence()
        run.more()

        st.subheader("Questions", anchor=False)
        worklist.door("likelihood")
