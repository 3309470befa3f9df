"""One answer with objections: its spans marked, every objection in a sentence, and the fallback beside it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.text.display import count, visible
from core.validation.definitions import REASONS_OF_VALIDATORS
from core.validation.fallback import served
from ui import cached, questions
from ui.plain import shortened
from ui.sections.validation import pieces
from ui.state import session

_CHOICES = 200  # each is sent to the browser at every step


def draw() -> None:
    """Draw the choice of an answer, the gravest first, and what validation says of it."""
    run = session().run
    assert run is not None, "the page asks for answers only when a run is there"
    titles, n_failed = cached.once("failing answers", lambda d: _failing(d["validation"].queries))
    if not titles:
        st.info("No validator objects to an answer.", icon=":material/check_circle:")
        return
    chosen = st.selectbox(
        "Answer",
        list(titles),
        key=f"validation_answer_{session().run_key}",
        format_func=titles.__getitem__,
        help="Stopped answers first, then by context score.",
        persist_state="session",
    )
    if n_failed > len(titles):
        st.caption(f"The first {len(titles):,} of {count(n_failed, 'answer')} with objections.")
    one = served(run, chosen)
    assert one is not None, "an answer that failed was validated"
    st.markdown(f"**{questions.title(chosen, 300)}**")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.markdown("**Answer of the model**")
        with st.container(border=True):
            pieces.answer(one.original, one.outcome.failed, "validation_answer")
        st.markdown(pieces.lines(one.outcome.failed))
    with right:
        pieces.fallback(one.text, one.used_fallback)
        pieces.suggestions(one.outcome.learning_suggestions)
        questions.open_link(chosen)


def _failing(queries: pd.DataFrame) -> tuple[dict[str, str], int]:
    """Return the titles of the first answers with objections, by question, and how many there are."""
    failed = queries[queries["passed"].eq(False).fillna(False)].sort_values(
        ["critical", "context_score", "n_failed"], ascending=[False, True, False], kind="stable"
    )
    listed = failed.head(_CHOICES).set_index("query_id")
    titles = {
        str(row.Index): f"{place}. {'Stopped' if row.critical else 'Warning'} · {_reasons(row.reasons)} · "
        f"{visible(shortened(row.question, 70))}"
        for place, row in enumerate(listed.itertuples(), start=1)
    }
    return titles, len(failed)


def _reasons(codes: str) -> str:
    return ", ".join(REASONS_OF_VALIDATORS[code].title.lower() for code in codes.split(", "))
