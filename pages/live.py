import streamlit as st

from ui import datasets, job_panel, live, models, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Live run",
    "Ask a model about documents, then ask again with each passage left out. Where your texts are sent "
    "depends on the model: each back end says so below.",
)

live.restore()
place = None
st.subheader("1 · Questions", anchor=False)
dataset = datasets.choose()
if dataset is not None:
    st.subheader("2 · Model", anchor=False)
    choice = models.choose()
    if choice is not None:
        st.subheader("3 · Run", anchor=False)
        place = live.settings(dataset, choice)
live.keep()
with place or st.container():
    job_panel.draw(live.PAGE)
