"""Incorrect answers by whether the evidence was in their prompt."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.answers.analysis import FIRST, MISSING, PARTS, PRESENT, REFERENCE, UNKNOWN, Answers
from core.charts import theme
from core.conditions import where
from core.text.display import count, percent

# Blue: the model had it; red: retrieval did not find it.
_STYLES = {FIRST: "Aligned", PRESENT: "neutral", MISSING: "Divergent", UNKNOWN: "Undefined"}


def evidence_split(answers: Answers) -> go.Figure:
    """Draw the number of incorrect answers by what was in the prompt; parts without any are left out.

    A bar leads to its questions. Empty where no answer is known to be incorrect.
    """
    data = _data(answers)
    n = int(data["n"].sum())
    if not n:
        return theme.empty_figure("No answer is known to be incorrect.")
    listed = ", ".join(f"{row.n:,} {row.part}" for row in data.itertuples())
    alt = f"Evidence for {count(n, 'incorrect answer')}: {listed}."
    figure = theme.new_figure(alt, "Incorrect answers", "", height=90 + 40 * len(data))
    for row in data.itertuples():
        read = f"<br>{row.by_words:,} read from the reference answer" if row.by_words else ""
        hover = f"{row.name}: {row.n:,} of {count(n, 'incorrect answer')}{read}"
        door = theme.where_door(where("answers", "queries", correct=False, evidence=row.part))
        theme.add_bars(
            figure, None, [row.n], [row.name], _STYLES[str(row.part)], [hover], [door], width=0.7,
            showlegend=False,
        )  # fmt: skip
    texts = [f"{size:,} ({percent(size / n)})" for size in data["n"]]
    theme.count_rows(figure, data["n"], data["name"], texts, 1.3)
    return figure


def _data(answers: Answers) -> pd.DataFrame:
    """One row per part that occurs: its name, n, and how many of them were read from the reference answer."""
    wrong = answers.incorrect
    by_words = wrong["evidence_by"].eq(REFERENCE).groupby(wrong["evidence"]).agg(["size", "sum"])
    rows = [
        (part, part[:1].upper() + part[1:], int(by_words["size"][part]), int(by_words["sum"][part]))
        for part in PARTS
        if part in by_words.index
    ]
    return pd.DataFrame(rows, columns=["part", "name", "n", "by_words"])
