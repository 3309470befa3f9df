"""One question: each passage's retrieval order and its rank by influence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.conditions import where
from core.influence import InfluenceAnalysis
from core.influence.definitions import REASONS
from core.rows import once_for, places_of, rows_of
from core.text.display import count, number

FAR = 3.0  # places
_MOST_NAMES = 3
_LOOKS = (  # style, name, dash
    ("neutral", "Less than 3 places, or unused", "dot"),
    ("raised", "Used higher", "solid"),
    ("lowered", "Used lower", "dash"),
)


def rank_slope(analysis: InfluenceAnalysis, query_id: str) -> go.Figure:
    """Draw one line per passage from its retrieval order (left) to its influence rank (right).

    Moves of three places or more, up or down, have a colour, symbol and dash of their own; a passage
    without any influence never counts as moved up. Tied passages meet at the same height. A passage is
    named by its retrieval order; its line leads to all questions with a passage at the same two ranks.
    Where ranks by influence are undefined, an empty figure gives the reason.
    """
    found = rows_of(analysis.queries, query_id)
    if not len(found):
        return theme.empty_figure("This run has no such question.")
    reason = found["reason"].iloc[0]
    if isinstance(reason, str):
        return theme.empty_figure(f"Ranks by influence undefined: {REASONS[reason].meaning}")
    data = _data(analysis, query_id)
    k, moved = len(data), data["style"].value_counts()
    ends = {rank: _names(group) for rank, group in data.groupby("right")["left"]}
    tied = k - sum(text.startswith("#") for text in ends.values())
    alt = (
        f"Retrieval order against influence rank of {count(k, 'passage')}, ρ {number(found['rho'].iloc[0])}: "
        f"{moved.get('raised', 0)} used at least three places higher than retrieved, "
        f"{moved.get('lowered', 0)} at least three lower, {tied} tied."
    )
    figure = theme.new_figure(alt, "", "Rank (1 on top)", height=int(np.clip(130 + 28 * k, 300, 1_200)))
    for style, title, dash in _LOOKS:
        lines = data[data["style"] == style]
        if len(lines):
            _add_lines(figure, lines, style, f"{title} ({len(lines)})", dash)
    for rank, text in ends.items():
        figure.add_annotation(
            text=text, x=1, y=rank, xanchor="left", xshift=10, showarrow=False, align="left"
        )
    figure.update_xaxes(
        range=[-0.12, 1.42], tickvals=[0, 1], ticktext=["Retrieved", "Used"], side="top", showgrid=False
    )
    figure.update_yaxes(range=[k + 0.7, 0.3], tickvals=list(range(1, k + 1, max(1, k // 15))))
    return figure


def _data(analysis: InfluenceAnalysis, query_id: str) -> pd.DataFrame:
    """One row per passage in retrieval order: left and right end, style, hover, door."""
    alike = once_for(analysis.passages, "alike", _alike)
    own = places_of(analysis.passages, query_id)
    passages = analysis.passages.iloc[own].assign(title=analysis.run.passages["title"].iloc[own].array)
    rows, measure = [], analysis.measure
    for row in passages.sort_values("retrieval_order", kind="stable").itertuples():
        ends = {"retrieval_order": f"{row.retrieval_order:g}", "influence_rank": f"{row.influence_rank:g}"}
        hover = (
            f"{theme.safe_text(theme.name_of(row.title, row.passage_id), 60)}<br>Retrieved as "
            f"{row.retrieval_order:g}, used as {row.influence_rank:g}<br>"
            f"{measure.heading} {number(row.influence)}{measure.in_unit}"
            f"<br>The same ranks in {count(alike[row.retrieval_order, row.influence_rank], 'question')}"
        )
        door = theme.where_door(where("influence", "passages", **ends))
        style = _style(row.rank_shift, row.influence)
        rows.append((row.retrieval_order, row.influence_rank, style, hover, door))
    return pd.DataFrame(rows, columns=["left", "right", "style", "hover", "door"])


def _alike(passages: pd.DataFrame) -> dict[Any, int]:
    """Return the number of questions with a passage at each pair of ranks."""
    ranks = passages.groupby(["retrieval_order", "influence_rank"])
    found: dict[Any, int] = ranks["query_id"].nunique().to_dict()
    return found


def _style(shift: float, influence: float) -> str:
    """Name how a passage moved; one without influence was not used, however high its tied rank."""
    if abs(shift) < FAR or (shift > 0 and influence <= 0):
        return "neutral"
    return "raised" if shift > 0 else "lowered"


def _names(orders: pd.Series) -> str:
    if len(orders) > _MOST_NAMES:
        return f"{len(orders)} tied"
    return ("= " if len(orders) > 1 else "") + ", ".join(f"#{order:g}" for order in orders)


def _add_lines(figure: go.Figure, lines: pd.DataFrame, style: str, name: str, dash: str) -> None:
    """All lines of one style as one trace: a gap after each."""
    thin, color = dash == "dot", theme.STYLES[style].color
    rows = list(lines.itertuples())
    theme.add_marks(
        figure,
        name,
        [x for _ in rows for x in (0, 1, None)],
        [y for row in rows for y in (row.left, row.right, None)],
        theme.marker(style, 7 if thin else 10),
        [text for row in rows for text in (row.hover, row.hover, "")],
        [door for row in rows for door in (row.door, row.door, "")],
        mode="lines+markers",
        line={"color": color, "dash": dash, "width": 1.5 if thin else 3},
        connectgaps=False,
    )
