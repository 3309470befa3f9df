"""A question while it is asked: the baseline answer as soon as it is there, then a row for each passage."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from core.influence.metrics import influence_score
from core.influence.step import ABLATION, BASELINE, CLOSED_BOOK
from core.llm import Completion
from core.rows import rows_of
from core.run import Run
from ui import show
from ui.plain import plain, shortened

_WAITING = "…"


def in_progress(run: Run, query_id: str, answers: Mapping[tuple[str, int], Completion]) -> None:
    """Draw what the model has answered so far to one question of a run."""
    query = rows_of(run.queries, query_id).iloc[0]
    passages = rows_of(run.passages, query_id).sort_values(["slot", "retrieval_rank"])
    st.markdown(f"**{plain(shortened(query['question'], 200))}**")
    baseline = answers.get((BASELINE, 1))
    if baseline is None:
        st.caption("Waiting for the baseline answer …")
        return
    st.markdown(f"Baseline answer: {plain(shortened(_said(baseline), 300))}")
    frame = pd.DataFrame(
        [
            _row(place, title or text, baseline, answers.get((ABLATION, place)))
            for place, (title, text) in enumerate(
                passages[["title", "text"]].fillna("").itertuples(index=False), start=1
            )
        ],
        columns=["rank", "passage", "answer", "influence"],
    )
    columns = {
        "rank": "Rank",
        "passage": show.wide("Passage", "medium"),
        "answer": show.wide("Answer without it"),
        "influence": show.numeric("Influence"),
    }
    st.dataframe(
        frame, hide_index=True, column_config=columns, alt="Answers without each passage", placeholder="—"
    )
    closed = answers.get((CLOSED_BOOK, 1))
    if closed is not None:
        st.caption(f"Without any passage: {plain(shortened(_said(closed), 200))}")


def _row(place: int, title: str, baseline: Completion, found: Completion | None) -> tuple[object, ...]:
    if found is None:
        return place, shortened(title, 60), _WAITING, None
    influence = influence_score(baseline.text, found.text) if baseline.text and not found.error else None
    return place, shortened(title, 60), shortened(_said(found), 200), influence


def _said(completion: Completion) -> str:
    return completion.text.strip() or (completion.error or "no text")
