import streamlit as st

from ui import headlines, job_panel, show, worklist
from ui.router import require_entrypoint
from ui.sections.confidence import calibrate, combined, compare, run, whatif

require_entrypoint()
headlines.heading("confidence")

job_panel.draw("confidence")
if show.needs_run():
    if headlines.lacks("confidence"):
        run.first()
    else:
        usable = run.is_usable()
        headlines.body("confidence")
        run.again()

        if usable:
            st.subheader("How sure, and how often right?", anchor=False)
            run.bands()

            st.subheader("What if?", anchor=False)
            whatif.draw()

            st.subheader("Does the confidence mean what it says?", anchor=False)
            run.reliability()

        st.subheader("Calibrate", anchor=False)
        calibrate.draw()

        if usable:
            st.subheader("Compare two configurations", anchor=False)
            compare.draw()

        st.subheader("Combined uncertainty", anchor=False)
        combined.draw()

        st.subheader("Questions", anchor=False)
        worklist.door("confidence")
