"""A job while it works: how far it is, the button that stops it, the one that shows what there is."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.text.display import count
from ui.jobs import Job
from ui.plain import plain


def draw(job: Job, prefix: str, noun: str, look: Callable[[str], None]) -> None:
    """Draw a job that waits or runs.

    Parameters
    ----------
    job : Job
        The job.
    prefix : str
        Begins the keys of the buttons: one for each page with jobs.
    noun : str
        What ``job.n_results`` counts, in the singular.
    look : callable
        Gets the job's id, and shows what there is so far.
    """
    if job.state == "waiting":
        st.progress(0.0, "Waiting: another job of this server is using the model.")
    elif job.meter.total:
        st.progress(job.meter.share, plain(job.meter.line()))
    else:
        st.progress(0.0, plain(job.meter.what).capitalize() + " …")
    with st.container(horizontal=True):
        if st.button("Cancel", icon=":material/cancel:", key=f"{prefix}_cancel", disabled=job.cancelled()):
            job.cancel()
        partial(job, prefix, noun, look)
    if job.cancelled():
        st.caption("Stopping after the call that is running now …")


def partial(job: Job, prefix: str, noun: str, look: Callable[[str], None]) -> None:
    """Draw the button that shows what there is so far; parameters as for `draw`."""
    if job.partial is not None:
        st.button(
            f"Look at the results so far ({count(job.n_results, noun)})",
            icon=":material/visibility:",
            key=f"{prefix}_partial",
            on_click=look,
            args=(job.id,),
        )
