"""The same change for all questions: a form, a job, the paired test, and a run for Compare."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.diagnosis import Diagnosis
from core.errors import LeadlineError
from core.pipeline import ModelChoice
from core.text.display import count
from core.whatif.every import ASKED_ANEW, ORDERS, RunChange, arm_of, run_of_arm, said, step_for
from ui import job_panel, library, router, sources
from ui.jobs import registry
from ui.plain import plain
from ui.state import session
from ui.whatif import asked, kept
from ui.work import Work

PAGE = "workbench"


def draw(query_id: str, choice: ModelChoice | None) -> None:
    """Draw what of a change holds for every question, and the button that asks all of them."""
    run = session().the_run
    k = int(run.passages.groupby("query_id").size().max())
    st.markdown("**Try it on all questions**")
    st.caption(
        "The prompt style and the model above hold for all questions. Edited and added passages, the wording "
        "of the question and the temperature belong to this one and are left out."
    )
    with st.grid(3, min_column_width=170):
        first = st.number_input("At most passages", 1, max(1, k), max(1, k), key="whatif_k")
        order = st.selectbox("Order", list(ORDERS), format_func=ORDERS.__getitem__, key="whatif_order")
        low = st.number_input(
            "Drop below a retrieval score", value=None, key="whatif_low", placeholder="Keep all",
            help="The best passage of a question always stays.",
        )  # fmt: skip
    change = RunChange(int(first) if first < k else None, order, low, kept.change(query_id).style)
    if choice is None:
        return
    other = asked.is_other(choice)
    step = step_for(change, run)
    work, n = Work((step,), choice, run), len(run.queries)
    off = job_panel.busy(PAGE) or (change == RunChange() and not other)
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button(f"Try on all {n:,}", icon=":material/playlist_play:", key="whatif_all", disabled=off):
            job_panel.start(PAGE, work)
            st.rerun()
        if st.button("Estimate cost", icon=":material/calculate:", key="whatif_plan", disabled=off):
            job_panel.estimate(PAGE, work)
            st.rerun()
        calls = count(n * (2 if other else 1), "call")
        again = ", each question also as it is, because the model is another one" if other else ""
        st.markdown(f"At most {calls}{again}." if not off else "Nothing is changed for all questions yet.")


def job() -> None:
    """Draw the job that asks all questions, and when it is done what came of it."""
    found = registry().get(session().jobs.get(PAGE))
    ended = found is not None and not found.active and found.kind == "run"
    done = found if ended and found is not None and found.result is not None else None
    if done is not None:
        # The run on screen stays: its question and the change are what the result is read with.
        session().shown_job = done.id
    job_panel.draw(PAGE)
    if done is not None:
        _result(done)


def _result(found: Any) -> None:
    """Draw the paired test of a change that all questions were asked with, and the way to Compare."""
    memory = session().kept
    if memory.get("whatif.result", ("",))[0] != found.id:
        memory["whatif.result"] = (found.id, *_tested(found))
    _, sentences, runs = memory["whatif.result"]
    with st.container(border=True):
        for sentence in sentences:
            st.markdown(plain(sentence))
        if len(runs) > 1:
            st.page_link(
                router.COMPARE,
                label="Compare the runs",
                icon=":material/compare:",
                query_params={**sources.address(), "compare": runs},
            )


def _tested(found: Any) -> tuple[list[str], list[str]]:
    """Return what a change does to all questions, in sentences, and the ids of the runs to compare."""
    wanted: Work = found.settings
    arm = arm_of(wanted.steps[0])
    runs, parent = [], wanted.run
    assert parent is not None
    try:
        fix = Diagnosis(found.result)["losses"].fix(arm.name)
        names: list[Any] = [*([ASKED_ANEW] if ASKED_ANEW in set(found.result["arms"]["arm"]) else []), arm]
        runs = [library.owned(run_of_arm(found.result, name)) for name in names]
        for run in runs:
            if library.find(run.run_id) is None:
                library.save(run)
    except LeadlineError as error:
        return [str(error)], []
    first = parent.run_id if library.find(parent.run_id) is not None else found.result.run_id
    return said(arm, fix), [first, *(run.run_id for run in runs)]
