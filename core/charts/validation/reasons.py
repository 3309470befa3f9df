"""Why validators object: how many answers each reason has, and whether they are the incorrect ones."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.charts.validation.shared import door, void
from core.text.display import count, number, percent
from core.validation.analysis import ValidationAnalysis
from core.validation.definitions import REASONS_OF_VALIDATORS

_BELOW = 0.4  # rows
_MOST = 15  # reasons with a bar; a file may bring validators of its own
_PARTS: tuple[tuple[str, str, str, dict[str, bool]], ...] = (  # name, column, style, condition
    ("Incorrect", "wrong_flagged", "Divergent", {"correct": False}),
    ("Correct", "right_flagged", "Aligned", {"correct": True}),
    ("Not labelled", "unlabelled", "neutral", {}),
)


def objection_reasons(analysis: ValidationAnalysis) -> go.Figure:
    """Draw the number of answers per reason of an objection, by whether they are correct.

    The marks are the incorrect answers that as many objections at random would meet, with the middle 95 %:
    compare with the end of the first part of each bar. Parts lead to their questions. Empty where nothing
    was validated or no validator objects.
    """
    if why := void(analysis):
        return theme.empty_figure(why)
    data, labelled = _data(analysis), analysis.stopped.n > 0
    if not len(data):
        return theme.empty_figure(f"No validator objects to any of {count(analysis.n, 'answer')}.")
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
    figure = theme.new_figure(alt, "Answers", "", height=110 + 50 * len(data))
    for name, column, style, condition in _PARTS:
        own, title = data[data[column] > 0], name if labelled else "Answers"
        # Nothing asks for answers without a label, where others have one.
        ways = 1 if condition or not labelled else 0
        leads_to = [
            door("verdicts", ways, validator=row.validator, objection=row.reason, **condition)
            for row in own.itertuples()
        ]
        hover = [
            f"{row.words} ({theme.safe_text(row.validator, 40)})<br>{getattr(row, column):,} {title.lower()}"
            f"<br>{row.n:,} of {count(row.of, 'answer')} in all ({percent(row.n / row.of)})"
            for row in own.itertuples()
        ]
        theme.add_bars(figure, title, own[column], own["title"], style, hover, leads_to, width=0.5)
    if labelled:  # below each bar: on it, nothing would show
        note = "incorrect answers, as many objections at random"
        compared = data[data["wrong_flagged"] + data["right_flagged"] > 0]
        theme.add_chance(figure, compared.assign(note=note, title=compared["title"] + _BELOW))
    most = max(float(data["n"].max()), 1.0)
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    figure.update_xaxes(range=[0, 1.05 * most], tickformat=",d", dtick=theme.count_step(most))
    names = [f"{row.words}<br>{row.n:,} ({percent(row.n / row.of)})" for row in data.itertuples()]
    theme.name_rows(figure, names)
    return figure


def _data(analysis: ValidationAnalysis) -> pd.DataFrame:
    """Return the reasons with their words, unlabelled answers, places and what chance gives."""
    rows = analysis.reasons.head(_MOST)
    return rows.assign(
        unlabelled=rows["n"] - rows["wrong_flagged"] - rows["right_flagged"],
        title=range(1, len(rows) + 1),
        words=[REASONS_OF_VALIDATORS[code].title for code in rows["reason"]],
        expected=rows["wrong_by_chance"],
        expected_low=rows["wrong_by_chance_low"],
        expected_high=rows["wrong_by_chance_high"],
    )
