"""A plan or a run of the Live page, while it is worked on and after."""

from __future__ import annotations

import streamlit as st

from core.pipeline import duration
from core.text.display import count
from ui import library, live, router, sources, watch
from ui.jobs import Job, registry
from ui.plain import plain
from ui.state import session


def current_job() -> Job | None:
    """Return the job that the address names, or else the session's."""
    state = session()
    asked = st.query_params.get("job")
    if asked and asked != state.job_id:
        state.job_id = asked
    job = registry().get(state.job_id)
    if job is None and asked:
        st.warning(
            "This job is not here any more: the server was restarted. Make the plan again and press Run; "
            "calls that were finished are not repeated.",
            icon=":material/link_off:",
        )
        state.job_id = None
        del st.query_params["job"]
    elif job is not None and asked != job.id:
        st.query_params["job"] = job.id
    return job


def show_job(job: Job) -> None:
    """Draw a job: its progress while it runs, then what came of it."""
    if job.active:
        _watch(job.id)
    elif job.state == "failed":
        st.error(plain(job.error), icon=":material/error:")
        _run_again(job, "Try again")
    elif job.kind == "plan" and job.result is not None:
        _plan(job)
    elif job.kind == "run":
        _finished(job)
    else:
        st.info("Cancelled.", icon=":material/block:")


@st.fragment(run_every=1.0)
def _watch(job_id: str) -> None:
    job = registry().get(job_id)
    if job is None or not job.active:
        st.rerun()
    watch.draw(job, "live", "question", _look)
    _shown_note(job)


def _look(job_id: str) -> None:
    job = registry().get(job_id)
    if job is not None and job.partial is not None:
        library.save(job.partial)
        sources.show_run(job.partial, "live", saved=True)


def _shown_note(job: Job) -> None:
    run = session().run
    shown = job.result if job.result is not None else job.partial
    if run is not None and shown is not None and run.run_id == shown.run_id:
        with st.container(horizontal=True):
            st.page_link(
                router.OVERVIEW,
                label="Overview",
                icon=":material/monitoring:",
                query_params=sources.address(),
            )
            st.page_link(
                router.INSPECTOR,
                label="Question inspector",
                icon=":material/search:",
                query_params=sources.address(),
            )


def _plan(job: Job) -> None:
    plan, choice = job.result, job.settings
    st.subheader("Plan", anchor=False)
    with st.grid(3, min_column_width=180):
        st.metric("Calls to make", f"{plan.n_to_ask:,}", border=True)
        st.metric("Prompt tokens", f"{plan.prompt_tokens:,}", border=True)
        st.metric("Expected time", duration(plan.seconds or 0) if plan.n_to_ask else "no time", border=True)
    st.dataframe(
        plan.to_frame(),
        hide_index=True,
        alt="Calls and tokens of the plan",
        column_config={
            "item": "Item",
            "count": st.column_config.NumberColumn("Count", format="localized"),
            "note": "Note",
        },
    )
    with st.expander("The prompt"):
        for part, text in plan.to_dict()["prompt"].items():
            st.caption(str(part).replace("_", " ").capitalize())
            st.text(str(text))
    claims = live.claims_choice(plan)
    if st.button("Run", icon=":material/play_arrow:", type="primary", key="live_run"):
        live.start_run(plan, choice, claims)
        st.rerun()


def _finished(job: Job) -> None:
    run = job.result
    state = session()
    if run is None:
        st.info("Cancelled before the first question was done.", icon=":material/block:")
    else:
        done = count(len(run.queries), "question")
        if job.state == "cancelled":
            st.info(f"Cancelled. What was done is kept and saved: {done}.", icon=":material/block:")
        else:
            st.success(
                f"Finished and saved: {done} in {duration(job.ended - job.started)}.",
                icon=":material/check_circle:",
            )
        if state.live.get("shown_job") != job.id:
            state.live["shown_job"] = job.id
            sources.show_run(run, "live", saved=True)
            st.rerun()
        _shown_note(job)
    if job.state == "cancelled":
        _run_again(job, "Go on from here")


def _run_again(job: Job, label: str) -> None:
    if job.kind == "run" and st.button(label, icon=":material/resume:", key="live_resume"):
        choice, plan, claims = job.settings
        live.start_run(plan, choice, claims)
        st.rerun()
