"""What validation changes for a user: incorrect answers that are shown, and correct ones that are lost."""

from __future__ import annotations

from typing import NamedTuple

import plotly.graph_objects as go

from core.charts.theme import (
    STYLES,
    add_marks,
    empty_figure,
    error_bars,
    marker,
    name_rows,
    new_figure,
)
from core.charts.validation.shared import door, void
from core.text.display import count, percent
from core.validation.analysis import ValidationAnalysis
from core.validation.metrics import Share


class _Row(NamedTuple):
    title: str
    share: Share
    style: str
    door: str
    chance: float  # the same share where as many answers are stopped at random


def validators_on_off(analysis: ValidationAnalysis) -> go.Figure:
    """Draw how many incorrect answers reach the user without and with validators, and what is stopped.

    Shares of the labelled answers with 95 % intervals (Wilson). The marks of chance stop as many answers at
    random. Marks lead to their questions. Empty without labelled answers.
    """
    return _draw(_data(analysis))


def _data(analysis: ValidationAnalysis) -> list[_Row] | str:
    if why := void(analysis, labelled=True):
        return why
    found = analysis.stopped
    stopped = found.n_flagged / found.n
    known = {"critical": False, "correct": False}
    return [
        _Row("Incorrect, shown:<br>validators off", found.off, "neutral",
             door("verdicts", found.off.count, correct=False), found.off.rate),
        _Row("Incorrect, shown:<br>validators on", found.on, "influence",
             door("queries", found.on.count, **known), found.off.rate * (1 - stopped)),
        _Row("Incorrect,<br>stopped", found.wrong, "Aligned",
             door("queries", found.wrong.count, critical=True, correct=False), stopped),
        _Row("Correct,<br>stopped", found.right, "Divergent",
             door("queries", found.right.count, critical=True, correct=True), stopped),
    ]  # fmt: skip


def _draw(data: list[_Row] | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    off, on, stopped, lost = (row.share for row in data)
    alt = (
        f"Incorrect answers that reach the user, of {count(off.n, 'labelled answer')}: {off.count:,} with "
        f"validators off, {on.count:,} with validators on; stopped {stopped.count:,} of {stopped.n:,} "
        f"incorrect and {lost.count:,} of {lost.n:,} correct ones."
    )
    figure = new_figure(alt, "Share of the answers (%)", "", height=120 + 52 * len(data))
    shown = [(at, row) for at, row in enumerate(data, start=1) if row.share.n]
    for at, row in shown:
        low, high = row.share.interval
        rate = 100 * row.share.rate
        add_marks(
            figure, row.title.replace("<br>", " "), [rate], [at], marker(row.style, 12), [_hover(row)],
            [row.door], showlegend=False, cliponaxis=False,
            error_x=error_bars([rate], [100 * low], [100 * high], STYLES[row.style].color, 3),
        )  # fmt: skip
    by_chance = [(at, row.chance) for at, row in shown if at > 1]  # off is what it is
    add_marks(
        figure,
        "Chance: as many stopped at random",
        [100 * share for _, share in by_chance],
        [at for at, _ in by_chance],
        {"symbol": "line-ns", "size": 20, "line": {"width": 3, "color": STYLES["highlight"].color}},
        [f"By chance {percent(share)}" for _, share in by_chance],
        cliponaxis=False,
    )
    figure.update_xaxes(range=[-2, 102], dtick=20)
    name_rows(figure, [f"{row.title}<br>{row.share.count:,} of {row.share.n:,}" for row in data])
    return figure


def _hover(row: _Row) -> str:
    title = row.title.replace("<br>", " ")
    share = row.share
    return (
        f"{title}<br>{share.count:,} of {count(share.n, 'answer')} ({percent(share.rate)}; 95 %: "
        f"{percent(0, share.interval)})"
    )
