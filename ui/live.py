"""The live run: how passages are found, what is asked about them, and what it will cost."""

from __future__ import annotations

import streamlit as st

from core.pipeline import ModelChoice, RunOptions
from core.retrieval import EMBEDDING_RETRIEVERS, RETRIEVERS
from core.sources.dataset import Dataset
from ui import job_panel, step_form
from ui.datasets import whole_number
from ui.work import Work

PAGE = "live"
_RETRIEVERS = {
    "bm25": "BM25",
    "bm25s": "BM25, for large collections",
    "dense": "Embeddings",
    "hybrid": "BM25 and embeddings",
}


def settings(dataset: Dataset, choice: ModelChoice) -> None:
    """Draw the options of the run, and the button that estimates its cost."""
    retrieval = _retrieval(dataset)
    steps = step_form.every_step(PAGE, choice)
    if st.button(
        "Estimate cost",
        icon=":material/calculate:",
        type="primary",
        key="estimate",
        disabled=steps is None,
        help="How many calls the run needs, and how long it will take. A few calls time the model; nothing "
        "else is asked before you press Run.",
    ):
        job_panel.estimate(PAGE, Work(steps or (), choice, dataset=dataset, retrieval=retrieval))
        st.rerun()


def _retrieval(dataset: Dataset) -> RunOptions:
    """Draw how many passages there are, and how they are retrieved where there are documents."""
    usual = RunOptions()
    with st.grid(4, min_column_width=170):
        k = whole_number(
            "Passages k", "live_k", 1, 100, usual.k, "Passages in the prompt; one more call for each."
        )
        if all(question.passages is not None for question in dataset.questions):
            return RunOptions(k=k)
        retriever = st.selectbox(
            "Retriever",
            RETRIEVERS,
            key="live_retriever",
            format_func=lambda name: _RETRIEVERS.get(name, name),
            persist_state="session",
        )
        words = whole_number("Words per passage", "live_words", 10, 5000, usual.passage_words)
        if retriever not in EMBEDDING_RETRIEVERS:
            return RunOptions(k=k, retriever=retriever, passage_words=words)
        name = st.text_input(
            "Embedding model",
            key="live_embedder",
            placeholder="Default: all-MiniLM-L6-v2, packaged",
            persist_state="session",
            help="A name or folder that sentence-transformers knows; it runs on this machine.",
        )
    embedder = (name or "").strip() or None
    return RunOptions(k=k, retriever=retriever, passage_words=words, embedding_model=embedder)
