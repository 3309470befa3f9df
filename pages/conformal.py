import streamlit as st

from ui import headlines, job_panel, show, worklist
from ui.router import require_entrypoint
from ui.sections.conformal import labels, run, store

require_entrypoint()
headlines.heading("conformal")

job_panel.draw("conformal")
if show.needs_run():
    if headlines.lacks("conformal"):
        run.first()
    else:
        headlines.body("conformal")
        run.again()

        st.subheader("What is promised, and is it kept?", anchor=False)
        run.promises()

        st.subheader("Answers in a set", anchor=False)
        run.sets()

        st.subheader("Which answers are flagged?", anchor=False)
        run.flagged()

        st.subheader("From which confidence on to answer?", anchor=False)
        run.certificate()

        run.kept_claims()

        st.subheader("Do new questions still look like the calibration?", anchor=False)
        run.drift()

        run.groups()

        st.subheader("How many labels do I need?", anchor=False)
        labels.needed()

        st.subheader("Calibration store", anchor=False)
        store.draw()

        st.subheader("Questions", anchor=False)
        worklist.door("conformal")
