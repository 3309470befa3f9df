import streamlit as st

from ui import headlines, worklist
from ui.router import require_entrypoint
from ui.sections import retrieval_quality

require_entrypoint()
if headlines.opening("retrieval_quality"):
    st.subheader("Are the gold passages used?", anchor=False)
    retrieval_quality.places()

    st.subheader("Metrics by depth", anchor=False)
    retrieval_quality.metrics()

    worklist.door("retrieval_quality")
