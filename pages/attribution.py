import streamlit as st

from ui import step_form, worklist
from ui.router import require_entrypoint
from ui.sections.attribution import run

require_entrypoint()
if step_form.opening("attribution", run.first):
    run.again()

    st.subheader("How far the bars can be read", anchor=False)
    run.readable()

    st.subheader("Passages that belong together", anchor=False)
    run.together()

    st.subheader("Passage against place", anchor=False)
    run.place()

    st.subheader("Claims: influence against support", anchor=False)
    run.disagreeing()
    run.more()

    worklist.door("attribution")
