"""Counts against chance, over all diagnostics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.diagnosis import Diagnosis
from core.socket import Number
from core.stats import wilson_interval
from core.text.display import count, percent

_LOOKS = ((True, "Observed, beyond chance", "Aligned"), (False, "Observed, as by chance", "neutral"))
_COLUMNS = ["title", "share", "low", "high", "chance", "n", "noun", "door"]


def against_chance(diagnosis: Diagnosis) -> go.Figure:
    """Draw every share that chance fills as well, with its 95 % interval and a tick at what chance gives.

    One row per count, and per share on a card, that has a chance value, in the order of the diagnostics. An
    interval that leaves out the tick is drawn strong, the others pale. A mark leads to the finding of that
    name or, where chance explains the count, to the questions counted. Empty where no number has a chance
    value.
    """
    data = _data(diagnosis)
    if not len(data):
        return theme.empty_figure("No number of this run can be compared with chance.")
    listed = "; ".join(
        f"{row.title} {percent(row.share)} of {row.n:,} ({percent(row.chance)} by chance)"
        for row in data.itertuples()
    )
    alt = f"Counts against chance: {listed}."
    figure = theme.new_figure(alt, "Share of the questions, %", "", height=110 + 44 * len(data))
    data["hover"] = [_hover(row) for row in data.itertuples()]
    for beyond, name, style in _LOOKS:
        rows = data[data["beyond"] == beyond]
        share, low, high = (100 * rows[one] for one in ("share", "low", "high"))
        theme.add_marks(
            figure, name, share, rows["title"], theme.marker(style, 11), rows["hover"], rows["door"],
            error_x=theme.error_bars(share, low, high, theme.STYLES[style].color), cliponaxis=False,
        )  # fmt: skip
    theme.add_marks(
        figure, "By chance", 100 * data["chance"], data["title"], theme.chance_tick(18), data["hover"],
        data["door"], cliponaxis=False,
    )  # fmt: skip
    figure.update_xaxes(range=[-1, 101], tick0=0, dtick=20)
    figure.update_yaxes(
        autorange="reversed", categoryarray=data["title"], categoryorder="array", showgrid=False
    )
    return figure


def _data(diagnosis: Diagnosis) -> pd.DataFrame:
    """One row per share: its title, ends and chance in [0, 1], n, what is counted, and where it leads."""
    rows = []
    for diagnostic in diagnosis.diagnostics:
        found = {one.name for one in diagnosis.findings_of(diagnostic.name)}
        if diagnostic.lacks(diagnosis.run) is None:
            for one, *shares in _shares(diagnosis, diagnostic.name):
                name = next((name for name in (one.key, one.define) if name in found), None)
                door = f"finding={quote(f'{diagnostic.name}.{name}')}" if name else ""
                if not door and one.cases and one.value:
                    door = theme.where_door(f"{diagnostic.name}.{one.cases}")
                rows.append((one.title, *shares, one.noun, door))
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    return frame.assign(beyond=(frame["chance"] < frame["low"]) | (frame["chance"] > frame["high"]))


def _shares(diagnosis: Diagnosis, name: str) -> Iterator[tuple[Number, float, float, float, float, int]]:
    """Yield the numbers that are shares, with share, interval, chance and n."""
    for one in diagnosis.numbers(name):
        if one.chance is None or one.value is None or one.place not in ("card", "row"):
            continue
        if one.noun == "passage":  # the axis is a share of the questions
            continue
        # Where nothing was counted and chance gives nothing either, there is nothing to compare.
        if one.of and (one.value or one.chance):
            share = one.value / one.of
            yield one, share, *wilson_interval(share, one.of), one.chance / one.of, one.of
        elif one.is_share and one.place == "card" and one.n and one.interval:
            yield one, one.value, *one.interval, one.chance, one.n


def _hover(row: Any) -> str:
    return (
        f"{row.title}: {percent(row.share)}, {round(row.share * row.n):,} of {count(row.n, row.noun)}<br>"
        f"95 % interval {percent(row.share, (row.low, row.high))}<br>{percent(row.chance)} by chance"
    )
