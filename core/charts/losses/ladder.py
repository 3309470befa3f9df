"""The ladder: at which stage each incorrect answer is lost, and what the correct ones rest on."""

from __future__ import annotations

from typing import NamedTuple

import plotly.graph_objects as go

from core.charts import theme
from core.conditions import where
from core.losses.analysis import Losses
from core.losses.ladder import LOST, UNKNOWN, Step
from core.text.display import about, count


class _Rung(NamedTuple):
    """One stage: its bar goes from ``start`` to ``end``, after those of the stages before it."""

    step: Step
    title: str
    start: int
    style: str

    @property
    def end(self) -> int:
        return self.start + self.step.n

    @property
    def text(self) -> str:
        return f"{self.step.n:,} ({self.step.low:.0f} to {self.step.high:.0f})"


def loss_ladder(losses: Losses) -> go.Figure:
    """Draw how many answers are lost at each stage, in the order of the pipeline, then what is correct.

    Each bar begins where the one above it ends, so that all of them together are the judged answers; it has
    the 95 % interval of its count and, where the placebo would put some, a tick at that count. A bar leads to
    its questions. Stages without an answer and without any by the placebo are left out. Empty where no answer
    is judged.
    """
    rungs = _data(losses)
    if not rungs:
        return theme.empty_figure("No answer of this run is judged.")
    figure = theme.new_figure(
        _alt(losses, rungs), f"Judged answers ({losses.n:,})", "", 110 + 38 * len(rungs)
    )
    for style, name in _looks(losses).items():
        own = [one for one in rungs if one.style == style]
        theme.add_row_bars(
            figure, name, [one.step.n for one in own], [one.title for one in own], style,
            [_hover(one) for one in own], leads_to=[_door(one.step) for one in own],
            base=[one.start for one in own],
        )  # fmt: skip
    _intervals(figure, rungs)
    by_placebo = [one for one in rungs if one.step.expected is not None]
    theme.add_marks(
        figure, "By the placebo", [one.start + (one.step.expected or 0.0) for one in by_placebo],
        [one.title for one in by_placebo], theme.chance_tick(20),
        # A tick leads where its bar does: a click near both is taken for one on the tick.
        [_hover(one) for one in by_placebo], [_door(one.step) for one in by_placebo], cliponaxis=False,
    )  # fmt: skip
    for one in rungs:
        left = one.start > losses.n / 2  # the text stands where there is room
        at = one.start + (0 if left else max(one.step.n, one.step.high, one.step.expected or 0.0))
        figure.add_annotation(
            x=at, y=one.title, text=one.text, showarrow=False, xanchor="right" if left else "left",
            xshift=-6 if left else 6,
        )  # fmt: skip
    most = max(losses.n, *(one.start + one.step.high for one in rungs))
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(range=[0, most * 1.02], tickformat=",d", dtick=theme.count_step(most))
    titles = [one.title for one in rungs]
    figure.update_yaxes(autorange="reversed", showgrid=False, categoryarray=titles, categoryorder="array")
    return figure


def _data(losses: Losses) -> list[_Rung]:
    """Return the stages that are drawn, in order, each with the place where its bar begins."""
    found, start = [], 0
    for step in losses.steps:
        if step.n or step.expected:
            style = "Undefined" if step.stage == UNKNOWN else "Divergent" if step.stage in LOST else "Aligned"
            found.append(_Rung(step, losses.title(step.stage), start, style))
        start += step.n
    return found


def _looks(losses: Losses) -> dict[str, str]:
    good = losses.outcome.good.capitalize()
    return {"Divergent": "Lost here", "Undefined": "Not known", "Aligned": good}


def _intervals(figure: go.Figure, rungs: list[_Rung]) -> None:
    middle, low, high = (
        [one.start + value for one, value in zip(rungs, values, strict=True)]
        for values in zip(*((one.step.n, one.step.low, one.step.high) for one in rungs), strict=True)
    )
    bars = theme.error_bars(middle, low, high, theme.STYLES["neutral"].color)
    theme.add_marks(
        figure, "95 % interval of the count", middle, [one.title for one in rungs],
        {"size": 1, "color": theme.STYLES["neutral"].color}, None, error_x=bars, cliponaxis=False,
    )  # fmt: skip


def _door(step: Step) -> str:
    return theme.where_door(where("losses", "queries", stage=step.stage)) if step.n else ""


def _hover(one: _Rung) -> str:
    step = one.step
    lines = [
        f"{one.title}: {step.n:,} of {count(step.of, 'judged answer')}",
        f"95 % interval {step.low:.0f} to {step.high:.0f}",
    ]
    if step.expected is not None:
        lines.append(f"{about(step.expected)} by the placebo")
    return "<br>".join(lines)


def _alt(losses: Losses, rungs: list[_Rung]) -> str:
    parts = "; ".join(
        f"{one.title} {one.step.n:,}"
        + ("" if one.step.expected is None else f" ({about(one.step.expected)} by the placebo)")
        for one in rungs
    )
    return f"Where {count(losses.n, 'judged answer')} are lost or kept: {parts}."
