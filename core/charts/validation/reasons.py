"""Why validators object: how many answers each reason has, and whether they are the incorrect ones."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import (
    add_chance,
    bar_marker,
    count_step,
    doors,
    empty_figure,
    name_rows,
    new_figure,
    safe_text,
)
from core.charts.validation.shared import door, void
from core.text.display import count, number, percent
from core.validation.analysis import ValidationAnalysis
from core.validation.definitions import REASONS_OF_VALIDATORS

_BELOW = 0.4  # rows
_MOST = 15  # reasons with a bar; a file may bring validators of its own
_PARTS = (
    ("Incorrect", "wrong_flagged", "Divergent"),
    ("Correct", "right_flagged", "Aligned"),
    ("Not labelled", "unlabelled", "neutral"),
)  # fmt: skip
_LABELS = {"wrong_flagged": {"correct": False}, "right_flagged": {"correct": True}}


def objection_reasons(analysis: ValidationAnalysis) -> go.Figure:
    """Draw the number of answers per reason of an objection, by whether they are correct.

    The marks are the incorrect answers that as many objections at random would meet, with the middle 95 %:
    compare with the end of the first part of each bar. Parts lead to their questions. Empty where nothing
    was validated or no validator objects.
    """
    return _draw(_data(analysis))


def _data(analysis: ValidationAnalysis) -> pd.DataFrame | str:
    """Return the reasons with their words, unlabelled answers and places, or why there are none."""
    if why := void(analysis):
        return why
    rows = analysis.reasons.head(_MOST)
    if not len(rows):
        return f"No validator objects to any of {count(analysis.n, 'answer')}."
    chance = rows[["wrong_by_chance", "wrong_by_chance_low", "wrong_by_chance_high"]]
    chance.columns = ["expected", "expected_low", "expected_high"]
    return rows.assign(
        unlabelled=rows["n"] - rows["wrong_flagged"] - rows["right_flagged"],
        title=range(1, len(rows) + 1),
        words=[REASONS_OF_VALIDATORS[code].title for code in rows["reason"]],
        labelled=analysis.stopped.n > 0,
        **chance,
    )


def _draw(data: pd.DataFrame | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    labelled = bool(data["labelled"].iloc[0])
    said = "; ".join(
        f"{row.words} {row.n:,}"
        + (
            f", {row.wrong_flagged:,} of them incorrect ({number(row.expected, '{:.1f}')} by chance)"
            if labelled
            else ""
        )
        for row in data.itertuples()
    )
    alt = f"Reasons of objections to {count(int(data['of'].iloc[0]), 'answer')}: {said}."
    figure = new_figure(alt, "Answers", "", height=110 + 50 * len(data))
    for name, column, style in _PARTS:
        own = data[data[column] > 0]
        if not len(own):
            continue
        title = name if labelled else "Answers"
        labels = _LABELS.get(column, {})
        ways = 1 if labels or not labelled else 0
        # Nothing asks for answers without a label, where others have one.
        leads_to = [
            door("verdicts", ways, validator=row.validator, objection=row.reason, **labels)
            for row in own.itertuples()
        ]
        hover = [
            f"{row.words} ({safe_text(row.validator, 40)})<br>{getattr(row, column):,} {title.lower()}"
            f"<br>{row.n:,} of {count(row.of, 'answer')} in all ({percent(row.n / row.of)})"
            for row in own.itertuples()
        ]
        figure.add_bar(
            name=title,
            orientation="h",
            x=own[column],
            y=own["title"],
            width=0.5,
            marker=bar_marker(style),
            **doors(figure, leads_to, hover),
        )
    if labelled:  # below each bar: on it, nothing would show
        note = "incorrect answers, as many objections at random"
        compared = data[data["wrong_flagged"] + data["right_flagged"] > 0]
        add_chance(figure, compared.assign(note=note, title=compared["title"] + _BELOW))
    most = max(float(data["n"].max()), 1.0)
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    figure.update_xaxes(range=[0, 1.05 * most], tickformat=",d", dtick=count_step(most))
    name_rows(
        figure,
        [f"{row.words}<br>{row.n:,} ({percent(row.n / row.of)})" for row in data.itertuples()],
    )
    return figure
