import streamlit as st

from ui import show, step_form, worklist
from ui.router import require_entrypoint
from ui.sections.uncertainty import run

require_entrypoint()
if step_form.opening("uncertainty", run.first):
    run.again()

    st.subheader("Semantic entropy vs agreement", anchor=False)
    run.questions()

    st.subheader("Which estimator finds incorrect answers?", anchor=False)
    run.estimators()
    with show.more("More figures and tables", "uncertainty_more") as part:
        if part.open:
            run.more()

    worklist.door("uncertainty")
