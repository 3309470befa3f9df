"""Retrieval rank against rank by influence: where passages are more often than chance puts them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Floats
from core.charts.theme import (
    AXIS,
    FONT_SIZE,
    STYLES,
    doors,
    empty_figure,
    marker,
    new_figure,
    two_sided,
    where_door,
)
from core.conditions import where
from core.influence import InfluenceAnalysis
from core.influence.places import Places, places
from core.text.display import count, number

_TEXT_UP_TO = 12  # cells a side that have room for their count on a phone
_DASHES = {"Aligned": "solid", "Divergent": "dash"}


class _Data(NamedTuple):
    cells: Places
    means: pd.DataFrame  # label, order, mean, n: mean influence rank at each retrieval rank
    label: str | None


def rank_against_rank(analysis: InfluenceAnalysis, label: str | None = None) -> go.Figure:
    """Draw how many passages of each retrieval rank have which influence rank, against random orders.

    A cell is blue where it has more passages than random orders of each question's own influences would put
    there, red where it has fewer; ties count in parts at all ranks that they span. Lines are the mean
    influence rank of aligned and of divergent questions: on the diagonal passages are used as they were
    retrieved. Cells and marks lead to their questions.

    Only questions with a defined rank agreement enter, and of these only those with ``label``, where given;
    empty when there are none.
    """
    return _draw(_data(analysis, label))


def _data(analysis: InfluenceAnalysis, label: str | None) -> _Data:
    labels = analysis.defined.set_index("query_id")["label"]
    rows = analysis.passages[["query_id", "retrieval_order", "influence_rank"]]
    rows = rows[rows["query_id"].isin(labels.index if label is None else labels.index[labels == label])]
    rows = rows.assign(label=rows["query_id"].map(labels), order=np.floor(rows["retrieval_order"] + 0.5))
    means = rows.groupby(["label", "order"], as_index=False).agg(
        mean=("influence_rank", "mean"), n=("influence_rank", "size")
    )
    return _Data(places(analysis, label), means, label)


def _draw(data: _Data) -> go.Figure:
    cells = data.cells
    whose = "" if data.label is None else f"{data.label.lower()} "
    if not cells.n:
        return empty_figure(
            f"No question is {data.label.lower()} at this threshold."
            if data.label
            else "No question has a defined rank agreement."
        )
    top, diagonal = cells.last[-1], np.trace(cells.observed)
    alt = (
        f"Influence rank against retrieval rank of {count(cells.n_passages, 'passage')} from "
        f"{count(cells.n, f'{whose}question')}: {number(diagonal, '{:.1f}')} passages on the diagonal, "
        f"{number(np.trace(cells.expected), '{:.1f}')} by chance; at retrieval rank 1 and influence rank 1 "
        f"{number(cells.observed[0, 0], '{:.1f}')}, {number(cells.expected[0, 0], '{:.1f}')} by chance."
    )
    figure = new_figure(alt, "Retrieval rank (1 = first)", "Influence rank (1 = most used)", height=460)
    middle = (cells.first + cells.last) / 2
    figure.add_trace(_heatmap(cells, middle))
    figure.add_shape(type="line", x0=1, y0=1, x1=top, y1=top, line={"color": AXIS, "width": 2, "dash": "dot"})
    _add_doors(figure, cells, middle, data.label)
    for label in ("Aligned", "Divergent"):
        _add_means(figure, data.means[data.means["label"] == label], label)
    ticks = _ticks(top)
    figure.update_xaxes(range=[0.4, top + 0.6], tickvals=ticks, showgrid=False)
    figure.update_yaxes(range=[top + 0.6, 0.4], tickvals=ticks, showgrid=False)
    figure.update_layout(hoverdistance=100)
    return figure


def _heatmap(cells: Places, middle: Floats) -> go.Heatmap:
    excess = cells.observed - cells.expected
    most = max(float(np.abs(excess).max()), 1.0)
    small = len(middle) <= _TEXT_UP_TO
    return go.Heatmap(
        x=middle,
        y=middle,
        z=np.round(excess, 2),
        zmin=-most,
        zmax=most,
        # Pale enough for the page's own text colour on top.
        colorscale=two_sided(0.0, 0.6),
        text=[[f"{n:.0f}" for n in row] for row in cells.observed] if small else None,
        texttemplate="%{text}" if small else None,
        hoverinfo="skip",
        xgap=1,
        ygap=1,
        colorbar={
            "title": {"text": "passages beyond chance", "side": "right", "font": {"size": FONT_SIZE - 1}},
            "thickness": 10,
            "outlinewidth": 0,
        },
    )


def _add_doors(figure: go.Figure, cells: Places, middle: Floats, label: str | None) -> None:
    """Lay a clear square over each cell: heat maps themselves cannot be selected."""
    side = len(middle)
    rows, columns = (part.ravel().tolist() for part in np.indices((side, side)))
    leads_to, hover = [], []
    for row, column in zip(rows, columns, strict=True):
        n, own = int(cells.n_questions[row, column]), {} if label is None else {"label": label}
        condition = where(
            "influence",
            "passages",
            retrieval_order=_whole(cells, column),
            best_influence_rank=(None, int(cells.last[row] + 1)),
            worst_influence_rank=(int(cells.first[row]), None),
            **own,
        )
        leads_to.append(where_door(condition) if n else "")
        observed, expected = cells.observed[row, column], cells.expected[row, column]
        hover.append(
            f"Retrieved {_ranks(cells, column)}, used {_ranks(cells, row)}<br>"
            f"{number(observed, '{:.1f}')} passages, {number(expected, '{:.1f}')} by chance<br>"
            f"{count(n, 'question')}, ties included"
        )
    figure.add_scatter(
        mode="markers",
        x=middle[columns],
        y=middle[rows],
        marker={"symbol": "square", "size": 26, "opacity": 0, "color": STYLES["highlight"].color},
        selected={"marker": {"opacity": 0.5}},
        showlegend=False,
        **doors(figure, leads_to, hover),
    )


def _whole(cells: Places, column: int) -> int | tuple[float, float]:
    """Return the retrieval ranks of a column as a condition."""
    first, last = cells.first[column], cells.last[column]
    return int(first) if first == last and cells.whole else (float(first - 0.5), float(last + 0.5))


def _ranks(cells: Places, i: int) -> str:
    first, last = cells.first[i], cells.last[i]
    return f"{first:g}" if first == last else f"{first:g} to {last:g}"


def _add_means(figure: go.Figure, means: pd.DataFrame, label: str) -> None:
    if not (means["n"] > 1).any():  # one question has no mean
        return
    hover = [
        f"{label} questions: mean influence rank {number(row.mean, '{:.1f}')} of {count(row.n, 'passage')} "
        f"retrieved {row.order:g}"
        for row in means.itertuples()
    ]
    leads_to = [where_door(where("influence", "queries", label=label))] * len(means)
    n = int(means["n"].max())
    figure.add_scatter(
        name=f"{label} ({n:,}), mean",
        mode="lines+markers",
        x=means["order"],
        y=means["mean"],
        line={"color": STYLES[label].color, "width": 2, "dash": _DASHES[label]},
        marker={**marker(label, 8), "line": {"width": 1, "color": "white"}},
        **doors(figure, leads_to, hover),
    )


def _ticks(top: float) -> list[int]:
    """Whole ranks from 1, at most about ten of them."""
    step = max(1, int(np.ceil(top / 10)))
    return [1, *range(step if step > 1 else 2, int(top) + 1, step)]
