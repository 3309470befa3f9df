"""The live run: how passages are found, what is asked about them, and what it will cost."""

from __future__ import annotations

import os
import secrets
from typing import Any

import streamlit as st

from core.pipeline import ModelChoice, RunOptions
from core.pipeline.cluster import HERE, RAY, Place
from core.pipeline.steps import asks_questions
from core.retrieval import EMBEDDING_RETRIEVERS, RETRIEVERS
from core.sources.dataset import Dataset
from core.text.display import count
from ui import job_panel, models, servers, show, step_form
from ui.datasets import whole_number
from ui.jobs import Draft, registry
from ui.state import session
from ui.work import Work

PAGE = "live"
_PREFIX = "live_"  # of the keys of all inputs on the page, and of no button
_ID, _AT_FIRST = "draft_id", "draft_at_first"
_PASSAGES = 6  # with these, one question takes eight calls
_RETRIEVERS = {
    "bm25": "BM25",
    "bm25s": "BM25, for large collections",
    "dense": "Embeddings",
    "hybrid": "BM25 and embeddings",
}


def settings(dataset: Dataset, choice: ModelChoice) -> Any:
    """Draw the buttons, the options below them, folded, and return the place between for how far it is."""
    buttons, progress = st.container(horizontal=True), st.container()
    with st.expander("Options: passages"):
        retrieval = _retrieval(dataset)
    labelled = sum(bool(question.reference_answers) for question in dataset.questions)
    steps = step_form.every_step(PAGE, choice, labelled)
    off = steps is None or job_panel.busy(PAGE)
    place = _place(choice)
    work = Work(steps or (), choice, dataset=dataset, retrieval=retrieval, place=place)
    with buttons:
        label, icon = f"Run ({_calls(work)})", ":material/play_arrow:"
        run = st.button(label, icon=icon, type="primary", key="run_now", disabled=off)
        estimate = st.button(
            "Estimate cost",
            icon=":material/calculate:",
            key="estimate",
            disabled=off,
            help="How many calls the run needs, and how long it will take. A few calls time the model; "
            "nothing else is asked before you press Run.",
        )
    if run or estimate:
        (job_panel.start if run else job_panel.estimate)(PAGE, work)
        st.rerun()
    return progress


def _place(choice: ModelChoice) -> Place:
    """Draw where the questions are worked on, where an administrator has named a cluster.

    Workers read keys from their own environment, so an address that a visitor has typed is asked from here.
    """
    address = os.environ.get("LEADLINE_RAY", "")
    if not address or servers.without_key(choice):
        return Place()
    there = RAY if address == "local" else address
    titles = {
        HERE: "This server",
        there: "The cluster's workers" if there != RAY else "Workers of this server",
    }
    return Place(show.menu("Model calls from", titles, "live_place"))


def _calls(work: Work) -> str:
    """Return how many calls the run makes at most, as far as that is known before anything is retrieved."""
    assert work.dataset is not None and work.retrieval is not None, "the work is that of a data set"
    k = work.retrieval.k
    given = [k if one.passages is None else min(k, len(one.passages)) for one in work.dataset.questions]
    # Only the step that answers is known to make calls before it has been planned.
    steps: list[Any] = [step for step in work.steps if asks_questions(step)]
    first = sum(step.n_calls(k) for step in steps for k in given)
    more = any(step.needs_llm and not asks_questions(step) for step in work.steps)
    return ("over " if more else "") + count(first, "call")


def _retrieval(dataset: Dataset) -> RunOptions:
    """Draw how many passages there are, and how they are retrieved where there are documents."""
    usual = RunOptions(k=_PASSAGES)
    with st.grid(4, min_column_width=170):
        k = whole_number(
            "Passages k", "live_k", 1, 100, usual.k, "Passages in the prompt; one more call for each."
        )
        if all(question.passages is not None for question in dataset.questions):
            return RunOptions(k=k)
        titles = {name: _RETRIEVERS.get(name, name) for name in RETRIEVERS}
        retriever = show.menu("Retriever", titles, "live_retriever")
        words = whole_number("Words per passage", "live_words", 10, 5000, usual.passage_words)
        if retriever not in EMBEDDING_RETRIEVERS:
            return RunOptions(k=k, retriever=retriever, passage_words=words)
        about, packaged = "It runs on this machine.", "Default: all-MiniLM-L6-v2, packaged"
        embedder = models.local("Embedding model", "live_embedder", about, default=packaged)
    return RunOptions(k=k, retriever=retriever, passage_words=words, embedding_model=embedder)


# What is entered is kept on the server, so that a reload of the browser loses nothing. The address names it
# by an id that cannot be guessed. Keys are never entered; an address with a login or a query is not kept.


def restore() -> None:
    """Fill the inputs of a new session with what the address names; call it before they are drawn."""
    asked = st.query_params.get("draft")
    if asked is None or asked == st.session_state.get(_ID):
        return
    draft = registry().draft(asked)
    if draft is None:
        del st.query_params["draft"]
        return
    st.session_state[_ID] = asked
    st.session_state.update(draft.inputs)
    session().live.update(draft.kept)


def keep() -> None:
    """Keep the inputs, once there are any; call it after they are drawn."""
    inputs = {str(key): value for key, value in st.session_state.items() if _is_input(str(key), value)}
    kept = session().live
    at_first = st.session_state.setdefault(_AT_FIRST, inputs)
    if _ID not in st.session_state and inputs == at_first and not kept.get("uploaded"):
        return
    asked = st.session_state.setdefault(_ID, secrets.token_urlsafe(18))
    registry().keep(asked, Draft(inputs, dict(kept)))
    if st.query_params.get("draft") != asked:
        st.query_params["draft"] = asked


def _is_input(key: str, value: object) -> bool:
    plain = value is None or isinstance(value, str | int | float | list)
    return key.startswith(_PREFIX) and plain and not ("_url_" in key and {"@", "?"} & set(str(value)))
