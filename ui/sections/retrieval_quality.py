"""How well the retriever found the gold passages, and whether the model then used them."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.retrieval_quality.definitions import METRICS
from core.text.display import count, number
from ui import cached, headlines, questions, show


def draw(query_id: str) -> None:
    """Draw the ranks of the gold passage by retrieval and by influence, or why they are undefined."""
    row = questions.row(query_id, "retrieval_quality")
    found, n_gold = (
        number(None if pd.isna(row[name]) else row[name], "{:g}") for name in ("n_found", "n_gold")
    )
    columns = headlines.diagnostic_of("retrieval_quality").columns
    show.cards(
        [
            ("Gold passages retrieved", found, f"of {n_gold} in the collection", ""),
            *((column.title, column.text(row[column.name]), "", "") for column in columns),
        ]
    )
    for reason in dict.fromkeys((row["reason"], row["influence_reason"])):
        headlines.why("retrieval_quality", reason)


def metrics() -> None:
    """Draw every metric at every depth, as a figure and as a table."""
    result = cached.diagnosis()["retrieval_quality"]
    st.markdown(
        "Thin lines are the same retrieved passages in random order. Only the distance to them is merit."
    )
    show.chart("retrieval_quality", "retrieval_quality_chart")
    columns = {
        "metric": "Metric",
        "k": show.numeric("k", "%d"),
        "mean": show.numeric("Mean"),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
        "n": show.numeric("n", "localized"),
        "n_left_out": show.numeric("Undefined", "localized"),
        "left_out": show.wide("Undefined because"),
    }
    titles = {name: metric.title for name, metric in METRICS.items()}
    frame = result.summary.assign(metric=result.summary["metric"].map(titles))
    with st.expander(f"All metrics ({len(frame)})"):
        show.table(frame, "Retrieval metrics", columns, height="content")


def places() -> None:
    """Say how often the gold passage is used most, against chance."""
    result = cached.diagnosis()["retrieval_quality"]
    row = result.summary[result.summary["metric"] == "gold_most_influential"].iloc[0]
    if row["n"]:
        mean, low, high = (number(100 * row[name], "{:.0f}") for name in ("mean", "low", "high"))
        chance = number(100 * result.queries["gold_most_influential_by_chance"].mean(), "{:.0f}")
        show.sentence(
            f"In **{mean} %** of {count(row['n'], 'question')} the gold passage is the one that changes the "
            f"answer most (95 % interval {low} to {high} %; {chance} % by chance)."
        )
