import streamlit as st

from ui import glossary, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Methods and glossary", "What every number means, how it is computed, and what it cannot tell you."
)

glossary.method()
st.subheader("Metrics", anchor=False)
glossary.metrics()
st.subheader("What chance alone gives", anchor=False)
glossary.chance_table()
st.subheader("Failure modes", anchor=False)
glossary.modes()
st.subheader("Claims and evidence", anchor=False)
glossary.claims()
st.subheader("Why a number may be undefined", anchor=False)
glossary.reasons()
st.subheader("Limits", anchor=False)
glossary.limits()
st.subheader("Tables and columns", anchor=False)
glossary.tables()
