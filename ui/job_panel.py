"""A job of any step, on the page that it belongs to: its cost, its progress, and what came of it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.pipeline import CallPlan
from core.run import Run
from core.text.display import count, duration
from ui import library, people, router, sections, show, sources, work
from ui.jobs import Job, registry
from ui.plain import plain, shortened
from ui.state import session
from ui.work import Work


def estimate(page: str, wanted: Work) -> None:
    """Start an estimate; it takes the place of one that is not finished."""
    old = registry().get(session().jobs.get(page))
    if old is not None and old.kind == "plan":
        old.cancel()
    _adopt(work.plan(page, wanted))


def start(page: str, wanted: Work) -> None:
    """Start work; the job's id goes into the address, so that a reload finds it."""
    _adopt(work.carry_out(page, wanted))


def _adopt(job: Job) -> None:
    session().jobs[job.page] = job.id
    st.query_params["job"] = job.id


def busy(page: str) -> bool:
    """Tell whether nothing can be started on this page: a run waits or works, or the person may not."""
    job = registry().get(session().jobs.get(page))
    return not people.may("run") or (job is not None and job.active and job.kind == "run")


def draw(page: str) -> None:
    """Draw the job of a page, if there is one."""
    job = _current(page)
    if job is None:
        return
    if session().run is None and job.settings.dataset is None:
        # A reload lost a run that was never saved; the job still has it.
        run = job.settings.run
        sources.show_run(run, "saved", saved=library.find(run.run_id) is not None)
        st.rerun()
    if not job.active:
        _told().add(job.id)
    with st.container(border=True):
        if job.active:
            _watch(job.id)
        elif job.state == "failed":
            st.error(plain(job.error), icon=":material/error:")
            _partial(job)
            _again(job, "Try again")
        elif job.kind == "plan":
            _plan(job)
        elif job.result is None:
            st.info(plain(_cancelled(job)), icon=":material/block:")
            _again(job, "Continue")
        else:
            _finished(job, job.result)


def _current(page: str) -> Job | None:
    """Return the job that the address names, or else the session's."""
    state, asked = session(), st.query_params.get("job")
    if asked and registry().get(asked) is None:
        st.warning(
            "This job no longer exists, because the server was restarted, or it is another person's. Start "
            "it again; calls that were finished are not repeated.",
            icon=":material/link_off:",
        )
        del st.query_params["job"]
    job = registry().get(state.jobs.get(page))
    if job is None:
        state.jobs.pop(page, None)
        return None
    job.seen()
    if asked != job.id:
        st.query_params["job"] = job.id
    return job


def status(here: str) -> None:
    """Draw, on every page, the session's jobs that go on or whose end was not seen; ``here`` is the page."""
    asked = registry().get(st.query_params.get("job"))
    if asked is not None:
        session().jobs[asked.page] = asked.id
    if any(job.active for job in _news(here)):
        _ticking(here)
    else:
        _status(here)


@st.fragment(run_every=2.0)
def _ticking(here: str) -> None:
    _status(here)


def _status(here: str) -> None:
    for job in _news(here):
        page = router.page_of(job.page)
        with st.container(border=True, gap="xsmall"):
            st.markdown(f"**{plain(shortened(job.title, 50))}**")
            if job.active:
                progress(job, f"status_{job.id}")
            else:
                ended = {"finished": "Finished.", "failed": "Failed.", "cancelled": "Cancelled."}
                st.caption(ended[job.state])
            if page is not None:
                sources.link(page, "Show", "open_in_full", job=job.id)


def _news(here: str) -> list[Job]:
    """Return the session's jobs that go on, and those that ended unseen: the page of a job says more."""
    found = [registry().get(job_id) for job_id in session().jobs.values()]
    jobs = [job for job in found if job is not None]
    return [job for job in jobs if job.active or not (job.page == here or job.id in _told())]


def _told() -> set[str]:
    """Return the ids of the jobs whose end this session has seen."""
    told: set[str] = st.session_state.setdefault("jobs_told", set())
    return told


@st.fragment(run_every=1.0)
def _watch(job_id: str) -> None:
    job = registry().get(job_id)
    if job is None or not job.active:
        st.rerun()
    progress(job, job.kind)
    _in_progress(job)
    _partial(job)
    _links(job)


def progress(job: Job, key: str) -> None:
    """Draw how far a job is, or its place among those that wait, and the button that stops it."""
    job.seen()
    if job.place:
        st.progress(0.0, plain(f"Waiting for {job.waits_for}: place {job.place}", one_line=True))
    elif job.meter.total:
        st.progress(job.meter.share, plain(job.meter.line(), one_line=True))
    else:
        st.progress(0.0, plain(job.meter.what or "starting", one_line=True).capitalize() + " …")
    if st.button("Cancel", icon=":material/cancel:", key=f"{key}_cancel", disabled=job.cancelled()):
        job.cancel()
    if job.cancelled():
        st.caption("Stopping after the call that is running now …")


def _in_progress(job: Job) -> None:
    """Draw the answers to the question in progress, where the step's section knows how."""
    found = job.in_progress()
    own = None if job.step is None else sections.of(job.step.name)
    if found is not None and own is not None and hasattr(own, "in_progress"):
        own.in_progress(job.begun, *found)


def _cancelled(job: Job) -> str:
    """Say what a cancelled job has done, what is kept, and what remains."""
    run, step, wanted = job.result, job.step, job.settings
    if run is None and not job.n_answers:
        return "Cancelled before the model was asked; the run on screen stays as it was."
    if run is None:
        kept = f"{count(job.n_answers, 'answered call is', 'answered calls are')} kept"
        return f"Cancelled before the first question was done: {kept}, and the run on screen stays as it was."
    n, done = len(run.queries), work.n_done(run, step)
    rest = [one.title for one in wanted.steps[wanted.steps.index(step) + 1 :]]
    left = f"{count(n - done, 'question remains', 'questions remain')}" if done < n else ""
    where = f" in “{step.title}”" if wanted.steps.index(step) else ""
    missing = "; ".join(filter(None, [left, f"not begun: {', '.join(rest)}" if rest else ""]))
    return (
        f"Cancelled{where}: {done:,} of {count(n, 'question')} {'is' if done == 1 else 'are'} done and "
        f"saved; {missing}. Answered calls are kept, and Continue does not repeat them."
    )


def _partial(job: Job) -> None:
    if job.partial is not None:
        label = f"Look at the results so far ({_done(job.partial, job)})"
        show.button(label, "visibility", "job_partial", _look, job.id)


def _look(job_id: str) -> None:
    job = registry().get(job_id)
    shown = None if job is None else job.result or job.partial
    if job is not None and shown is not None:
        sources.show_run(shown, _origin(job))
        sources.save_current()


def _plan(job: Job) -> None:
    found: CallPlan | None = job.result
    if found is None:
        st.info(plain(job.error) or "Cancelled.", icon=":material/block:")
        return
    about = sum(step.about or 0 for step in found.steps)
    st.subheader("Cost", anchor=False)
    with st.grid(3, min_column_width=180):
        to_ask = f"{'about ' if about else ''}{found.n_to_ask + about:,}"
        st.metric("Calls to make", to_ask, border=True)
        st.metric("Prompt tokens", f"{found.prompt_tokens:,}", border=True)
        nothing = not found.n_to_ask and not about
        took = "0 s (cached)" if nothing else "unknown" if found.seconds is None else duration(found.seconds)
        st.metric("Expected time", took, border=True)
    st.dataframe(
        found.to_frame(),
        hide_index=True,
        alt="Calls and tokens",
        column_config={
            "item": "Item",
            "count": st.column_config.NumberColumn("Count", format="localized"),
            "note": "Note",
        },
    )
    prompt = found.run.manifest.get("prompt")
    if prompt and job.settings.dataset is not None:
        with st.expander("The prompt"):
            for part, text in prompt.items():
                st.caption(plain(str(part).replace("_", " ").capitalize()))
                st.text(str(text))
    off = not people.may("run")
    if st.button("Run", icon=":material/play_arrow:", type="primary", key="job_run", disabled=off):
        wanted: Work = job.settings
        # What was retrieved for the estimate need not be retrieved again.
        start(job.page, wanted if wanted.dataset is None else replace(wanted, run=found.run, in_place=True))
        st.rerun()


def _finished(job: Job, run: Run) -> None:
    state, done = session(), _done(run, job)
    if job.state == "cancelled":
        st.info(plain(_cancelled(job)), icon=":material/block:")
    else:
        took = duration(job.ended - job.started)
        st.success(f"Finished and saved: {done} in {took}.", icon=":material/check_circle:")
    shown = None if state.run is None else state.run.run_id
    wanted: Work = job.settings
    expected = wanted.dataset is not None or shown in (None, run.run_id, wanted.run and wanted.run.run_id)
    if state.shown_job != job.id and expected:
        state.shown_job = job.id
        sources.show_run(run, _origin(job), saved=True)
        st.rerun()
    if shown != run.run_id:
        show.button("Show the result", "visibility", "job_result", _look, job.id)
    _links(job)
    if job.state == "cancelled":
        _again(job, "Continue")


def _again(job: Job, label: str) -> None:
    """Draw the button that goes on with the same work."""
    off = not people.may("run")
    if job.kind == "run" and st.button(label, icon=":material/resume:", key="job_resume", disabled=off):
        start(job.page, work.again(job))
        st.rerun()


def _links(job: Job) -> None:
    """Draw links to what is shown of a job's run."""
    run, shown = session().run, job.result or job.partial
    if job.kind == "run" and run is not None and shown is not None and run.run_id == shown.run_id:
        with st.container(horizontal=True):
            sources.link(router.OVERVIEW, "Overview", "monitoring")
            sources.link(router.WORKBENCH, "Workbench", "search")


def _done(run: Run, job: Job) -> str:
    """Say how many questions the newest step has done."""
    begun = [step for step in job.settings.steps if step.name in run.manifest.get("steps", {})]
    return count(work.n_done(run, begun[-1]) if begun else len(run.queries), "question")


def _origin(job: Job) -> str:
    return "live" if job.settings.dataset is not None else "saved"
