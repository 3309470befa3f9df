"""The answer to a question: what became of it, and whether it is correct."""

from __future__ import annotations

from typing import Any

import streamlit as st

from ui import questions, show
from ui.plain import plain, shortened

_STATUS = {
    "answered": "answered",
    "abstained": "abstained (a refusal or “I don't know”)",
    "empty": "empty",
    "error": "failed",
}
_VERDICT = {True: "correct", False: "incorrect", None: "not judged"}


def draw(query_id: str) -> None:
    """Draw the answer with all passages, without any, and the reference answers."""
    raw, correct = questions.row(query_id), questions.row(query_id, "answers")["correct"]
    with st.container(border=True):
        left, right = st.columns(2)
        with left:
            st.caption(f"Answer with all passages · {_STATUS.get(raw['answer_status'], 'status unknown')}")
            show.quote(raw["answer"])
            if isinstance(raw["status_reason"], str):
                st.caption(f"Reason given: {plain(shortened(raw['status_reason'], 300))}")
        with right:
            st.caption("Closed-book answer (no passages)")
            show.quote(raw["closed_book_answer"], "not asked")
            _references(raw["reference_answers"], show.yes_or_no(correct))


def _references(references: Any, correct: bool | None) -> None:
    if references is None or not len(references):
        return
    st.caption(f"Reference answers · this answer is {_VERDICT[correct]}")
    show.quote(" / ".join(str(reference) for reference in references))
