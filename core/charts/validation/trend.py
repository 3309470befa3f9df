"""How many answers pass validation, day by day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import plotly.graph_objects as go

from core.charts.theme import STYLES, add_marks, empty_figure, error_bars, new_figure
from core.text.display import count, percent
from core.validation.metrics import Metrics


def pass_rate_by_day(days: Mapping[date, Metrics]) -> go.Figure:
    """Draw the share of the answers of each day that pass, with 95 % intervals (Wilson).

    ``days`` as `core.validation.metrics.daily` returns them. A day without answers has no mark. Empty
    without answers on any day.
    """
    return _draw(days, {day: one for day, one in days.items() if one.passed.n})


def _draw(days: Mapping[date, Metrics], known: Mapping[date, Metrics]) -> go.Figure:
    if not known:
        return empty_figure(f"No answer was validated in {count(len(days), 'day')}.")
    n = sum(one.passed.n for one in known.values())
    last, newest = list(known.items())[-1]
    alt = (
        f"Share of the answers that pass, {count(n, 'answer')} on {len(known):,} of "
        f"{count(len(days), 'day')}: {newest.passed.count:,} of {newest.passed.n:,} on {last}, the last day "
        "with answers."
    )
    figure = new_figure(alt, "Day (UTC)", "Answers that pass (%)", height=320)
    rates = [100 * one.passed.rate for one in known.values()]
    low, high = zip(*(one.passed.interval for one in known.values()), strict=True)
    color = STYLES["Aligned"].color
    add_marks(
        figure,
        "Answers that pass",
        list(known),
        rates,
        {"color": color, "symbol": "circle", "size": 9},
        [_hover(day, one) for day, one in known.items()],
        mode="lines+markers",
        line={"color": color, "width": 1, "dash": "dot"},
        error_y=error_bars(rates, [100 * end for end in low], [100 * end for end in high], color),
        showlegend=False,
        cliponaxis=False,
    )
    ends = [f"{min(days)}T00:00", f"{max(days)}T23:59"]
    figure.update_xaxes(type="date", range=ends, tickformat="%-d %b", tickangle=0)
    figure.update_yaxes(range=[-2, 102], dtick=20)
    return figure


def _hover(day: date, one: Metrics) -> str:
    share = one.passed
    return (
        f"{day}: {share.count:,} of {count(share.n, 'answer')} pass<br>{percent(share.rate)} (95 %: "
        f"{percent(0, share.interval)})<br>{one.fallback.count:,} fallbacks"
    )
