import streamlit as st

from ui import datasets, live, live_job, models, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Live run",
    "Ask a model about documents, then ask again with each passage left out. Where your texts are sent "
    "depends on the model: each back end says so below.",
)

job = live_job.current_job()
if job is not None:
    with st.container(border=True):
        live_job.show_job(job)

st.subheader("1 · Questions", anchor=False)
dataset = datasets.choose()
if dataset is not None:
    st.subheader("2 · Model", anchor=False)
    choice = models.choose()
    if choice is not None:
        st.subheader("3 · Options", anchor=False)
        live.settings(dataset, choice)
st.caption(
    "Then: the plan says how many calls the run needs and how long it will take. Nothing runs before "
    "you press Run."
)
