"""A change is asked: what it costs, the answer beside the run's, and how far noise alone goes."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.errors import InputError
from core.llm import CompletionCache, default_cache_path
from core.pipeline import ModelChoice
from core.pipeline.asking import Asker
from core.text.diff import word_diff
from core.text.display import count, duration
from core.whatif.asking import Version, ask, by_any_change, cost, counted, is_supported, noise
from ui import cached, headlines, job_panel, servers, show
from ui.jobs import Job, registry
from ui.plain import plain, shortened
from ui.state import session
from ui.whatif import kept

_JOB = "whatif.job"
_SHOWN = 20  # versions in the list
_MARKS = {"removed": ":red-background[− {}]", "added": ":green-background[+ {}]", "same": "{}"}


def is_other(choice: ModelChoice) -> bool:
    """Tell whether a choice names another model than the one that answered the run."""
    known, chosen = session().the_run.manifest.get("model") or {}, servers.resolved(choice)
    return known.get("backend") != chosen.backend or known.get("name") != chosen.model


def draw(query_id: str, choice: ModelChoice | None, repeats: int) -> None:
    """Draw the button with its cost, how far it is, and what came of it and of earlier ones."""
    job = registry().get(session().kept.get(_JOB))
    busy = job is not None and job.active
    if choice is not None:
        _button(query_id, choice, repeats, busy)
    if job is not None and job.active:
        _watch(job.id)
    elif job is not None and job.settings == (session().the_run.run_id, query_id):
        _take(job)
    versions, why = kept.every(query_id)
    if why is not None:
        st.warning(plain(why), icon=":material/error:")
    if versions:
        _version(versions[0])
        _list(query_id, versions)


def _button(query_id: str, choice: ModelChoice, repeats: int, busy: bool) -> None:
    run, change = session().the_run, kept.change(query_id)
    try:
        found = cost(run, query_id, change, repeats, other=is_other(choice))
    except InputError as error:
        st.error(plain(error), icon=":material/error:")
        return
    time = "" if found.seconds is None else f", about {duration(found.seconds)}"
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Ask again", icon=":material/refresh:", type="primary", key="whatif_ask", disabled=busy):
            _start(query_id, choice, repeats)
            st.rerun()
        st.markdown(
            f"At most {count(found.calls, 'call')}, about {found.tokens:,} prompt tokens{time}; answers that "
            "are known cost nothing."
        )


def _start(query_id: str, choice: ModelChoice, repeats: int) -> None:
    run, change = session().the_run, kept.change(query_id)
    # Secrets are read now, because a job's thread belongs to no session.
    opened, wanted = servers.opener(choice), servers.resolved(choice)

    def work(job: Job) -> Version:
        job.meter.what = "loading the model"
        llm = opened()
        with job.turn(registry().turns, wanted), CompletionCache(default_cache_path()) as cache:
            job.meter.what = "asking, and verifying claims"
            return ask(run, query_id, change, Asker(llm, cache, cancelled=job.cancelled), repeats)

    job = Job("workbench", "ask", "One question asked again", (run.run_id, query_id))
    session().kept[_JOB] = registry().start(job, work).id


@st.fragment(run_every=1.0)
def _watch(job_id: str) -> None:
    job = registry().get(job_id)
    if job is None or not job.active:
        st.rerun()
    job_panel.progress(job, "whatif_ask_job")


def _take(job: Job) -> None:
    """Keep what a finished job found, once; say why another one has nothing."""
    if job.state == "finished":
        session().kept.pop(_JOB)
        try:
            kept.add(job.result)
        except InputError as error:
            st.warning(plain(error), icon=":material/error:")
        return
    (st.error if job.state == "failed" else st.info)(plain(job.error))


def _version(one: Version) -> None:
    """Draw the answer beside the run's, whether it is correct and supported, and what noise does."""
    with st.container(border=True):
        st.markdown(
            f"**Answer to the changed prompt** · {plain(one.said or 'nothing changed', one_line=True)}"
        )
        if one.answer is None:
            st.error(plain(f"The call failed. {one.problem}".strip()), icon=":material/error:")
            return
        st.markdown(_diff(one.before or "", one.answer) or "*empty*")
        st.badge(one.state.capitalize(), color=_colour(one.state))  # type: ignore[arg-type]
        for line in (*noise(one), counted(one)):
            st.markdown(plain(line))
        if headlines.lacks("losses") is None and (line := by_any_change(cached.diagnosis()["losses"])):
            st.caption(plain(line))
        _claims(one.claims)


def _diff(before: str, after: str) -> str:
    """Return in Markdown what is gone from a text and what is new in it."""
    return " ".join(
        _MARKS[operation].format(plain(text, one_line=True))
        for operation, text in word_diff(before, after)
        if text.strip()
    )


def _colour(state: str) -> str:
    return {"correct": "green", "incorrect": "red"}.get(state, "gray")


def _claims(claims: Sequence[tuple[str, float | None]]) -> None:
    if not claims:
        return
    n = sum(is_supported(support) is True for _, support in claims)
    st.markdown(f"{n:,} of {count(len(claims), 'claim')} supported by a passage of this prompt:")
    said = {True: "supported", False: "not supported", None: "not judged"}
    lines = [
        f"- {plain(text, one_line=True)} ({said[is_supported(support)]}"
        + ("" if support is None else f", best support {support:.2f}")
        + ")"
        for text, support in claims
    ]
    st.markdown("\n".join(lines))


def _list(query_id: str, versions: Sequence[Version]) -> None:
    """Draw the versions that were asked, newest first, each with a button that puts it on the bench."""
    st.markdown(f"**Asked so far** ({count(len(versions), 'version')})")
    for place, one in enumerate(versions[:_SHOWN]):
        with st.container(horizontal=True, vertical_alignment="center"):
            text = shortened(one.answer, 80) if one.answer else one.status
            st.markdown(
                f"{plain(one.said or 'nothing changed', one_line=True)}: “{plain(text)}”, {one.state}"
            )
            show.button(
                "Use", "restore", f"whatif_use_{place}", kept.put, query_id, lambda change=one.change: change
            )
