"""Retrieval order against rank by influence, over all questions or a few."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Floats, Ints
from core.charts.theme import AXIS, empty_figure, marker, new_figure, safe_text, two_sided
from core.influence import InfluenceAnalysis
from core.influence.definitions import MODES
from core.text.display import count

HEATMAP_ABOVE = 400  # passages
_LABELS_UP_TO = 30  # passages
_MOST_CELLS = 50  # a side
_KINDS = {"other": "neutral", "ignored_top_hit": "Divergent", "buried_evidence": "raised"}
_SYMBOLS = {"other": "circle", "ignored_top_hit": "triangle-down", "buried_evidence": "triangle-up"}


class _Data(NamedTuple):
    places: pd.DataFrame  # kind, order, rank, n, text: one row per kind and place that passages share
    n_passages: int
    n_queries: int
    top: float  # the largest rank
    cells: _Cells | None


class _Cells(NamedTuple):
    centres: Floats
    counts: Floats  # rows are influence ranks, columns retrieval orders
    expected: Floats  # by chance


def rank_against_rank(analysis: InfluenceAnalysis, query_ids: Iterable[str] | None = None) -> go.Figure:
    """Draw each passage's rank by influence against its retrieval order.

    Passages that share a place share one marker, whose area grows with their number. Above 400 passages a
    heat map below shows where more, or fewer, passages are than random orders of each question's own
    influences would put there. On the diagonal a passage is used as it was retrieved. Ignored top hits and
    buried evidence have symbols of their own.

    Only questions with a defined rank agreement enter, and of these only ``query_ids`` where given (unknown
    ones are ignored); empty when there are none.
    """
    return _draw(_data(analysis, query_ids))


def _data(analysis: InfluenceAnalysis, query_ids: Iterable[str] | None) -> _Data:
    wanted = analysis.defined["query_id"]
    if query_ids is not None:
        wanted = wanted[wanted.isin(list(query_ids))]
    passages = analysis.passages
    passages = passages[passages["query_id"].isin(wanted)]
    order, rank = passages["retrieval_order"].to_numpy(), passages["influence_rank"].to_numpy()
    n = len(passages)
    top = float(max(order.max(), rank.max())) if n else 0.0
    flagged = ["ignored_top_hit", "buried_evidence"]
    kind = np.select([passages[name].to_numpy(dtype=bool) for name in flagged], flagged, default="other")
    frame = pd.DataFrame({"kind": kind, "order": order, "rank": rank, "name": passages["passage_id"].array})
    places = frame.groupby(["kind", "order", "rank"], as_index=False).agg(
        n=("rank", "size"), name=("name", "first")
    )
    single = n <= _LABELS_UP_TO
    places["text"] = [
        safe_text(name, 16) if single and shared == 1 else ""
        for name, shared in zip(places["name"], places["n"], strict=True)
    ]
    group = pd.factorize(passages["query_id"])[0].astype(np.int64)
    cells = _cells(order, rank, group, top) if n > HEATMAP_ABOVE else None
    return _Data(places.drop(columns="name"), n, len(wanted), top, cells)


def _cells(order: Floats, rank: Floats, group: Ints, top: float) -> _Cells:
    """Count per cell of whole ranks; a tied half rank counts half in each neighbouring cell."""
    width = int(np.ceil(top / _MOST_CELLS))
    side = int(np.ceil(top / width))
    columns, rows = (
        ((np.stack([np.floor(v), np.ceil(v)]) - 1) // width).astype(np.int64) for v in (order, rank)
    )
    counts = np.zeros(side * side)
    for row in rows:
        for column in columns:
            counts += np.bincount(row * side + column, minlength=side * side) / 4
    # By chance, each passage of a question is equally likely to get each of its influence ranks.
    size = np.bincount(group)
    used, retrieved = (
        np.bincount((group * side + halves).ravel(), minlength=size.size * side).reshape(-1, side) / 2
        for halves in (rows, columns)
    )
    expected = (used / size[:, None]).T @ retrieved
    centres = (np.arange(side) * width + (width + 1) / 2).astype(np.float64)
    return _Cells(centres, counts.reshape(side, side), expected)


def _draw(data: _Data) -> go.Figure:
    if not data.n_passages:
        return empty_figure("No question with a defined rank agreement is among those chosen.")
    number_of = data.places.groupby("kind")["n"].sum().to_dict()
    ignored, buried = (int(number_of.get(kind, 0)) for kind in ("ignored_top_hit", "buried_evidence"))
    alt = (
        f"Influence rank against retrieval order of {count(data.n_passages, 'passage')} from "
        f"{count(data.n_queries, 'question')}: {count(ignored, 'ignored top hit')}, "
        f"{buried:,} passages of buried evidence."
    )
    figure = new_figure(alt, "Retrieval order (1 = first)", "Influence rank (1 = most used)", height=420)
    hover = "Retrieved as %{x}, used as %{y}"
    if data.cells:
        figure.add_trace(_excess_heatmap(data.cells, hover))
    # Over the cells the diagonal needs a colour that shows on pale and on dark ones.
    line = {"color": "#E69F00" if data.cells else AXIS, "width": 2, "dash": "dot"}
    figure.add_shape(type="line", x0=1, y0=1, x1=data.top, y1=data.top, line=line)
    outline = {"width": 1.5 if data.cells else 0, "color": "white"}
    largest = max(int(data.places["n"].max()), 1)
    for kind, style in _KINDS.items():
        chosen = data.places[data.places["kind"] == kind]
        if not len(chosen) or (data.cells and kind == "other"):
            continue
        title = MODES[kind].title if kind in MODES else "Passages"
        size = 12 if data.cells else 11 + 19 * np.sqrt((chosen["n"].to_numpy() - 1) / largest)
        figure.add_scatter(
            name=f"{title} ({int(chosen['n'].sum()):,})",
            mode="markers+text" if chosen["text"].any() and kind != "other" else "markers",
            x=chosen["order"],
            y=chosen["rank"],
            text=chosen["text"],
            textposition="middle left" if kind == "buried_evidence" else "middle right",
            customdata=[
                count(int(n), "passage") + (f"<br>{text}" if text else "")
                for n, text in zip(chosen["n"], chosen["text"], strict=True)
            ],
            hovertemplate=f"{hover}<br>%{{customdata}}<extra>{title}</extra>",
            marker={**marker(style), "symbol": _SYMBOLS[kind], "size": size, "opacity": 0.9, "line": outline},
        )
    ticks = _ticks(data.top)
    figure.update_xaxes(range=[0.4, data.top + 0.6], tickvals=ticks, ticktext=[f"{t:g}" for t in ticks])
    figure.update_yaxes(range=[data.top + 0.6, 0.4], tickvals=ticks, ticktext=[f"{t:g}" for t in ticks])
    return figure


def _excess_heatmap(cells: _Cells, hover: str) -> go.Heatmap:
    """Passages beyond chance per cell: blue where there are more, red where there are fewer."""
    excess = cells.counts - cells.expected
    most = max(float(np.abs(excess).max()), 1.0)
    return go.Heatmap(
        x=cells.centres,
        y=cells.centres,
        z=np.round(excess, 1),
        zmin=-most,
        zmax=most,
        colorscale=two_sided(),
        customdata=np.round(np.dstack([cells.counts, cells.expected]), 1),
        hovertemplate=hover + "<br>%{customdata[0]:,} passages, %{customdata[1]:,} by chance<extra></extra>",
        xgap=1,
        ygap=1,
        colorbar={"title": {"text": "beyond chance", "side": "right"}, "thickness": 10, "outlinewidth": 0},
    )


def _ticks(top: float) -> list[int]:
    """Whole ranks from 1, at most about ten of them."""
    step = max(1, int(np.ceil(top / 10)))
    return [1, *range(step if step > 1 else 2, int(top) + 1, step)]
