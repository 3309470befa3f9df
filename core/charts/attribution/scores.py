"""One answer: the score of each passage, pairs that do not add up, and what each place in the prompt does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.attribution.analysis import AttributionAnalysis
from core.attribution.definitions import REASONS
from core.charts import theme
from core.rows import rows_of
from core.text.display import count, number

_PAIRS = {True: ("Either is enough", "Aligned", "solid"), False: ("Needs both", "highlight", "dash")}
_ARCS, _STRIP, _GAP = 0.2, 0.18, 0.06  # of the height


def passage_scores(analysis: AttributionAnalysis, query_id: str) -> go.Figure:
    """Draw the score of every passage with its 95 % interval, in the order of the prompt.

    Diamonds beside the bars are Shapley values, where they were measured. Arcs above join pairs that do not
    add up. Bars below are what each place does, whatever passage stands there, where that was measured. An
    empty figure gives the reason where the question has no scores.
    """
    passages = rows_of(analysis.passages, query_id)
    if passages.empty:
        found = rows_of(analysis.queries, query_id)
        reason = found["reason"].iloc[0] if len(found) else None
        said = REASONS[str(reason)].meaning if reason in REASONS else "This run has no such question."
        return theme.empty_figure(said)
    pairs, unit = rows_of(analysis.pairs, query_id), analysis.unit
    shared, placed = (bool(passages[name].notna().any()) for name in ("shapley", "slot_effect"))
    figure = theme.new_figure(
        _alt(passages, pairs, unit), "Passage, in the order of the prompt", f"Score ({unit})",
        300 + 80 * placed + 70 * (not pairs.empty),
    )  # fmt: skip
    _bars(figure, passages, unit, shared)
    _arcs(figure, pairs, unit)
    if placed:
        _strip(figure, passages, unit)
    figure.add_hline(y=0, line={"color": theme.AXIS, "width": 1.5})
    low, high = (_STRIP + _GAP) * placed, 1 - (_ARCS + _GAP / 2) * (not pairs.empty)
    figure.update_yaxes(domain=[low, high], selector={"anchor": None})
    k = len(passages)
    figure.update_xaxes(range=[0.4, k + 0.6], tick0=1, dtick=max(1, k // 20), anchor="y3" if placed else "y")
    return figure


def _bars(figure: go.Figure, passages: pd.DataFrame, unit: str, shared: bool) -> None:
    at, score = passages["slot"], passages["score"]
    hover = [_hover(one, unit) for one in passages.to_dict("records")]
    theme.add_bars(
        figure, f"Score{_of(passages, '')}", at - 0.12 * shared, score, "influence", hover, orientation="v",
        width=0.5, opacity=0.75, showlegend=True,
        error_y=_error(passages, "score", "", "neutral"),
    )  # fmt: skip
    if shared:
        theme.add_marks(
            figure, f"Shapley value{_of(passages, 'shapley_')}", at + 0.26, passages["shapley"],
            theme.marker("Divergent", 9), hover, error_y=_error(passages, "shapley", "shapley_", "Divergent"),
            showlegend=True,
        )  # fmt: skip


def _exact(passages: pd.DataFrame, name: str) -> bool:
    return bool((passages[f"{name}low"] == passages[f"{name}high"]).all())


def _of(passages: pd.DataFrame, name: str) -> str:
    return " (exact)" if _exact(passages, name) else ", 95 % interval"


def _error(passages: pd.DataFrame, value: str, name: str, style: str) -> dict[str, object] | None:
    """Return the bars of intervals; none where every subset was measured."""
    if _exact(passages, name):
        return None
    low, high = passages[f"{name}low"], passages[f"{name}high"]
    return theme.error_bars(passages[value], low, high, theme.STYLES[style].color)


def _hover(one: Mapping[str, Any], unit: str) -> str:
    lines = [
        f"{one['slot']:g}. {theme.safe_text(theme.name_of(one['title'], one['passage_id']), 60)}",
        f"score {between(one['score'], one['low'], one['high'])} {unit}",
    ]
    if one["shapley"] == one["shapley"]:
        lines.append(f"Shapley {between(one['shapley'], one['shapley_low'], one['shapley_high'])} {unit}")
    return "<br>".join(lines)


def between(value: float, low: float, high: float) -> str:
    """Return a value with its 95 % interval; one that is exact has none.

    >>> between(0.5, 0.25, 0.75), between(0.5, 0.5, 0.5)
    ('0.50 (0.25 to 0.75)', '0.50 (exact)')
    """
    if low == high == value:
        return f"{number(value)} (exact)"
    return f"{number(value)} ({number(low)} to {number(high)})" if low == low else number(value)


def _arcs(figure: go.Figure, pairs: pd.DataFrame, unit: str) -> None:
    if pairs.empty:
        return
    turn = np.linspace(0, np.pi, 41)
    for either, (title, style, dash) in _PAIRS.items():
        own = pairs[pairs["either"].astype(bool) == either]
        x: list[float | None] = []
        y: list[float | None] = []
        hover: list[str] = []
        for one in own.to_dict("records"):
            first, second = one["first_slot"], one["second_slot"]
            x += [*((first + second) / 2 - (second - first) / 2 * np.cos(turn)), None]
            y += [*((second - first) * np.sin(turn)), None]
            said = (
                f"{title}: {first} and {second}<br>together {number(one['interaction'], '{:+.2f}')} {unit} "
                f"beyond the sum<br>95 %: {number(one['low'])} to {number(one['high'])}"
            )
            hover += [said] * len(turn) + [""]
        theme.add_marks(
            figure, title, x, y, None, hover, mode="lines", yaxis="y2", connectgaps=False, showlegend=True,
            line={"color": theme.STYLES[style].color, "width": 3, "dash": dash},
        )  # fmt: skip
    most = float((pairs["second_slot"] - pairs["first_slot"]).max())
    figure.update_layout(
        yaxis2={
            "domain": [1 - _ARCS, 1], "anchor": "x", "visible": False, "range": [0, 1.1 * most],
            "fixedrange": True,
        }
    )  # fmt: skip


def _strip(figure: go.Figure, passages: pd.DataFrame, unit: str) -> None:
    hover = [
        f"Place {slot}: {number(effect, '{:+.2f}')} {unit}<br>whatever passage stands there"
        for slot, effect in passages[["slot", "slot_effect"]].itertuples(index=False)
    ]
    theme.add_bars(
        figure, "Effect of the place", passages["slot"], passages["slot_effect"], "neutral", hover,
        orientation="v", width=0.5, yaxis="y3", showlegend=True,
    )  # fmt: skip
    figure.update_layout(
        yaxis3={
            "domain": [0, _STRIP], "anchor": "x", "fixedrange": True, "gridcolor": theme.GRID, "nticks": 3,
            "automargin": True, "zeroline": True, "zerolinecolor": theme.AXIS,
            "title": {"text": "Place", "standoff": 8},
        }
    )  # fmt: skip


def _alt(passages: pd.DataFrame, pairs: pd.DataFrame, unit: str) -> str:
    first = passages.loc[passages["score"].idxmax()] if passages["score"].notna().any() else None
    most = (
        ""
        if first is None
        else f": the highest is {number(first['score'])} {unit} at place {first['slot']:g}"
    )
    either = int(pairs["either"].astype(bool).sum())
    joined = f"; pairs of which either is enough {either:,}, needed both {len(pairs) - either:,}"
    return f"Scores of {count(len(passages), 'passage')} for the answer{most}{joined if len(pairs) else ''}."
