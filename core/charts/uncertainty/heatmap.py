"""One question: how alike every two samples are, and into how many groups they fall."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.arrays import Floats
from core.charts.theme import AXIS, empty_figure, fade, marker, new_figure, safe_text
from core.charts.uncertainty.answer_samples import answer_samples
from core.text.display import count, number
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.similarity import mean_off_diagonal
from core.uncertainty.spectral import eigenvalues, sum_eigen

MOST = 60  # samples that are drawn
_LONG_TEXTS_UP_TO = 20  # samples; above it the texts of hover boxes are shorter, for the browser's sake
_SHARE = 0.68  # of the width, for the matrix


class _Data(NamedTuple):
    similarity: Floats  # the largest meaning first
    meanings: tuple[int, ...]  # of each sample
    texts: tuple[str, ...]
    eigenvalues: Floats
    n_samples: int
    mean: float
    sum_eigen: float
    kind: str


def similarity_heatmap(analysis: UncertaintyAnalysis, query_id: str) -> go.Figure:
    """Draw how alike every two samples of a question are, those of one meaning together.

    By ROUGE-L or, where the samples were embedded, by cosine.
    Beside it are the eigenvalues of the Laplacian of this likeness: as many near 0 as there are groups that
    share no words. At most 60 samples are drawn; the eigenvalues are of all. Empty for fewer than two.
    """
    return _draw(_data(analysis, query_id))


def _data(analysis: UncertaintyAnalysis, query_id: str) -> _Data | str:
    """Return the matrix and its eigenvalues, or why there are none."""
    found = answer_samples(analysis, query_id)
    n = len(found.rows)
    if n < 2:
        return "Fewer than two answers were sampled: there is nothing to compare."
    shown = found.rows.head(MOST)
    limit = 60 if len(shown) <= _LONG_TEXTS_UP_TO else 30
    return _Data(
        found.similarity[:MOST, :MOST],
        tuple(int(meaning) for meaning in shown["meaning"]),
        tuple(safe_text(text, limit) or "(empty)" for text in shown["answer"]),
        np.maximum(eigenvalues(found.similarity), 0.0),
        n,
        mean_off_diagonal(found.similarity),
        sum_eigen(found.similarity),
        found.kind,
    )


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    n = len(data.meanings)
    shown = f"; the first {n} are drawn" if n < data.n_samples else ""
    alt = (
        f"Likeness by {data.kind} of {count(data.n_samples, 'sample')} in "
        f"{count(max(data.meanings), 'meaning')}: mean {number(data.mean)}{shown}. The eigenvalues make "
        f"{number(data.sum_eigen)} soft groups."
    )
    figure = new_figure(alt, "Samples by meaning", "Samples by meaning", height=420)
    figure.add_heatmap(
        z=np.round(data.similarity, 3),
        zmin=0,
        zmax=1,
        colorscale=fade("Aligned", low=0.05),
        showscale=False,
        xgap=1,
        ygap=1,
        customdata=[[_hover(data, i, j) for j in range(n)] for i in range(n)],
        hovertemplate="%{customdata}<extra></extra>",
    )
    figure.add_scatter(
        mode="markers",
        x=data.eigenvalues,
        y=np.arange(1, data.n_samples + 1),
        marker=marker("neutral", 8),
        xaxis="x2",
        yaxis="y2",
        showlegend=False,
        customdata=[
            f"Eigenvalue {i} of {data.n_samples}: {number(value)}"
            for i, value in enumerate(data.eigenvalues, 1)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
    _lay_out(figure, data)
    return figure


def _hover(data: _Data, i: int, j: int) -> str:
    if i == j:
        return f"Meaning {data.meanings[i]}<br>{data.texts[i]}"
    return (
        f"{data.kind} {number(float(data.similarity[i, j]))}<br>Meaning {data.meanings[i]}: {data.texts[i]}"
        f"<br>Meaning {data.meanings[j]}: {data.texts[j]}"
    )


def _lay_out(figure: go.Figure, data: _Data) -> None:
    n = len(data.meanings)
    meanings = np.array(data.meanings)
    starts = np.flatnonzero(np.r_[True, meanings[1:] != meanings[:-1]])
    ends = np.r_[starts[1:], n]
    ticks = {"tickvals": ((starts + ends - 1) / 2).tolist(), "showgrid": False, "tickangle": 0}
    ticks["ticktext"] = [str(meaning) for meaning in meanings[starts]]
    for at in starts[1:] - 0.5:
        for line in (
            {"x0": at, "x1": at, "y0": -0.5, "y1": n - 0.5},
            {"x0": -0.5, "x1": n - 0.5, "y0": at, "y1": at},
        ):
            figure.add_shape(type="line", line={"color": AXIS, "width": 2}, **line)
    axis = {
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
        "gridcolor": figure.layout.xaxis.gridcolor,
    }
    figure.update_layout(
        xaxis={**ticks, "range": [-0.5, n - 0.5], "domain": [0, _SHARE]},
        yaxis={**ticks, "range": [n - 0.5, -0.5]},
        xaxis2={
            **axis,
            "domain": [_SHARE + 0.08, 1],
            "anchor": "y2",
            "range": [-0.06, max(1.06, 1.06 * float(data.eigenvalues.max()))],
            "tickvals": [0, 0.5, 1],
            "title": {"text": "Eigenvalues", "standoff": 8},
        },
        yaxis2={
            **axis,
            "anchor": "x2",
            "range": [data.n_samples + 0.5, 0.5],
            "showticklabels": False,
            "showgrid": False,
        },
    )
