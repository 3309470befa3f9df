import streamlit as st

from ui import step_form, worklist
from ui.router import require_entrypoint
from ui.sections.losses import run

require_entrypoint()
if step_form.opening("losses", run.lacking):
    if run.counted():
        st.subheader("Where each answer is lost", anchor=False)
        run.ladder()
        run.again()

        st.subheader("What each fix brings, and what it breaks", anchor=False)
        run.fixes()
        run.more()
    else:
        run.first()

    worklist.door("losses")
