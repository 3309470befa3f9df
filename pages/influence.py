import streamlit as st

from ui import headlines, worklist
from ui.router import require_entrypoint
from ui.sections.influence import run

require_entrypoint()
if headlines.opening("influence"):
    run.measured()
    run.reported()
    run.ranks()
    run.order_of_use()

    st.subheader("Failure modes", anchor=False)
    run.modes()

    run.agreement()
    run.spread()

    st.subheader("Questions", anchor=False)
    worklist.draw("influence")
