"""Choosing a question, and tables of questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from core.definitions import LABELS, MODES
from core.report.exports import csv_bytes
from ui import cached, headlines, router, show, sources
from ui.plain import plain, shortened
from ui.state import session

CHOICES = 500  # a longer menu is slow in the browser; the search box narrows it
Labels = Callable[[Any], dict[str, str]]
SIGNS = {"Aligned": "●", "Divergent": "▲", "Undefined": "○"}


def picker(key: str, wanted: str | None = None, labels_of: Labels | None = None) -> str | None:
    """Draw a menu of questions, with a search box where there are many; return the chosen id.

    ``labels_of`` makes the menu's lines, by id, from rows of the analysis; by default they name the verdict.
    """
    labels_of = labels_of or _labels
    frame = cached.current_analysis().queries
    if frame.empty:
        st.info("This run holds no questions.", icon=":material/inbox:")
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
    ids = cached.current_analysis().queries["query_id"]
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


def link(query_id: str) -> None:
    """Draw a link to the inspector."""
    st.page_link(
        router.INSPECTOR,
        label="Open in the inspector",
        icon=":material/arrow_forward:",
        query_params=sources.address(question=query_id),
    )


def claims_link(query_id: str, label: str = "Its claims and their evidence") -> None:
    """Draw a link to the claims of an answer."""
    st.page_link(
        router.CLAIMS,
        label=label,
        icon=":material/fact_check:",
        query_params=sources.address(question=query_id),
    )


def modes_table() -> None:
    """Draw the failure modes with their rules and how many of the questions that could show each do."""
    summary = cached.current_summary()
    tested = summary["failure_modes_tested"]
    with st.grid(3, min_column_width=250):
        for name, n in summary["failure_modes"].items():
            mode = MODES[name]
            found = f"{n:,} of {show.count(tested[name], 'question')}" if tested[name] else "not tested"
            show.definition(mode.title, mode.advice, {"Rule": mode.rule}, found)


def filtered_table() -> None:
    """Draw the table of questions with its filters and download."""
    frame = cached.current_analysis().queries
    left, right = st.columns(2)
    labels = left.multiselect(
        "Label", LABELS, key="influence_labels", persist_state="session", placeholder="All labels"
    )
    modes = right.multiselect(
        "Failure mode",
        list(MODES),
        key="influence_modes",
        persist_state="session",
        format_func=lambda m: MODES[m].title,
        placeholder="All, with or without",
    )
    if labels:
        frame = frame[frame["label"].isin(labels)]
    if modes:
        frame = frame[frame[modes].any(axis=1)]
    st.caption(show.count(len(frame), "question"))
    shown = frame.assign(reason=frame["reason"].map(lambda r: headlines.title_of(r), na_action="ignore"))
    show.table(shown, "Questions with their metrics", _columns(), column_order=list(_columns()))
    run = session().run
    assert run is not None
    st.download_button(
        "Download these questions (CSV)",
        lambda: csv_bytes(frame, simulated=run.simulated),
        file_name="questions-simulated.csv" if run.simulated else "questions.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
    )


def _columns() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        "query_id": st.column_config.TextColumn("Id", width="small"),
        "question": st.column_config.TextColumn("Question", width="large"),
        "label": "Label",
        "rho": number("ρ", format="%.2f"),
        "reason": "Undefined because",
        "k": "k",
        "dominance": number("Dominance", format="%.2f"),
        "entropy": number("Entropy (nats)", format="%.2f"),
        "rank_biased_overlap": number("RBO", format="%.2f"),
        "p_value": number("p", format="%.3f"),
        "answer_status": "Answer",
        "correct": "Right",
        "n_modes": "Failure modes",
    }


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
    rows = zip(frame["query_id"], frame["question"], frame["label"], strict=True)
    return {
        str(i): f"{SIGNS[label]} {shortened(text, 110) or i} · {label.lower()}" for i, text, label in rows
    }
