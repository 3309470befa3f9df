"""Whether a confidence means what it says: the share of correct answers against the confidence."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import (
    GRID,
    STYLES,
    add_line,
    add_marks,
    bar_marker,
    count_step,
    doors,
    empty_figure,
    error_bars,
    marker,
    new_figure,
    where_door,
)
from core.conditions import where
from core.confidence.analysis import ConfidenceAnalysis
from core.text.display import count, number, percent

_FUZZ = 5e-13  # within which a confidence lies on the edge of its bin


def reliability_diagram(analysis: ConfidenceAnalysis) -> go.Figure:
    """Draw for each bin of the confidence the share of correct answers, with the number of answers below.

    On the diagonal a confidence is a probability; below it promises too much. Bars are Wilson's 95 %
    intervals. Marks lead to the incorrect answers of their bin. Empty without a labelled answer.
    """
    if not analysis.bins:
        return empty_figure(analysis.used.reason or "No answer with a confidence has a label.")
    rows = pd.DataFrame(analysis.bins)
    rows["n_correct"] = (rows["accuracy"] * rows["n"]).round().astype(int)
    figure = new_figure(_alt(rows, analysis), "Confidence", "Correct (%)", height=480)
    add_line(figure, "Calibrated", [0, 1], [0, 100])
    off = (rows["confidence"] < rows["accuracy_low"]) | (rows["confidence"] > rows["accuracy_high"])
    for name, style, chosen in (("In line", "Aligned", ~off), ("Off the diagonal", "Divergent", off)):
        own = rows[chosen]
        color = STYLES[style].color
        add_marks(
            figure, f"{name} ({count(len(own), 'bin')})", own["confidence"], 100 * own["accuracy"],
            marker(style, 10), [_hover(row) for row in own.itertuples()],
            [_door(row, False) if row.n > row.n_correct else "" for row in own.itertuples()],
            error_y=error_bars(
                100 * own["accuracy"], 100 * own["accuracy_low"], 100 * own["accuracy_high"], color
            ),
            cliponaxis=False,
        )  # fmt: skip
    _add_counts(figure, rows)
    figure.update_xaxes(range=[-0.02, 1.02], dtick=0.2, anchor="y2")
    figure.update_yaxes(range=[-2, 103])
    most = int(rows["n"].max())
    figure.update_layout(
        barmode="stack",
        yaxis={"domain": [0.32, 1]},
        yaxis2={
            "domain": [0, 0.22], "title": {"text": "Answers", "standoff": 8}, "fixedrange": True,
            "gridcolor": GRID, "automargin": True, "range": [0, 1.1 * most], "tickformat": ",d", "nticks": 4,
            "dtick": count_step(most) if most < 4 else None, "zeroline": False,
        },
    )  # fmt: skip
    return figure


def _add_counts(figure: go.Figure, rows: pd.DataFrame) -> None:
    for right, name, style in ((True, "Correct", "Aligned"), (False, "Incorrect", "Divergent")):
        n = rows["n_correct"] if right else rows["n"] - rows["n_correct"]
        hover = [
            f"{count(size, f'{name.lower()} answer')} with a confidence {_span(row)}"
            for size, row in zip(n, rows.itertuples(), strict=True)
        ]
        to = [_door(row, right) if size else "" for size, row in zip(n, rows.itertuples(), strict=True)]
        figure.add_bar(
            name=f"{name} ({n.sum():,})",
            x=(rows["low"] + rows["high"]) / 2,
            y=n,
            width=(rows["high"] - rows["low"]) * 0.9,
            yaxis="y2",
            marker=bar_marker(style),
            **doors(figure, to, hover),
        )


def _door(row: Any, correct: bool) -> str:
    """Return the door to the correct or the incorrect answers of a bin; its upper end belongs to it."""
    low = None if row.number == 0 else row.low + _FUZZ
    ends = (low, None if row.high == 1 else row.high + _FUZZ)
    return where_door(where("confidence", "queries", confidence=ends, correct=correct))


def _span(row: Any) -> str:
    return f"from {number(row.low)} to {number(row.high)}"


def _hover(row: Any) -> str:
    wrong = row.n - row.n_correct
    return "<br>".join(
        (
            f"Confidence {_span(row)}, mean {number(row.confidence)}",
            f"{row.n_correct:,} of {count(row.n, 'answer')} correct ({percent(row.accuracy)})",
            f"95 %: {percent(0, (row.accuracy_low, row.accuracy_high))}",
            count(wrong, "incorrect answer"),
        )
    )


def _alt(rows: pd.DataFrame, analysis: ConfidenceAnalysis) -> str:
    over = int((rows["confidence"] > rows["accuracy_high"]).sum())
    under = int((rows["confidence"] < rows["accuracy_low"]).sum())
    quality = analysis.quality
    return (
        f"Share of correct ones of {count(quality.n, 'labelled answer')} against their confidence, in "
        f"{count(len(rows), 'bin')}: in {over:,} of the bins the confidence is above the 95 % "
        f"interval, in {under:,} below it; expected calibration error {number(quality.ece)}, "
        f"{number(analysis.ece_by_chance[0])} by chance if it were exact."
    )
