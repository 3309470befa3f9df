import streamlit as st

from ui import step_form, worklist
from ui.router import require_entrypoint
from ui.sections.uncertainty import run

require_entrypoint()
if step_form.opening("uncertainty", run.first):
    run.again()

    st.subheader("Semantic entropy vs agreement", anchor=False)
    run.questions()

    st.subheader("Which estimator finds incorrect answers?", anchor=False)
    run.estimators()
    run.more()

    worklist.door("uncertainty")
