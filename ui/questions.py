"""Choosing a question, and links to one."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from ui import cached, router, sources
from ui.plain import plain, shortened
from ui.state import session

CHOICES = 500  # a longer menu is slow in the browser; the search box narrows it


def row(query_id: str, diagnostic: str | None = None) -> Any:
    """Return what a diagnostic says of a question, by default the question's row in the run."""
    frame = _queries() if diagnostic is None else cached.diagnosis()[diagnostic].queries
    return frame[frame["query_id"] == query_id].iloc[0]


def title(query_id: str, length: int = 90) -> str:
    """Return a question in one line for labels, safe to show; its id where it has no text."""
    found = _queries().loc[_queries()["query_id"] == query_id, "question"]
    return plain((shortened(found.iloc[0], length) if len(found) else "") or query_id, one_line=True)


def picker(key: str, wanted: str | None = None, of: str | None = None) -> str | None:
    """Draw a menu of questions, with a search box where there are many; return the chosen id.

    Each line has the question and what the diagnostic ``of`` has in its columns; by default the labels that
    all of them give.
    """
    frame = _queries()
    if frame.empty:
        st.info("This run has no questions.", icon=":material/inbox:")
        return None
    found = _search(frame, key)
    if found.empty:
        st.info("No question contains these words; try fewer.", icon=":material/search_off:")
        return None
    labels = _labels(found.head(CHOICES), of)
    if wanted is not None and wanted not in labels:
        labels = _labels(frame[frame["query_id"] == wanted], of) | labels
    if wanted is not None:
        st.session_state[key] = wanted
    elif st.session_state.get(key) not in labels:
        st.session_state.pop(key, None)
    chosen = st.selectbox(
        "Question",
        list(labels),
        key=key,
        format_func=lambda q: labels.get(q, q),
        persist_state="session",
    )
    return chosen if chosen in labels else None


def open_link(query_id: str, label: str = "Open in the workbench") -> None:
    """Draw a link to a question in the workbench."""
    sources.link(router.WORKBENCH, label, question=query_id)


def link(query_id: str, label: str = "Open in the workbench", page: str = router.WORKBENCH) -> None:
    """Draw a link to a question, by default in the workbench."""
    sources.link(page, label, question=query_id)


def _queries() -> pd.DataFrame:
    run = session().run
    assert run is not None, "pages ask for questions only when a run is there"
    return run.queries


def _search(frame: Any, key: str) -> Any:
    if len(frame) <= CHOICES:
        return frame
    words = st.text_input(
        "Find a question",
        key=f"{key}_search",
        persist_state="session",
        placeholder="Words of the question, or its id",
    )
    if words and words.strip():
        text = frame["question"].fillna("") + " " + frame["query_id"]
        for word in words.split():
            hit = text.str.contains(word, case=False, regex=False)
            frame, text = frame[hit], text[hit]
    if len(frame) > CHOICES:
        st.caption(f"{len(frame):,} questions; the menu lists the first {CHOICES}.")
    return frame


def _labels(frame: Any, of: str | None) -> dict[str, str]:
    """Return a line for each question: its text, and what one diagnostic says of it, or the labels of all."""
    diagnosis, ids = cached.diagnosis(), frame["query_id"]
    lines = [[shortened(text, 110) or str(i)] for i, text in zip(ids, frame["question"], strict=True)]
    for diagnostic in diagnosis.diagnostics:
        if of not in (None, diagnostic.name) or diagnostic.lacks(diagnosis.run) is not None:
            continue
        found = diagnosis[diagnostic.name].queries.set_index("query_id").loc[ids]
        for column in (c for c in diagnostic.columns if not c.is_list):
            for line, value in zip(lines, found[column.name], strict=True):
                if isinstance(value, str):
                    line.append(value.lower())
                elif of is not None:
                    line.append(f"{column.title} {column.text(value)}")
    return {str(i): " · ".join(line) for i, line in zip(ids, lines, strict=True)}
