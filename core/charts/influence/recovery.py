"""How well the metrics recover the simulation's ground truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import (
    AXIS,
    STYLES,
    empty_figure,
    error_bars,
    marker,
    new_figure,
    plain_text,
    safe_text,
)
from core.text.display import count, number


def recovery_chart(frame: pd.DataFrame) -> go.Figure:
    """Draw each check of a simulated run with its interval, and where it should lie.

    Parameters
    ----------
    frame : DataFrame
        What `core.influence.recovery` returns: ``check, value, low, high, n, meaning``.

    Returns
    -------
    Figure
        One row per check, in the frame's order; shares are circles, differences of ρ diamonds,
        open squares the ideal. Rows without cases say so. An empty figure for an empty frame.
    """
    return _draw(_data(frame))


def _data(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per check: check, value, low, high, n, meaning, known, difference, ideal."""
    data = frame.copy().reset_index(drop=True)
    data["known"] = (data["n"] > 0) & data["value"].notna()
    check = data["check"].astype("str")
    data["difference"] = check.str.contains("ρ", regex=False)
    # Found and recognised shares should be 1; errors and false alarms 0.
    data["ideal"] = np.where(check.str.startswith(("Power", "Recognised")), 1.0, 0.0)
    for bound in ("low", "high"):
        data[bound] = data[bound].fillna(data["value"])
    return data


def _draw(data: pd.DataFrame) -> go.Figure:
    if not len(data):
        return empty_figure("Nothing was planted in this run, so there is nothing to recover.")
    known = data[data["known"]]
    listed = ", ".join(f"{plain_text(row.check, 40)} {number(row.value)}" for row in known.itertuples())
    alt = f"Recovery of what was planted: {listed or 'no cases'}."
    figure = new_figure(alt, "Share, or difference of ρ", "", height=120 + 32 * len(data))
    figure.add_scatter(
        name="Ideal",
        mode="markers",
        x=data["ideal"],
        y=data.index,
        hovertemplate="Ideal: %{x:.0f}<extra></extra>",
        marker={"symbol": "square-open", "size": 13, "color": AXIS, "line": {"width": 2}},
    )
    for name, style, rows in (
        ("Share, 95 % interval", "Aligned", known[~known["difference"]]),
        ("Difference of ρ", "Divergent", known[known["difference"]]),
    ):
        if len(rows):
            _add_points(figure, rows, name, style)
    for at in data.index[~data["known"]]:
        figure.add_annotation(text="no cases", x=0.5, y=at, yshift=9, showarrow=False)
    values = np.r_[data["ideal"], known["low"], known["high"]]
    figure.update_xaxes(range=[min(values) - 0.06, max(values) + 0.06])
    figure.update_yaxes(
        range=[len(data) - 0.4, -0.6],
        tickvals=data.index,
        ticktext=[safe_text(check, 24) for check in data["check"]],
        showgrid=True,
    )
    return figure


def _add_points(figure: go.Figure, rows: pd.DataFrame, name: str, style: str) -> None:
    figure.add_scatter(
        name=name,
        mode="markers",
        x=rows["value"],
        y=rows.index,
        error_x=error_bars(rows["value"], rows["low"], rows["high"], STYLES[style].color),
        customdata=[
            f"{number(row.value, '{:.3f}')} ({number(row.low)} to {number(row.high)}), "
            f"{count(row.n, 'case')}<br>{safe_text(row.meaning)}"
            for row in rows.itertuples()
        ],
        hovertemplate="%{customdata}<extra></extra>",
        marker=marker(style, 10),
    )
