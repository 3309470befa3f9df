"""Whether the promise holds in every group of questions, with a threshold of its own for each."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from core.charts.conformal.shared import void
from core.charts.theme import (
    BAND,
    add_line,
    add_marks,
    doors,
    empty_figure,
    marker,
    name_rows,
    new_figure,
    safe_text,
    where_door,
)
from core.conditions import where
from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import TEST
from core.conformal.promises import OTHERS
from core.text.display import count, percent

_MOST = 20  # groups with a row
_NAME = 18  # characters of its label


class _Data(NamedTuple):
    rows: pd.DataFrame  # group, n_calibration, reason, n_test, n_covered, low, high, at, door
    n_groups: int
    alpha: float


def group_coverage(analysis: ConformalAnalysis) -> go.Figure:
    """Draw the share of correct answers that are kept in each group, with the exact band of each.

    Each group is calibrated on its own correct answers. The dotted line is the promise, 1 − α. A group
    without a finite threshold, or without a tested answer, has a note and no mark. Marks lead to the tested
    questions of the group; of more than 20 groups the largest are shown. Empty for fewer than two groups.
    """
    return _draw(_data(analysis))


def _data(analysis: ConformalAnalysis) -> _Data | str:
    """Return one row per group, or why there is none."""
    if why := void(analysis):
        return why
    groups = analysis.groups
    if not len(groups):
        return "One threshold is for all: no groups have enough labels for thresholds of their own."
    # Those with most cases, in the order of the run.
    size = (groups["n_calibration"] + groups["n_test"]).sort_values(ascending=False, kind="stable")
    rows = groups.loc[size.index[:_MOST].sort_values()].reset_index(drop=True)
    doors_to = [
        where_door(where("conformal", "queries", kind=row.group, role=TEST, correct=True, score=(None, None)))
        if row.n_test and row.group != OTHERS
        else ""
        for row in rows.itertuples()
    ]
    return _Data(rows.assign(at=rows.index + 1, door=doors_to), len(groups), analysis.alpha)


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    rows, promise = data.rows, 100 * (1 - data.alpha)
    shown = rows[(rows["reason"] == "") & (rows["n_test"] > 0)]
    share = 100 * shown["n_covered"] / shown["n_test"]
    figure = new_figure(_alt(data, shown), "Correct answers kept (%)", "", height=120 + 46 * len(rows))
    if len(shown):
        figure.add_bar(
            name="Exact 95 % band",
            orientation="h",
            base=100 * shown["low"],
            x=100 * (shown["high"] - shown["low"]),
            y=shown["at"],
            width=0.6,
            marker={"color": BAND, "line": {"width": 0}},
            hoverinfo="skip",
        )
    add_line(figure, f"Promise ({percent(1 - data.alpha)})", [promise] * 2, [0.4, len(rows) + 0.6])
    below = share < 100 * shown["low"]
    for name, style, chosen in (("As expected", "Aligned", ~below), ("Below the band", "Divergent", below)):
        own = shown[chosen]
        add_marks(
            figure, f"{name} ({len(own)})", share[chosen], own["at"], marker(style, 12),
            [_hover(row, data.alpha) for row in own.itertuples()], [*own["door"]], cliponaxis=False,
        )  # fmt: skip
    lowest = min(50.0, float(share.min()), 100 * float(shown["low"].min())) if len(shown) else 50.0
    lowest = min(lowest, promise - 10)
    _add_notes(figure, rows[~rows.index.isin(shown.index)], data.alpha, (lowest + 100) / 2)
    figure.update_xaxes(range=[lowest - 2, 102])
    name_rows(figure, [f"{safe_text(row.group, _NAME)}<br>n = {row.n_test:,}" for row in rows.itertuples()])
    return figure


def _add_notes(figure: go.Figure, rows: pd.DataFrame, alpha: float, middle: float) -> None:
    """Say in the row of a group that its share is undefined; its place on the x axis means nothing."""
    if not len(rows):
        return
    figure.add_scatter(
        name="Undefined",
        mode="text",
        x=[middle] * len(rows),
        y=rows["at"],
        text=["no tested answer" if not reason else "no finite threshold" for reason in rows["reason"]],
        showlegend=False,
        cliponaxis=False,
        **doors(figure, rows["door"], [_hover(row, alpha) for row in rows.itertuples()]),
    )


def _hover(row: Any, alpha: float) -> str:
    lines = [
        safe_text(row.group),
        f"{count(row.n_calibration, 'correct answer')} calibrate{'s' if row.n_calibration == 1 else ''}",
    ]
    if row.reason:
        lines.append(f"Undefined because: {row.reason}".replace("; ", ";<br>"))
        lines.append(f"{count(row.n_test, 'tested correct answer')}")
    elif not row.n_test:
        lines.append("No tested correct answer")
    else:
        covered = f"{row.n_covered:,} of {count(row.n_test, 'tested correct answer')} kept"
        lines.append(f"{covered} ({percent(row.n_covered / row.n_test)})")
        band = "" if math.isnan(row.low) else f", {percent(row.low)} to {percent(row.high)} expected"
        lines.append(f"{percent(1 - alpha)} promised{band}")
    return "<br>".join(lines)


def _alt(data: _Data, shown: pd.DataFrame) -> str:
    more = f"; the {_MOST} largest of {data.n_groups:,} are shown" if data.n_groups > _MOST else ""
    groups = count(len(data.rows), "group")
    start = f"Correct answers kept in {groups} of questions, {percent(1 - data.alpha)} promised"
    if shown.empty:
        return f"{start}: 0 of {groups} have a finite threshold and a tested answer{more}."
    below = int((shown["n_covered"] / shown["n_test"] < shown["low"]).sum())
    left = len(data.rows) - len(shown)
    return (
        f"{start}: {below:,} of {count(len(shown), 'group')} with "
        f"{count(int(shown['n_test'].sum()), 'tested answer')} below the exact 95 % band "
        f"({0.025 * len(shown):.1f} at most by chance); {left:,} undefined{more}."
    )
