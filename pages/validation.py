import streamlit as st

from ui import headlines, job_panel, show, worklist
from ui.router import require_entrypoint
from ui.sections.validation import failing, run, store

require_entrypoint()
headlines.heading("validation")

job_panel.draw("validation")
if show.needs_run():
    if headlines.lacks("validation"):
        run.first()
    else:
        headlines.body("validation")
        run.again()

        st.subheader("Which validators tell incorrect answers from correct ones?", anchor=False)
        run.validators()

        st.subheader("What do they object to?", anchor=False)
        run.reasons()

        st.subheader("What changes for the user?", anchor=False)
        run.on_off()

        st.subheader("Answers with objections", anchor=False)
        failing.draw()

    st.subheader("Over time", anchor=False)
    store.draw()

    if not headlines.lacks("validation"):
        st.subheader("Questions", anchor=False)
        worklist.door("validation")
