"""The job that finds the claims of a run and has them judged, while it works and after."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from core.llm import CompletionCache, default_cache_path
from core.pipeline import duration
from core.pipeline.claims import find_claims
from core.pipeline.claims_options import ClaimsOptions
from core.pipeline.claims_run import run_for_claims
from core.run import Run
from core.text.display import count
from ui import library, servers, sources, watch
from ui.jobs import Job, registry
from ui.plain import plain
from ui.servers import Choice
from ui.state import session

KIND = "claims"


@dataclass(frozen=True, slots=True)
class ClaimsWork:
    """What a job is to do.

    Attributes
    ----------
    run : Run
        The run whose answers are looked at.
    options : ClaimsOptions
        Who finds the claims and who judges.
    choice : Choice or None
        The language model, where one is asked.
    in_place : bool
        Go on with the run's own claims, instead of making a new run.
    """

    run: Run
    options: ClaimsOptions
    choice: Choice | None = None
    in_place: bool = False


def start(work: ClaimsWork) -> None:
    """Start a job; its id goes into the address, so that a reload finds it."""
    open_model = servers.opener(work.choice) if work.choice is not None else None

    def run(job: Job) -> Run | None:
        job.meter.what = "loading the model, reading the first answers"
        llm = open_model() if open_model is not None and work.options.needs_llm else None
        source = _source(work, None if llm is None else llm.name)

        def arrived(partial: Run) -> None:
            job.partial, job.n_results = partial, int(partial.manifest["claims"].get("n_claims", 0))

        with CompletionCache(default_cache_path()) as cache:
            found = find_claims(
                source,
                work.options,
                llm=llm,
                cache=cache,
                progress=job.meter.update,
                cancelled=job.cancelled,
                on_question=arrived,
            )
        if job.cancelled() and found["claims"].empty:
            return None
        library.save(found)
        return found

    job = Job(KIND, f"Claims of {work.run.name}", settings=work)
    job.meter.unit = "answers"
    registry().start(job, run)
    session().claims_job = job.id
    st.query_params["job"] = job.id


def _source(work: ClaimsWork, judge: str | None) -> Run:
    """Return the run to fill: a new one, or what an earlier job of the same kind left of it."""
    if work.in_place:
        return work.run
    derived = run_for_claims(work.run, work.options, judge)
    saved = library.find(derived.run_id)
    return Run.load(saved.folder) if saved is not None else derived


def current() -> Job | None:
    """Return the job that the address names, or else the session's."""
    state, asked = session(), st.query_params.get("job")
    job = registry().get(asked or state.claims_job)
    if job is not None and job.kind == KIND:
        state.claims_job = job.id
        if asked != job.id:
            st.query_params["job"] = job.id
        return job
    if asked:
        st.warning(
            "This job is not here any more: the server was restarted. Start it again; calls of a model that "
            "were finished are not repeated.",
            icon=":material/link_off:",
        )
        del st.query_params["job"]
    state.claims_job = None
    return None


def busy() -> bool:
    """Tell whether a job of this page still waits or runs."""
    job = registry().get(session().claims_job)
    return job is not None and job.active


def panel() -> None:
    """Draw the job of this page, if there is one: its progress, then what came of it."""
    job = current()
    if job is None:
        return
    if session().run is None:  # a reload lost a run that was never saved; the job still has it
        sources.show_run(job.settings.run, "saved")
        st.rerun()
    with st.container(border=True):
        if job.active:
            _watch(job.id)
        elif job.state == "failed":
            st.error(plain(job.error), icon=":material/error:")
            watch.partial(job, KIND, "claim", _look)
            _start_again(job, "Try again")
        elif job.result is None:
            st.info("Cancelled before the first answer was done.", icon=":material/block:")
            _start_again(job, "Go on from here")
        else:
            _finished(job, job.result)


@st.fragment(run_every=1.0)
def _watch(job_id: str) -> None:
    job = registry().get(job_id)
    if job is None or not job.active:
        st.rerun()
    watch.draw(job, KIND, "claim", _look)


def _look(job_id: str) -> None:
    job = registry().get(job_id)
    shown = None if job is None else job.result or job.partial
    if shown is not None:
        library.save(shown)
        sources.show_run(shown, "saved", saved=True)


def _finished(job: Job, run: Run) -> None:
    state, facts = session(), run.manifest.get("claims") or {}
    done = count(int(facts.get("n_claims", 0)), "claim")
    if job.state == "cancelled":
        st.info(f"Cancelled. What was done is kept and saved: {done}.", icon=":material/block:")
    else:
        took = duration(job.ended - job.started)
        st.success(f"Finished and saved in {took}: {done}.", icon=":material/check_circle:")
    shown = None if state.run is None else state.run.run_id
    if state.live.get("shown_claims") != job.id and shown in (run.run_id, job.settings.run.run_id, None):
        state.live["shown_claims"] = job.id
        sources.show_run(run, "saved", saved=True)
        st.rerun()
    if shown != run.run_id:
        st.button(
            "Show the result",
            icon=":material/visibility:",
            key="claims_result",
            on_click=_look,
            args=(job.id,),
        )
    if job.state == "cancelled":
        _start_again(job, "Go on from here")


def _start_again(job: Job, label: str) -> None:
    """Draw the button that does the same again; what was judged is kept."""
    if st.button(label, icon=":material/resume:", key="claims_resume"):
        done = job.result or job.partial
        work = job.settings
        start(work if done is None else replace(work, run=done, in_place=True))
        st.rerun()
