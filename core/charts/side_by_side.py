"""Rank agreement of several runs, one under the other: every question, and the mean with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.charts.theme import AXIS, empty_figure, marker, new_figure, number, safe_text, several
from core.influence import InfluenceAnalysis
from core.stats import mean_interval

LETTERS = "ABCD"
DOTS_AT_MOST = 1_000  # questions of one run; more would only be a stripe
_SPREAD = 0.16  # of the distance between two runs


class _Row(NamedTuple):
    letter: str
    name: str
    rho: NDArray[np.float64]
    mean: float
    interval: tuple[float, float] | None
    n_undefined: int


def rho_side_by_side(runs: Sequence[tuple[str, InfluenceAnalysis]]) -> go.Figure:
    """Draw the mean rank agreement ρ of each run with its 95 % interval, over its questions as dots.

    Parameters
    ----------
    runs : sequence of (name, InfluenceAnalysis)
        In the order in which they are lettered from A.

    Returns
    -------
    Figure
        Up to 1,000 questions a run are drawn as dots; a run without any ρ has its line and says so. An empty
        figure when no run has a ρ.
    """
    return _draw(_data(runs))


def _data(runs: Sequence[tuple[str, InfluenceAnalysis]]) -> list[_Row]:
    rows = []
    for letter, (name, analysis) in zip(LETTERS, runs, strict=False):
        rho = analysis.defined["rho"].to_numpy(dtype=np.float64)
        interval = mean_interval(rho, lower=-1.0, upper=1.0)
        rows.append(
            _Row(
                letter,
                name,
                rho,
                float(rho.mean()) if rho.size else np.nan,
                interval if rho.size > 1 else None,
                len(analysis.queries) - len(rho),
            )
        )
    return rows


def _draw(rows: list[_Row]) -> go.Figure:
    if not any(row.rho.size for row in rows):
        return empty_figure("None of these runs has a question with a rank agreement.")
    alt = "Mean rank agreement ρ of " + "; ".join(_words(row) for row in rows) + "."
    figure = new_figure(alt, "Rank agreement ρ", "Run", height=110 + 74 * len(rows))
    places = np.arange(len(rows))[::-1]  # the first run on top
    for row, place in zip(rows, places, strict=True):
        if 0 < row.rho.size <= DOTS_AT_MOST:
            _add_dots(figure, row, float(place))
        figure.add_annotation(
            text=f"{safe_text(row.name, 40)} · {several(len(row.rho), 'question')}",
            x=-1, y=place + 0.24, xanchor="left", yanchor="bottom", showarrow=False, align="left",
        )  # fmt: skip
    _add_means(figure, rows, places)
    figure.add_vline(x=0, line={"color": AXIS, "width": 1, "dash": "dash"})
    figure.update_xaxes(range=[-1.03, 1.03], dtick=0.5, tickformat=".1f")
    figure.update_yaxes(
        range=[-0.5, len(rows) - 0.2],
        tickvals=places.tolist(),
        ticktext=[row.letter for row in rows],
        showgrid=False,
    )
    return figure


def _words(row: _Row) -> str:
    if not row.rho.size:
        return f"{row.letter}: none, {several(row.n_undefined, 'question')} undefined"
    band = f" ({number(row.interval[0])} to {number(row.interval[1])})" if row.interval else ""
    return f"{row.letter}: {number(row.mean)}{band} on {several(len(row.rho), 'question')}"


def _add_dots(figure: go.Figure, row: _Row, place: float) -> None:
    # Spread up and down by a fixed pattern, so that equal values are seen and a reload changes nothing.
    offsets = _SPREAD * (((np.arange(len(row.rho)) * 0.618034) % 1) * 2 - 1)
    figure.add_scatter(
        name="One question",
        legendgroup="question",
        showlegend=not figure.data,
        mode="markers",
        x=row.rho.round(4),
        y=(place + offsets).round(3),
        marker={**marker("neutral", 6), "opacity": 0.4},
        hovertemplate=f"ρ %{{x:.2f}}<extra>{row.letter}</extra>",
    )


def _add_means(figure: go.Figure, rows: list[_Row], places: NDArray[np.int64]) -> None:
    known = [(row, int(place)) for row, place in zip(rows, places, strict=True) if row.rho.size]
    intervals = [row.interval or (row.mean, row.mean) for row, _ in known]
    figure.add_scatter(
        name="Mean with its 95 % interval",
        mode="markers",
        x=[row.mean for row, _ in known],
        y=[place for _, place in known],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [high - row.mean for (row, _), (_, high) in zip(known, intervals, strict=True)],
            "arrayminus": [row.mean - low for (row, _), (low, _) in zip(known, intervals, strict=True)],
            "thickness": 3,
            "width": 8,
        },
        marker=marker("highlight", 14),
        customdata=[_words(row) for row, _ in known],
        hovertemplate="%{customdata}<extra></extra>",
    )
