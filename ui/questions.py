"""Choosing a question, and links to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from ui import cached, router, sources
from ui.plain import plain, shortened
from ui.state import session

CHOICES = 500  # a longer menu is slow in the browser; the search box narrows it
Labels = Callable[[Any], dict[str, str]]


def row(query_id: str, diagnostic: str | None = None) -> Any:
    """Return what a diagnostic says of a question, by default the question's row in the run."""
    frame = _queries() if diagnostic is None else cached.diagnosis()[diagnostic].queries
    return frame[frame["query_id"] == query_id].iloc[0]


def title(query_id: str, length: int = 90) -> str:
    """Return a question in one line for labels, safe to show; its id where it has no text."""
    found = _queries().loc[_queries()["query_id"] == query_id, "question"]
    return plain((shortened(found.iloc[0], length) if len(found) else "") or query_id, one_line=True)


def picker(key: str, wanted: str | None = None, labels_of: Labels | None = None) -> str | None:
    """Draw a menu of questions, with a search box where there are many; return the chosen id.

    ``labels_of`` makes the menu's lines, by id, from rows of the run; by default they have the labels that
    diagnostics give to the questions.
    """
    labels_of = labels_of or _labels
    frame = _queries()
    if frame.empty:
        st.info("This run has no questions.", icon=":material/inbox:")
        return None
    found = _search(frame, key)
    if found.empty:
        st.info("No question contains these words; try fewer.", icon=":material/search_off:")
        return None
    labels = labels_of(found.head(CHOICES))
    if wanted is not None and wanted not in labels:
        labels = labels_of(frame[frame["query_id"] == wanted]) | labels
    if wanted is not None:
        st.session_state[key] = wanted
    elif st.session_state.get(key) not in labels:
        st.session_state.pop(key, None)
    chosen = st.selectbox(
        "Question", list(labels), key=key, format_func=lambda q: labels.get(q, q), persist_state="session"
    )
    return chosen if chosen in labels else None


def deep_linked_picker(key: str = "inspector_question", labels_of: Labels | None = None) -> str | None:
    """Draw a menu bound to the address: a link opens its question."""
    state, asked = session(), st.query_params.get("question")
    ids = _queries()["query_id"]
    wanted = None
    if asked is not None and asked != state.question:
        if (ids == asked).any():
            wanted = asked
        else:
            st.warning(
                f"This run has no question {plain(shortened(asked, 60))}; choose another.",
                icon=":material/link_off:",
            )
    elif asked is None and state.question is not None and (ids == state.question).any():
        wanted = state.question
    chosen = picker(key, wanted, labels_of)
    if chosen is not None:
        state.question = chosen
        st.query_params["question"] = chosen
    return chosen


def link(query_id: str, label: str = "Open in the inspector", page: str = router.INSPECTOR) -> None:
    """Draw a link to a question, by default in the inspector."""
    st.page_link(
        page,
        label=label,
        icon=":material/arrow_forward:",
        query_params=sources.address(question=query_id),
    )


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


def _labels(frame: Any) -> dict[str, str]:
    """Return a line for each question: its text, and the words that diagnostics have for it."""
    words = cached.once("words for questions", lambda d: _words(d))
    return {
        str(i): " · ".join((shortened(text, 110) or str(i), *words.get(i, ())))
        for i, text in zip(frame["query_id"], frame["question"], strict=True)
    }


def _words(diagnosis: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for diagnostic in diagnosis.diagnostics:
        if diagnostic.lacks(diagnosis.run) is not None:
            continue
        frame = diagnosis[diagnostic.name].queries
        for column in diagnostic.columns:
            for query_id, value in zip(frame["query_id"], frame[column.name], strict=True):
                if isinstance(value, str):
                    found.setdefault(query_id, []).append(value.lower())
    return found
