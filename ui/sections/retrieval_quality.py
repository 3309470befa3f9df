"""How well the retriever found the gold passages, and whether the model then used them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.definitions import METRICS
from ui import cached, headlines, show


def quality() -> None:
    """Draw the retrieval metrics where gold passages are known; else say what would be needed."""
    result = cached.quality()
    if not result.summary["n"].any():
        st.caption(
            "Not available for this run: no gold passage is known. Mark them with is_gold in the passages, "
            "or give gold fragments with the questions."
        )
        return
    left, right = st.columns([2, 3])
    with left:
        show.figure(cached.chart("retrieval_quality_chart", result), "retrieval_quality")
    with right:
        _metrics(result.summary)
    _use(result)


def _metrics(summary: Any) -> None:
    number = st.column_config.NumberColumn
    titles = {name: metric.title for name, metric in METRICS.items()}
    columns = {
        "metric": "Metric",
        "k": number("k", format="%d"),
        "mean": number("Mean", format="%.2f"),
        "low": number("95 % from", format="%.2f"),
        "high": number("to", format="%.2f"),
        "n": number("Rests on", format="localized"),
        "n_left_out": number("Left out", format="localized"),
        "left_out": st.column_config.TextColumn("Because", width="large"),
    }
    frame = summary.assign(metric=summary["metric"].map(titles))
    show.table(frame, "Retrieval metrics", columns, height="content")


def _use(result: Any) -> None:
    """Draw where the gold passage stands in the retriever's order, and where in the order of use."""
    row = result.summary[result.summary["metric"] == "gold_most_influential"].iloc[0]
    if row["n"]:
        low, high = show.number(100 * row["low"], "{:.0f}"), show.number(100 * row["high"], "{:.0f}")
        st.markdown(
            f"**Found, and used?** In {show.number(100 * row['mean'], '{:.0f}')} % of "
            f"{show.count(row['n'], 'question')} the gold passage is the one that changes the answer most "
            f"(95 % interval {low} to {high} %)."
        )
    found = result.queries[result.queries["first_gold_rank"].notna()]
    with st.expander(f"Where the gold passage stands ({show.count(len(found), 'question')})"):
        number = st.column_config.NumberColumn
        columns = {
            "query_id": st.column_config.TextColumn("Id", width="small"),
            "question": st.column_config.TextColumn("Question", width="large"),
            "first_gold_rank": number("Retrieved as", format="%g"),
            "gold_influence_rank": number("Used as", format="%g", help="Influence rank; 1 is used most"),
            "gold_most_influential": "Used most",
            "why": "No order of use because",
        }
        why = found["influence_reason"].map(headlines.title_of, na_action="ignore")
        show.table(
            found.assign(why=why),
            "Places of the gold passage, one row per question",
            columns,
            column_order=list(columns),
        )
