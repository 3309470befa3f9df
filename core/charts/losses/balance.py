"""What each fix makes correct and what it breaks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.charts import theme
from core.conditions import where
from core.losses.analysis import Losses
from core.losses.fixes import Fix
from core.text.display import count, number, p_text

_NAME = 40


class _Row(NamedTuple):
    fix: Fix
    title: str
    muted: bool  # it measures what a change of the prompt does, and fixes nothing


def fix_balance(losses: Losses) -> go.Figure:
    """Draw, for each fix, the answers it makes correct to the right of 0, and those it breaks to the left.

    A mark with its 95 % interval is the net gain. The placebo and the same prompt once more are drawn pale.
    A bar leads to its questions. Empty where no fix was tried.
    """
    rows = _data(losses)
    if not rows:
        return theme.empty_figure("No fix was tried on the questions of this run.")
    good = losses.outcome.good
    figure = theme.new_figure(_alt(losses, rows), "Answers", "", 120 + 40 * len(rows))
    for muted in (False, True):
        own = [row for row in rows if row.muted == muted]
        for change, sign, style, name in (
            ("fixed", 1, "Aligned", f"Becomes {good}"),
            ("broken", -1, "Divergent", f"Stops being {good}"),
        ):
            sizes = [sign * getattr(row.fix, change) for row in own]
            doors = [_door(losses, row, change) for row in own]
            hover = [_hover(losses, row) for row in own]
            look = {} if not muted else {"opacity": 0.3, "showlegend": False}
            theme.add_row_bars(
                figure, name, sizes, [row.title for row in own], style, hover, leads_to=doors, **look
            )
    _nets(figure, losses, rows)
    ends = [(row.fix.fixed, row.fix.broken, row.fix.low, row.fix.high) for row in rows]
    most = 1.08 * max(1.0, float(np.nanmax(np.abs(ends))))
    figure.add_vline(x=0, line={"color": theme.AXIS, "width": 2})
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(range=[-most, most], dtick=theme.count_step(most))
    titles = [row.title for row in rows]
    figure.update_yaxes(autorange="reversed", showgrid=False, categoryarray=titles, categoryorder="array")
    return figure


def _data(losses: Losses) -> list[_Row]:
    """Return the arms that were asked of some judged question: the fixes first, then what they must beat."""
    measures = [one for one in (losses.placebo, losses.again) if one is not None]
    return [
        _Row(fix, theme.safe_text(losses.titles.get(fix.arm, fix.arm), _NAME), fix in measures)
        for fix in (*losses.fixes, *measures)
        if fix.n and fix.asked
    ]


def _nets(figure: go.Figure, losses: Losses, rows: list[_Row]) -> None:
    for muted in (False, True):
        own = [row for row in rows if row.muted == muted]
        style = "Undefined" if muted else "highlight"
        net = [row.fix.net for row in own]
        bars = theme.error_bars(
            net, [row.fix.low for row in own], [row.fix.high for row in own], theme.STYLES[style].color
        )
        theme.add_marks(
            figure, "Net, 95 % interval", net, [row.title for row in own],
            {**theme.marker("highlight", 10), "color": theme.STYLES[style].color},
            [_hover(losses, row) for row in own],
            # A mark leads where the bar beneath it does: a click near both is taken for one on the mark.
            [_door(losses, row, "broken" if row.fix.net < 0 else "fixed") for row in own],
            error_x=bars, cliponaxis=False, showlegend=not muted,
        )  # fmt: skip


def _door(losses: Losses, row: _Row, change: str) -> str:
    arm, n = row.fix.arm, getattr(row.fix, change)
    if not n or not arm.isidentifier() or arm not in losses.queries:  # a user's arm may have any name
        return ""
    return theme.where_door(where("losses", "queries", **{arm: change}))


def _hover(losses: Losses, row: _Row) -> str:
    fix, good = row.fix, losses.outcome.good
    low, high = (number(end, "{:+.0f}") for end in (fix.low, fix.high))
    lines = [
        row.title,
        f"{fix.fixed:,} become {good}, {fix.broken:,} stop being so",
        f"net {number(fix.net, '{:+d}')} ({low} to {high}), of {count(fix.n, 'answer')}",
        f"another prompt for {count(fix.asked, 'question')}",
    ]
    if not row.muted:
        lines.append(f"{p_text(fix.p_adjusted)} corrected for {len(losses.fixes)} fixes: {fix.verdict}")
    if fix.tokens is not None:
        lines.append(f"{number(fix.tokens)} × the prompt tokens")
    return "<br>".join(lines)


def _alt(losses: Losses, rows: list[_Row]) -> str:
    good = losses.outcome.good
    parts = "; ".join(
        f"{row.title} {row.fix.fixed:,} and {row.fix.broken:,} of {row.fix.n:,}" for row in rows
    ).replace("<br>", " ")
    return f"Answers that become {good}, and that stop being {good}, under each fix: {parts}."
