import streamlit as st

from ui import step_form, worklist
from ui.router import require_entrypoint
from ui.sections.likelihood import run

require_entrypoint()
if step_form.opening("likelihood", run.first):
    run.approximate()
    run.again()

    st.subheader("Effect of each passage on the given and the correct answer", anchor=False)
    run.evidence()
    run.more()

    worklist.door("likelihood")
