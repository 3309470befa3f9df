import streamlit as st

from ui import show, step_form, worklist
from ui.router import require_entrypoint
from ui.sections.validation import question, run, store
from ui.state import session

require_entrypoint()
is_done = step_form.opening("validation", run.first)
if is_done:
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
        question.failing()
if session().run is not None:
    with show.more("Over time"):
        store.draw()
if is_done:
    worklist.door("validation")
