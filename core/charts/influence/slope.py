"""One question: each passage's retrieval order and its rank by influence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import STYLES, Style, doors, empty_figure, name_of, new_figure, safe_text, where_door
from core.conditions import where
from core.influence import InfluenceAnalysis
from core.influence.definitions import REASONS
from core.rows import once_for, places_of, rows_of
from core.text.display import count, number

FAR = 3.0  # places
_MOST_NAMES = 3


class _Line(NamedTuple):
    left: float
    right: float
    style: str  # a key of STYLES
    hover: str
    door: str


class _Data(NamedTuple):
    rho: float
    lines: tuple[_Line, ...]
    ends: tuple[tuple[float, str], ...]  # influence rank, the passages at this rank


def rank_slope(analysis: InfluenceAnalysis, query_id: str) -> go.Figure:
    """Draw one line per passage from its retrieval order (left) to its influence rank (right).

    Moves of three places or more, up or down, have a colour, symbol and dash of their own; a passage
    without any influence never counts as moved up. Tied passages meet at the same height. A passage is
    named by its retrieval order; its line leads to all questions with a passage at the same two ranks.
    Where ranks by influence are undefined, an empty figure gives the reason.
    """
    return _draw(_data(analysis, query_id))


def _alike(passages: pd.DataFrame) -> dict[Any, int]:
    """Return the number of questions with a passage at each pair of ranks."""
    found: dict[Any, int] = (
        passages.groupby(["retrieval_order", "influence_rank"])["query_id"].nunique().to_dict()
    )
    return found


def _data(analysis: InfluenceAnalysis, query_id: str) -> _Data | str:
    """Return the lines, or why there are none."""
    found = rows_of(analysis.queries, query_id)
    if not len(found):
        return "This run has no such question."
    reason = found["reason"].iloc[0]
    if isinstance(reason, str):
        return f"Ranks by influence undefined: {REASONS[reason].meaning}"
    alike = once_for(analysis.passages, "alike", _alike)
    own = places_of(analysis.passages, query_id)
    titles = analysis.run.passages["title"].iloc[own]
    passages = analysis.passages.iloc[own].assign(title=titles.array)
    passages = passages.sort_values("retrieval_order", kind="stable")
    lines = [
        _Line(
            row.retrieval_order,
            row.influence_rank,
            _style(row.rank_shift, row.influence),
            f"{safe_text(name_of(row.title, row.passage_id), 60)}<br>Retrieved as {row.retrieval_order:g}, "
            f"used as {row.influence_rank:g}<br>Influence {number(row.influence)}<br>The same ranks in "
            f"{count(alike[row.retrieval_order, row.influence_rank], 'question')}",
            where_door(
                where(
                    "influence",
                    "passages",
                    retrieval_order=f"{row.retrieval_order:g}",
                    influence_rank=f"{row.influence_rank:g}",
                )
            ),
        )
        for row in passages.itertuples()
    ]
    ends = tuple(
        (float(rank), _names([f"{order:g}" for order in group]))
        for rank, group in passages.groupby("influence_rank")["retrieval_order"]
    )
    return _Data(float(found["rho"].iloc[0]), tuple(lines), ends)


def _style(shift: float, influence: float) -> str:
    """Name how a passage moved; one without influence was not used, however high its tied rank."""
    if abs(shift) < FAR or (shift > 0 and influence <= 0):
        return "neutral"
    return "raised" if shift > 0 else "lowered"


def _names(orders: list[str]) -> str:
    if len(orders) == 1:
        return f"#{orders[0]}"
    if len(orders) > _MOST_NAMES:
        return f"{len(orders)} tied"
    return "= " + ", ".join(f"#{order}" for order in orders)


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    k = len(data.lines)
    moved = {style: sum(line.style == style for line in data.lines) for style in ("raised", "lowered")}
    tied = k - sum(text.startswith("#") for _, text in data.ends)
    alt = (
        f"Retrieval order against influence rank of {count(k, 'passage')}, ρ {number(data.rho)}: "
        f"{moved['raised']} used at least three places higher than retrieved, {moved['lowered']} at least "
        f"three lower, {tied} tied."
    )
    figure = new_figure(alt, "", "Rank (1 on top)", height=int(np.clip(130 + 28 * k, 300, 1_200)))
    titles = {"neutral": "Less than 3 places, or unused", "raised": "Used higher", "lowered": "Used lower"}
    dashes = {"neutral": "dot", "raised": "solid", "lowered": "dash"}
    for style, title in titles.items():
        lines = [line for line in data.lines if line.style == style]
        if lines:
            _add_lines(figure, lines, STYLES[style], f"{title} ({len(lines)})", dashes[style])
    for rank, text in data.ends:
        figure.add_annotation(
            text=text, x=1, y=rank, xanchor="left", xshift=10, showarrow=False, align="left"
        )
    figure.update_xaxes(
        range=[-0.12, 1.42], tickvals=[0, 1], ticktext=["Retrieved", "Used"], side="top", showgrid=False
    )
    step = max(1, k // 15)
    figure.update_yaxes(range=[k + 0.7, 0.3], tickvals=list(range(1, k + 1, step)))
    return figure


def _add_lines(figure: go.Figure, lines: list[_Line], style: Style, name: str, dash: str) -> None:
    """All lines of one style as one trace: a gap after each."""
    figure.add_scatter(
        name=name,
        mode="lines+markers",
        x=[x for _ in lines for x in (0, 1, None)],
        y=[y for line in lines for y in (line.left, line.right, None)],
        line={"color": style.color, "dash": dash, "width": 1.5 if dash == "dot" else 3},
        marker={"color": style.color, "symbol": style.symbol, "size": 7 if dash == "dot" else 10},
        connectgaps=False,
        **doors(
            figure,
            [door for line in lines for door in (line.door, line.door, "")],
            [text for line in lines for text in (line.hover, line.hover, "")],
        ),
    )
