"""How much a bet against the calibration has gained, question after question."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.bins import thinned
from core.charts.conformal.shared import MOST_MARKS, mark_size, stream_of
from core.charts.theme import (
    AXIS,
    STYLES,
    Floats,
    add_line,
    add_marks,
    empty_figure,
    marker,
    new_figure,
    question_door,
    safe_text,
)
from core.conformal.analysis import ConformalAnalysis
from core.text.display import count, number, percent

_HIGHEST = 700.0  # logarithm of about the largest float


class _Data(NamedTuple):
    capital: Floats  # after each question, from a stake of 1
    rows: pd.DataFrame  # of the questions, in the run's order
    alarm: int | None
    level: float


def martingale(analysis: ConformalAnalysis) -> go.Figure:
    """Draw the capital of a bet that the scores have changed, along the questions that do not calibrate.

    Without a change it reaches the dotted line, 1/level, with a probability of at most the level, however
    often one looks. The diamond is the question at which it does. Marks lead to their questions; of more
    than 300 questions the 300 least typical have one. Empty where no question has a p-value.
    """
    return _draw(_data(analysis))


def _data(analysis: ConformalAnalysis) -> _Data | str:
    """Return the path, or why there is none."""
    rows = stream_of(analysis)
    if isinstance(rows, str):
        return rows
    drift = analysis.drift
    capital = np.exp(np.clip(drift.log_martingale, -_HIGHEST, _HIGHEST))
    return _Data(capital, rows, drift.alarm, drift.level)


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    n, limit = len(data.capital), 1 / data.level
    alarm = "no alarm" if data.alarm is None else f"alarm at question {data.alarm + 1:,}"
    figure = new_figure(
        f"A bet against the calibration along {count(n, 'question')}: {alarm}; it ends at "
        f"{_times(data.capital[-1])} its stake (highest: {_times(data.capital.max())}); the alarm is at "
        f"{limit:.0f} times, which chance alone reaches with a probability of at most {percent(data.level)}.",
        "Questions that do not calibrate,<br>in the run's order",
        "Capital of the bet (stake = 1)",
    )
    add_line(figure, f"Alarm at {limit:.0f}", [0, n], [limit] * 2)
    add_line(figure, "Stake", [0, n], [1, 1], {"color": AXIS, "width": 1.5, "dash": "dash"})
    path = np.r_[1, data.capital]
    kept = thinned(len(path))
    add_line(figure, "Capital", kept, path[kept], {"color": STYLES["Aligned"].color, "width": 2.5})
    least = np.argsort(data.rows["drift_p"].to_numpy(), kind="stable")[:MOST_MARKS]
    marked = [i for i in sorted(least.tolist()) if i != data.alarm]
    name = f"Question ({n:,})" if n <= MOST_MARKS else f"The {MOST_MARKS} least typical"
    _add(figure, data, name, marked, marker("Aligned", mark_size(n)))
    if data.alarm is not None:
        _add(figure, data, f"Alarm, question {data.alarm + 1:,}", [data.alarm], marker("Divergent", 14))
    low, high = min(0.5, float(data.capital.min())), max(1.5 * limit, float(data.capital.max()))
    figure.update_xaxes(range=[-0.02 * n, 1.02 * n], tickformat=",d")
    figure.update_yaxes(
        type="log", range=[math.log10(low) - 0.1, math.log10(high) + 0.1], **_ticks(low, high)
    )
    return figure


def _add(figure: go.Figure, data: _Data, name: str, places: list[int], look: dict[str, object]) -> None:
    add_marks(
        figure,
        name,
        [i + 1 for i in places],
        data.capital[places],
        look,
        [_hover(data, i) for i in places],
        [question_door(data.rows["query_id"].iloc[i]) for i in places],
        cliponaxis=False,
    )


def _hover(data: _Data, i: int) -> str:
    row = data.rows.iloc[i]
    return (
        f"{safe_text(row['question'])}<br>p = {number(row['drift_p'], '{:.2g}')}<br>"
        f"After {count(i + 1, 'question')} the bet is worth<br>{_times(data.capital[i])} its stake"
    )


def _times(capital: float) -> str:
    if capital < 0.01:
        return "less than 0.01 times"
    if capital >= 1e6:
        return "more than a million times"
    return f"{number(capital, '{:.2g}' if capital < 100 else '{:,.0f}')} times"


def _ticks(low: float, high: float) -> dict[str, object]:
    """Return ticks at 1, 2 and 5 while few powers of ten are shown, else plotly's choice."""
    if high / low > 1e4:
        return {"exponentformat": "power"}
    found = [
        step * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for step in (1, 2, 5)
    ]
    return {"tickvals": found, "ticktext": [f"{value:,g}" for value in found]}
