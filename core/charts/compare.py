"""One metric of several runs, one below the other: every question, and the mean with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from core.charts.theme import AXIS, add_marks, empty_figure, error_bars, marker, new_figure, safe_text
from core.stats import mean_interval
from core.text.display import count, number

LETTERS = "ABCD"
DOTS_AT_MOST = 1_000  # questions of one run; more would only be a stripe
_SPREAD = 0.16  # of the distance between two runs


class _Row(NamedTuple):
    letter: str
    name: str
    values: NDArray[np.float64]
    mean: float
    low: float  # of the 95 % interval; NaN where the mean has none
    high: float
    n_undefined: int


def compare_figure(
    runs: Sequence[tuple[str, ArrayLike]], title: str, bounds: tuple[float, float] | None = None
) -> go.Figure:
    """Draw the mean of a metric in each run with its 95 % interval, over its questions as dots.

    Parameters
    ----------
    runs : sequence of (name, values)
        In the order in which they are lettered from A; one value per question, NaN where undefined.
    title : str
        Name of the metric.
    bounds : (float, float), optional
        Range of the metric, where it has one.

    Returns
    -------
    Figure
        Runs of up to 1,000 questions have a dot for each; a run without any value keeps its line. An empty
        figure when no run has a value.
    """
    return _draw(_data(runs, bounds), title, bounds)


def _data(runs: Sequence[tuple[str, ArrayLike]], bounds: tuple[float, float] | None) -> list[_Row]:
    lower, upper = bounds or (-np.inf, np.inf)
    rows = []
    for letter, (name, given) in zip(LETTERS, runs, strict=False):
        every = np.asarray(given, dtype=np.float64)
        values = every[~np.isnan(every)]
        mean = float(values.mean()) if values.size else np.nan
        low, high = mean_interval(values, lower=lower, upper=upper)
        rows.append(_Row(letter, name, values, mean, low, high, every.size - values.size))
    return rows


def _draw(rows: list[_Row], title: str, bounds: tuple[float, float] | None) -> go.Figure:
    if not any(row.values.size for row in rows):
        return empty_figure(f"{title}: undefined for every question of these runs.")
    low, high = bounds or _range(rows)
    alt = f"{title}, mean of " + "; ".join(_words(row) for row in rows) + "."
    figure = new_figure(alt, title, "Run", height=110 + 74 * len(rows))
    places = np.arange(len(rows))[::-1]  # the first run on top
    for row, place in zip(rows, places, strict=True):
        if 0 < row.values.size <= DOTS_AT_MOST:
            _add_dots(figure, row, float(place))
        figure.add_annotation(
            text=f"{safe_text(row.name, 40)} · {count(len(row.values), 'question')}",
            x=low, y=place + 0.24, xanchor="left", yanchor="bottom", showarrow=False, align="left",
        )  # fmt: skip
    _add_means(figure, rows, places)
    if low < 0 < high:
        figure.add_vline(x=0, line={"color": AXIS, "width": 1, "dash": "dash"})
    margin = 0.015 * (high - low)
    figure.update_xaxes(range=[low - margin, high + margin])
    figure.update_yaxes(
        range=[-0.5, len(rows) - 0.2],
        tickvals=places.tolist(),
        ticktext=[row.letter for row in rows],
        showgrid=False,
    )
    return figure


def _range(rows: list[_Row]) -> tuple[float, float]:
    every = np.concatenate([row.values for row in rows])
    low, high = float(every.min()), float(every.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _words(row: _Row) -> str:
    if not row.values.size:
        return f"{row.letter}: none, {count(row.n_undefined, 'question')} undefined"
    band = "" if np.isnan(row.low) else f" ({number(row.low)} to {number(row.high)})"
    return f"{row.letter}: {number(row.mean)}{band} on {count(len(row.values), 'question')}"


def _add_dots(figure: go.Figure, row: _Row, place: float) -> None:
    # Spread up and down by a fixed pattern, so that equal values are seen and a reload changes nothing.
    offsets = _SPREAD * (((np.arange(len(row.values)) * 0.618034) % 1) * 2 - 1)
    x, y, dots = row.values.round(4), (place + offsets).round(3), {**marker("neutral", 6), "opacity": 0.4}
    once = {"legendgroup": "question", "showlegend": not figure.data}
    add_marks(figure, "One question", x, y, dots, f"%{{x:.2f}}<extra>{row.letter}</extra>", **once)


def _add_means(figure: go.Figure, rows: list[_Row], places: NDArray[np.int64]) -> None:
    known = [(row, int(place)) for row, place in zip(rows, places, strict=True) if row.values.size]
    mean = [row.mean for row, _ in known]
    bars = error_bars(mean, [row.low for row, _ in known], [row.high for row, _ in known], thickness=3)
    y, hover = [place for _, place in known], [_words(row) for row, _ in known]
    add_marks(figure, "Mean with its 95 % interval", mean, y, marker("highlight", 14), hover, error_x=bars)
