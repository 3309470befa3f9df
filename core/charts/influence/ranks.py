"""Retrieval rank against rank by influence: where passages are more often than chance puts them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.conditions import where
from core.influence import InfluenceAnalysis
from core.influence.places import Places, places
from core.text.display import count, number

_TEXT_UP_TO = 12  # cells a side that have room for their count on a phone
_DASHES = {"Aligned": "solid", "Divergent": "dash"}


def rank_against_rank(analysis: InfluenceAnalysis, label: str | None = None) -> go.Figure:
    """Draw how many passages of each retrieval rank have which influence rank, against random orders.

    A cell is blue where it has more passages than random orders of each question's own influences would put
    there, red where it has fewer; ties count in parts at all ranks that they span. Lines are the mean
    influence rank of aligned and of divergent questions: on the diagonal passages are used as they were
    retrieved. Cells and marks lead to their questions.

    Only questions with a defined rank agreement enter, and of these only those with ``label``, where given;
    empty when there are none.
    """
    cells = places(analysis, label)
    whose = f"{label.lower()} " if label else ""
    if not cells.n:
        return theme.empty_figure(
            f"No question is {whose}at this threshold."
            if label
            else "No question has a defined rank agreement."
        )
    top, diagonal = cells.last[-1], np.trace(cells.observed)
    alt = (
        f"Influence rank against retrieval rank of {count(cells.n_passages, 'passage')} from "
        f"{count(cells.n, f'{whose}question')}: {number(diagonal, '{:.1f}')} passages on the diagonal, "
        f"{number(np.trace(cells.expected), '{:.1f}')} by chance; at retrieval rank 1 and influence rank 1 "
        f"{number(cells.observed[0, 0], '{:.1f}')}, {number(cells.expected[0, 0], '{:.1f}')} by chance."
    )
    figure = theme.new_figure(alt, "Retrieval rank (1 = first)", "Influence rank (1 = most used)", height=460)
    _add_cells(figure, cells, label)
    line = {"color": theme.AXIS, "width": 2, "dash": "dot"}
    figure.add_shape(type="line", x0=1, y0=1, x1=top, y1=top, line=line)
    for name, means in _means(analysis, label).groupby("label"):
        if (means["n"] > 1).any():  # one question has no mean
            _add_means(figure, means, str(name))
    ticks = _ticks(top)
    figure.update_xaxes(range=[0.4, top + 0.6], tickvals=ticks, showgrid=False)
    figure.update_yaxes(range=[top + 0.6, 0.4], tickvals=ticks, showgrid=False)
    figure.update_layout(hoverdistance=100)
    return figure


def _means(analysis: InfluenceAnalysis, label: str | None) -> pd.DataFrame:
    """One row per label and retrieval rank: mean influence rank, and n passages."""
    labels = analysis.defined.set_index("query_id")["label"]
    rows = analysis.passages[["query_id", "retrieval_order", "influence_rank"]]
    rows = rows[rows["query_id"].isin(labels.index if label is None else labels.index[labels == label])]
    rows = rows.assign(label=rows["query_id"].map(labels), order=np.floor(rows["retrieval_order"] + 0.5))
    rows = rows[rows["label"].isin(_DASHES)]
    return rows.groupby(["label", "order"], as_index=False).agg(
        mean=("influence_rank", "mean"), n=("influence_rank", "size")
    )


def _add_cells(figure: go.Figure, cells: Places, label: str | None) -> None:
    middle, excess = (cells.first + cells.last) / 2, cells.observed - cells.expected
    most = max(float(np.abs(excess).max()), 1.0)
    small = len(middle) <= _TEXT_UP_TO
    title = {"text": "passages beyond chance", "side": "right", "font": {"size": theme.FONT_SIZE - 1}}
    figure.add_heatmap(
        x=middle,
        y=middle,
        z=np.round(excess, 2),
        zmin=-most,
        zmax=most,
        # Pale enough for the page's own text colour on top.
        colorscale=theme.two_sided(0.0, 0.6),
        text=[[f"{n:.0f}" for n in row] for row in cells.observed] if small else None,
        texttemplate="%{text}" if small else None,
        hoverinfo="skip",
        xgap=1,
        ygap=1,
        colorbar={"title": title, "thickness": 10, "outlinewidth": 0},
    )
    rows, columns = (part.ravel().tolist() for part in np.indices(excess.shape))
    found = [_cell(cells, *place, label) for place in zip(rows, columns, strict=True)]
    hover, leads_to = zip(*found, strict=True)
    theme.add_squares(figure, middle[columns], middle[rows], 26, hover, leads_to, 0.5)


def _cell(cells: Places, row: int, column: int, label: str | None) -> tuple[str, str]:
    """Return the hover and the door of a cell."""
    n, own = int(cells.n_questions[row, column]), {} if label is None else {"label": label}
    first, last = cells.first[column], cells.last[column]
    # The retrieval ranks of a column.
    order = int(first) if first == last and cells.whole else (float(first - 0.5), float(last + 0.5))
    condition = where(
        "influence",
        "passages",
        retrieval_order=order,
        best_influence_rank=(None, int(cells.last[row] + 1)),
        worst_influence_rank=(int(cells.first[row]), None),
        **own,
    )
    observed, expected = cells.observed[row, column], cells.expected[row, column]
    hover = (
        f"Retrieved {_ranks(cells, column)}, used {_ranks(cells, row)}<br>"
        f"{number(observed, '{:.1f}')} passages, {number(expected, '{:.1f}')} by chance<br>"
        f"{count(n, 'question')}, ties included"
    )
    return hover, theme.where_door(condition) if n else ""


def _ranks(cells: Places, i: int) -> str:
    first, last = cells.first[i], cells.last[i]
    return f"{first:g}" if first == last else f"{first:g} to {last:g}"


def _add_means(figure: go.Figure, means: pd.DataFrame, label: str) -> None:
    hover = [
        f"{label} questions: mean influence rank {number(row.mean, '{:.1f}')} of {count(row.n, 'passage')} "
        f"retrieved {row.order:g}"
        for row in means.itertuples()
    ]
    leads_to = [theme.where_door(where("influence", "queries", label=label))] * len(means)
    look = {**theme.marker(label, 8), "line": {"width": 1, "color": "white"}}
    line = {"color": theme.STYLES[label].color, "width": 2, "dash": _DASHES[label]}
    name = f"{label} ({int(means['n'].max()):,}), mean"
    theme.add_marks(
        figure, name, means["order"], means["mean"], look, hover, leads_to, mode="lines+markers", line=line
    )


def _ticks(top: float) -> list[int]:
    """Whole ranks from 1, at most about ten of them."""
    step = max(1, int(np.ceil(top / 10)))
    return [1, *range(step if step > 1 else 2, int(top) + 1, step)]
