import streamlit as st

from ui import headlines, job_panel, show, worklist
from ui.router import require_entrypoint
from ui.sections.uncertainty import run

require_entrypoint()
headlines.heading("uncertainty")

job_panel.draw("uncertainty")
if show.needs_run():
    if headlines.lacks("uncertainty"):
        run.first()
    else:
        headlines.body("uncertainty")
        run.again()

        st.subheader("Semantic entropy vs agreement", anchor=False)
        run.questions()

        st.subheader("Which estimator finds incorrect answers?", anchor=False)
        run.estimators()
        run.more()

        st.subheader("Questions", anchor=False)
        worklist.door("uncertainty")
