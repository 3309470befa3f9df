import streamlit as st

from ui import datasets, live, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Live run",
    "Ask a model about documents, then ask again with each passage left out. The embedded model runs on "
    "this machine; your documents are sent nowhere.",
)

job = live.current_job()
if job is not None:
    with st.container(border=True):
        live.show_job(job)

st.subheader("1 · Questions", anchor=False)
dataset = datasets.choose()
if dataset is not None:
    st.subheader("2 · Model and options", anchor=False)
    live.settings_form(dataset)
st.caption(
    "Then: the plan says how many calls the run needs and how long it will take. Nothing runs before "
    "you press Run."
)
