"""The share of correct answers of each run of a data set, in time."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from core.charts import theme
from core.report.trend import Trend
from core.text.display import count


def trend_figure(trend: Trend, door: Callable[[str], str]) -> go.Figure:
    """Draw a row for each run, the newest on top: the share of correct answers with its 95 % interval.

    A run whose set-up differs from that of the run before it has another mark. ``door`` says where the mark
    of a run leads, by its id. Empty where no run has a known outcome.
    """
    points = [one for one in reversed(trend.points) if one.n]
    if not points:
        return theme.empty_figure("No run of this data set has reference answers or labels.")
    alt = (
        f"Share of correct answers in {count(len(points), 'run')} of one data set, the newest first: "
        + "; ".join(f"{one.created[:10]} {one.text}" for one in points)
    )
    figure = theme.new_figure(f"{alt}.", "Correct (%), 95 % interval", "", height=110 + 46 * len(points))
    rows = list(enumerate(points, start=1))
    for name, style, changed in (
        ("Set-up as before", "neutral", False),
        ("Set-up changed", "highlight", True),
    ):
        own = [(row, one) for row, one in rows if bool(one.changed) == changed]
        share = [100 * one.n_correct / one.n for _, one in own]
        low, high = ([100 * one.interval[end] for _, one in own if one.interval] for end in (0, 1))
        theme.add_marks(
            figure, name, share, [row for row, _ in own], theme.marker(style, 11),
            [_hover(one.name, one.text, one.changes) for _, one in own],
            [door(one.run_id) for _, one in own],
            error_x=theme.error_bars(share, low, high, theme.STYLES[style].color), cliponaxis=False,
        )  # fmt: skip
    theme.name_rows(figure, [f"{one.created[:10]}<br>{theme.safe_text(one.name, 24)}" for one in points])
    figure.update_xaxes(range=[-1, 101], dtick=20)
    return figure


def _hover(*texts: str) -> str:
    return "<br>".join(theme.safe_text(text, 300) for text in texts if text)
