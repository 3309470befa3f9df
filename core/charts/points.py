"""Two metrics of every question against each other: a marker each, or counts where there are very many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import count_heatmap, doors, marker, question_door, safe_text, where_door
from core.text.display import count, number

WEBGL_ABOVE = 1_000
DENSITY_ABOVE = 5_000
_CELLS = 40
_SHORT = 20  # characters of a question where thousands of them travel to the browser
_PLACES = 1_000  # places a unit: points closer than one of them share a marker
_NAMED = 3  # questions that the hover of one marker names


def add_questions(
    figure: go.Figure,
    points: pd.DataFrame,
    x: str,
    y: str,
    names: Sequence[str],
    styles: Mapping[str, str],
    condition: Callable[..., str],
) -> None:
    """Add the questions by group, or counts per cell above 5,000 questions.

    ``points`` has ``query_id, question, group, note`` (what a mark of one question says last) and the columns
    ``x`` and ``y``, both known and not negative, y at most 1; ``names`` are their names in the hover.
    ``styles`` has a style of the theme for each group, and ``condition(group, **ends)`` writes a condition on
    the questions, "" where there is none. Questions at the same place share a marker, whose area grows with
    their number. A marker leads to its question, or to those that share it.
    """
    if len(points) > DENSITY_ABOVE:
        hover = f"{names[0]} %{{x:.2f}}<br>{names[1]} %{{y:.2f}}"
        # From 0, so that no cell is cut.
        ends = [np.linspace(0, top, _CELLS + 1) for top in (max(float(points[x].max()), 1e-9), 1)]
        add_density(figure, points[x], points[y], "questions", hover, ends)
        return
    limit = _SHORT if len(points) > WEBGL_ABOVE else 80
    for group, style in styles.items():
        chosen = points[points["group"] == group]
        if chosen.empty:
            continue
        places = _places(chosen, x, y, names, limit, partial(condition, group))
        webgl, shared = len(chosen) > WEBGL_ABOVE, places["n"].to_numpy()
        size = 9 + 12 * np.sqrt((shared - 1) / shared.max())
        figure.add_trace(
            (go.Scattergl if webgl else go.Scatter)(
                name=f"{group} ({count(len(chosen), 'question')})",
                mode="markers",
                x=places["x"],
                y=places["y"],
                marker={**marker(style), "size": size, "opacity": 0.8},
                **({} if webgl else {"cliponaxis": False}),
                **doors(figure, places["door"], places["hover"]),
            )
        )


def add_density(figure: go.Figure, x: pd.Series, y: pd.Series, unit: str, hover: str, cells: Any) -> None:
    """Add how many of a ``unit`` (in the plural) are in each cell, in place of a marker each.

    ``cells`` is their number a side, or the edges across and up; ``hover`` as of `theme.count_heatmap`.
    """
    counts, across, up = np.histogram2d(x, y, bins=cells)
    x, y = ((edges[:-1] + edges[1:]) / 2 for edges in (across, up))
    figure.add_trace(count_heatmap(x, y, counts.T, unit, hover))


def _places(
    chosen: pd.DataFrame, x: str, y: str, names: Sequence[str], limit: int, condition: Callable[..., str]
) -> pd.DataFrame:
    """Return one row per place of the questions of a group: x, y, n, hover, door."""
    at = [np.floor(chosen[name].to_numpy() * _PLACES + 0.5).astype(np.int64) for name in (x, y)]
    found = []
    for (across, up), rows in chosen.groupby(at, sort=True):
        n, first = len(rows), rows.iloc[0]
        lines = [safe_text(question, limit) for question in rows["question"][:_NAMED]]
        lines += [f"and {n - _NAMED:,} more: {n:,} questions"] if n > _NAMED else []
        lines += [f"{n} questions"] if 1 < n <= _NAMED else []
        values = f"{names[0]} {number(across / _PLACES)}, {names[1].lower()} {number(up / _PLACES)}"
        note = [first["note"]] if n == 1 and first["note"] else []
        hover = "<br>".join([*lines, first["group"], values, *note])
        ends = {name: ((v - 0.5) / _PLACES, (v + 0.5) / _PLACES) for name, v in ((x, across), (y, up))}
        shared_by = condition(**ends) if n > 1 else ""
        door = question_door(first["query_id"]) if n == 1 else where_door(shared_by) if shared_by else ""
        found.append((across / _PLACES, up / _PLACES, n, hover, door))
    return pd.DataFrame(found, columns=["x", "y", "n", "hover", "door"])
