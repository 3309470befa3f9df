import streamlit as st

from ui import headlines, job_panel, show, worklist
from ui.router import require_entrypoint
from ui.sections.conformal import labels, run, store, whatif

require_entrypoint()
headlines.heading("conformal")

job_panel.draw("conformal")
if show.needs_run():
    is_calibrated = not headlines.lacks("conformal")
    if is_calibrated:
        headlines.body("conformal")
        run.again()

    st.subheader("From which confidence on to answer?", anchor=False)
    whatif.draw()

    if is_calibrated:
        with show.more("What is promised, and is it kept?"):
            run.promises()

        st.subheader("Which answers are flagged?", anchor=False)
        with show.more("Flagged answers, sets, claims, drift and groups"):
            run.flagged()
            st.subheader("Answers in a set", anchor=False)
            run.sets()
            run.kept_claims()
            st.subheader("Do new questions still look like the calibration?", anchor=False)
            run.drift()
            run.groups()
    else:
        run.first()

    with show.more("How many labels do I need?"):
        labels.needed()

    with show.more("Calibration store"):
        store.draw()

    if is_calibrated:
        worklist.door("conformal")
