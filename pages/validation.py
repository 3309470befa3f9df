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
        run.figures()
        with show.more():
            st.subheader("What changes for the user?", anchor=False)
            run.on_off()
            st.subheader("Each validator", anchor=False)
            run.validators()
            st.subheader("Each reason", anchor=False)
            run.reasons()
        with show.more("Answers with objections"):
            failing.draw()

    with show.more("Over time"):
        store.draw()

    if not headlines.lacks("validation"):
        st.subheader("Questions", anchor=False)
        worklist.door("validation")
