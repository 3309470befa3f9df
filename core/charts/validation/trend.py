"""How many answers pass validation, day by day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import plotly.graph_objects as go

from core.charts import theme
from core.text.display import count, percent
from core.validation.metrics import Metrics


def pass_rate_by_day(days: Mapping[date, Metrics]) -> go.Figure:
    """Draw the share of the answers of each day that pass, with 95 % intervals (Wilson).

    ``days`` as `core.validation.metrics.daily` returns them. A day without answers has no mark. Empty
    without answers on any day.
    """
    known = {day: one for day, one in days.items() if one.passed.n}
    if not known:
        return theme.empty_figure(f"No answer was validated in {count(len(days), 'day')}.")
    n = sum(one.passed.n for one in known.values())
    last, newest = list(known.items())[-1]
    alt = (
        f"Share of the answers that pass, {count(n, 'answer')} on {len(known):,} of "
        f"{count(len(days), 'day')}: {newest.passed.count:,} of {newest.passed.n:,} on {last}, the last day "
        "with answers."
    )
    figure = theme.new_figure(alt, "Day (UTC)", "Answers that pass (%)", height=320)
    rates = [100 * one.passed.rate for one in known.values()]
    low, high = zip(*(one.passed.interval for one in known.values()), strict=True)
    color = theme.STYLES["Aligned"].color
    hover = [
        f"{day}: {one.passed.count:,} of {count(one.passed.n, 'answer')} pass<br>{percent(one.passed.rate)} "
        f"(95 %: {percent(0, one.passed.interval)})<br>{one.fallback.count:,} fallbacks"
        for day, one in known.items()
    ]
    theme.add_marks(
        figure, "Answers that pass", list(known), rates, theme.marker("Aligned"), hover, mode="lines+markers",
        line={"color": color, "width": 1, "dash": "dot"}, showlegend=False, cliponaxis=False,
        error_y=theme.error_bars(rates, [100 * end for end in low], [100 * end for end in high], color),
    )  # fmt: skip
    ends = [f"{min(days)}T00:00", f"{max(days)}T23:59"]
    figure.update_xaxes(type="date", range=ends, tickformat="%-d %b", tickangle=0)
    figure.update_yaxes(range=[-2, 102], dtick=20)
    return figure
