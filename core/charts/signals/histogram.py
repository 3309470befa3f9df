"""How the values of one signal are spread over the questions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.charts.bins import BARS, round_edges
from core.charts.theme import (
    STYLES,
    add_line,
    bar_marker,
    count_step,
    doors,
    empty_figure,
    new_figure,
    safe_text,
    where_door,
)
from core.conditions import where
from core.signals import Signal
from core.text.display import count, number

_NAMED = 5  # bars up to which each has its value below it
HEIGHT = 250


class _Bar(NamedTuple):
    at: float
    width: float
    n: int
    title: str
    door: str


def signal_histogram(signal: Signal) -> go.Figure:
    """Draw how many questions have which value, with mean and median; empty where none has one.

    A bar for each value where there are few of them, else for about twelve equal ranges.
    """
    if not signal.n:
        return empty_figure("No question has a value.")
    of_values = np.unique(signal.rounded[~np.isnan(signal.values)]).size <= BARS
    bars = _of_values(signal) if of_values else _of_ranges(signal)
    lines = (("Mean", float(signal.known.mean()), "solid", "Divergent"),
             ("Median", float(np.median(signal.known)), "dot", "Aligned"))  # fmt: skip
    said = ", ".join(f"{name.lower()} {signal.text(value)}" for name, value, _, _ in lines)
    alt = f"Histogram of {signal.title} over {count(signal.n, 'question')}: {said}."
    figure = new_figure(alt, "", "Questions", height=HEIGHT)
    figure.add_bar(
        x=[bar.at for bar in bars],
        y=[bar.n for bar in bars],
        width=[bar.width for bar in bars],
        marker={**bar_marker("neutral"), "line": {"width": 0.5, "color": "white"}},
        showlegend=False,
        **doors(
            figure,
            [bar.door for bar in bars],
            [f"{safe_text(signal.title)}<br>{bar.title}<br>{count(bar.n, 'question')}" for bar in bars],
        ),
    )
    most = max(bar.n for bar in bars)
    for name, value, dash, style in lines:
        look = {"color": STYLES[style].color, "width": 2.5, "dash": dash}
        add_line(figure, f"{name} {signal.text(value)}", [value, value], [0, 1.05 * most], look)
    if of_values and len(bars) <= _NAMED:
        names = [bar.title for bar in bars]
        figure.update_xaxes(tickvals=[bar.at for bar in bars], ticktext=names, tickangle=0)
    figure.update_yaxes(range=[0, 1.08 * most], tickformat=",d", dtick=count_step(most))
    return figure


def _of_values(signal: Signal) -> list[_Bar]:
    known = ~np.isnan(signal.values)
    levels, level = np.unique(signal.rounded[known], return_inverse=True)
    width = 0.8 * (float(np.diff(levels).min()) if levels.size > 1 else 1.0)
    bars = []
    for i, value in enumerate(levels.tolist()):
        own = signal.known[level == i]
        # Values that differ by rounding errors only share a bar; a range does not hold its upper end.
        wanted: object = (float(own.min()), float(np.nextafter(own.max(), np.inf)))
        title = _figure(value)
        if signal.is_outcome:
            title, wanted = {1.0: "yes", 0.0: "no"}[value], bool(value)
        elif own.min() == own.max():
            wanted = float(own[0])
        door = where_door(where(signal.source, "queries", **{signal.name: wanted}))
        bars.append(_Bar(value, width, own.size, title, door))
    return bars


def _of_ranges(signal: Signal) -> list[_Bar]:
    known = signal.known
    edges = round_edges(float(known.min()), float(known.max()))
    sizes = np.histogram(known, edges)[0].tolist()
    bars = []
    for i, n in enumerate(sizes):
        low, high = float(edges[i]), float(edges[i + 1])
        # The last range holds its upper end too.
        ends = (low, high if i < len(sizes) - 1 else None)
        door = where_door(where(signal.source, "queries", **{signal.name: ends})) if n else ""
        bars.append(_Bar((low + high) / 2, high - low, n, f"{_figure(low)} to {_figure(high)}", door))
    return bars


def _figure(value: float) -> str:
    return number(value, "{:.4g}" if abs(value) < 1_000 else "{:,.0f}")
