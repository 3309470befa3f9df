"""How well the metrics recover the simulation's ground truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.text.display import count, number


def recovery_chart(frame: pd.DataFrame) -> go.Figure:
    """Draw each check of a simulated run (`core.influence.recovery`) with its interval and its ideal value.

    One row per check, in the frame's order; shares are circles, differences of ρ diamonds, open squares the
    ideal. Rows without cases say so. Marks lead to the questions to read. Empty for an empty frame.
    """
    return _draw(_data(frame))


def _data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with the columns known, difference and ideal."""
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
        return theme.empty_figure("This run has no ground truth, so there is nothing to recover.")
    known = data[data["known"]]
    listed = ", ".join(
        f"{theme.plain_text(row.check, 40)} {number(row.value)} ({count(row.n, 'case')})"
        for row in known.itertuples()
    )
    alt = f"Recovery of the ground truth: {listed or 'no cases'}."
    figure = theme.new_figure(alt, "Share, or difference of ρ", "", height=120 + 32 * len(data))
    ideal = {"symbol": "square-open", "size": 13, "color": theme.AXIS, "line": {"width": 2}}
    theme.add_marks(figure, "Ideal", data["ideal"], data.index, ideal, "Ideal: %{x:.0f}")
    for name, style, rows in (
        ("Share, 95 % interval", "Aligned", known[~known["difference"]]),
        ("Difference of ρ", "Divergent", known[known["difference"]]),
    ):
        _add_points(figure, rows, name, style)
    for at in data.index[~data["known"]]:
        figure.add_annotation(text="no cases", x=0.5, y=at, yshift=9, showarrow=False)
    values = np.r_[data["ideal"], known["low"], known["high"]]
    figure.update_xaxes(range=[min(values) - 0.06, max(values) + 0.06])
    figure.update_yaxes(
        range=[len(data) - 0.4, -0.6],
        tickvals=data.index,
        ticktext=[theme.safe_text(check, 24) for check in data["check"]],
        showgrid=True,
    )
    return figure


def _add_points(figure: go.Figure, rows: pd.DataFrame, name: str, style: str) -> None:
    hover = [
        f"{number(row.value, '{:.3f}')} ({number(row.low)} to {number(row.high)}), "
        f"{count(row.n, 'case')}<br>{theme.safe_text(row.meaning)}"
        + (f"<br>{theme.safe_text(row.about)}: {count(row.n_questions, 'question')}" if row.cases else "")
        for row in rows.itertuples()
    ]
    leads_to = [
        theme.where_door(f"influence.{row.cases}") if row.n_questions else "" for row in rows.itertuples()
    ]
    bars = theme.error_bars(rows["value"], rows["low"], rows["high"], theme.STYLES[style].color)
    look = theme.marker(style, 10)
    theme.add_marks(figure, name, rows["value"], rows.index, look, hover, leads_to, error_x=bars)
