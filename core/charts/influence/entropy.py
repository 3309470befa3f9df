"""How spread out the influence is, against how much the strongest passage takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.charts.theme import count_heatmap, empty_figure, marker, new_figure, number, safe_text, several
from core.influence import InfluenceAnalysis
from core.influence.definitions import LABELS

WEBGL_ABOVE = 1_000
DENSITY_ABOVE = 5_000
_CELLS = 40
_SHORT = 20  # characters of a question where thousands of them travel to the browser


class _Data(NamedTuple):
    points: pd.DataFrame  # query_id, question, entropy, dominance, rho, label; the first two numbers known
    n_without: int


class _Density(NamedTuple):
    entropy: NDArray[np.float64]
    dominance: NDArray[np.float64]
    counts: NDArray[np.float64]


def entropy_dominance(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw influence entropy against dominance ratio, one marker a question.

    Up to 5,000 questions each has its marker (drawn by WebGL above 1,000), with its ``query_id`` as
    ``customdata`` so that a click can select it; more become counts per cell.

    Parameters
    ----------
    analysis : InfluenceAnalysis
        The run's analysis.

    Returns
    -------
    Figure
        One trace per label, or one heat map; an empty figure when no question has both numbers.
    """
    data = _data(analysis)
    return _draw(data)


def _data(analysis: InfluenceAnalysis) -> _Data:
    columns = ["query_id", "question", "entropy", "dominance", "rho", "label"]
    points = analysis.queries[columns].dropna(subset=["entropy", "dominance"])
    return _Data(points.reset_index(drop=True), len(analysis.queries) - len(points))


def _density(points: pd.DataFrame) -> _Density:
    # Entropy is at most ln k and dominance at most 1; from 0, so that no cell is cut.
    top = max(float(points["entropy"].max()), 1e-9)
    counts, x, y = np.histogram2d(
        points["entropy"], points["dominance"], bins=_CELLS, range=[[0, top], [0, 1]]
    )
    return _Density((x[:-1] + x[1:]) / 2, (y[:-1] + y[1:]) / 2, counts.T)


def _draw(data: _Data) -> go.Figure:
    points, n = data.points, len(data.points)
    if not n:
        return empty_figure("No question has an influence to spread: entropy and dominance are undefined.")
    alt = (
        f"Influence entropy against dominance ratio of {several(n, 'question')}: median entropy "
        f"{number(points['entropy'].median())} nats, dominance {number(points['dominance'].median())}; "
        f"{data.n_without:,} without these numbers."
    )
    figure = new_figure(alt, "Influence entropy (nats)", "Dominance ratio")
    figure.update_yaxes(range=[0, 1.05])
    figure.update_xaxes(rangemode="tozero")
    if n > DENSITY_ABOVE:
        cells = _density(points)
        hover = "Entropy %{x:.2f}<br>Dominance %{y:.2f}"
        figure.add_trace(count_heatmap(cells.entropy, cells.dominance, cells.counts, "questions", hover))
        return figure
    trace = go.Scattergl if n > WEBGL_ABOVE else go.Scatter
    limit = _SHORT if n > WEBGL_ABOVE else 80
    for label in LABELS:
        chosen = points[points["label"] == label]
        if len(chosen):
            figure.add_trace(
                trace(
                    name=f"{label} ({len(chosen):,})",
                    mode="markers",
                    x=chosen["entropy"].to_numpy().round(4),
                    y=chosen["dominance"].to_numpy().round(4),
                    customdata=chosen["query_id"].to_list(),
                    text=[
                        f"{safe_text(question, limit)}<br>ρ {number(rho)}"
                        for question, rho in zip(chosen["question"], chosen["rho"], strict=True)
                    ],
                    hovertemplate="%{text}<br>Entropy %{x:.2f} · dominance %{y:.2f}"
                    f"<extra>{label}</extra>",
                    marker={**marker(label), "opacity": 0.8},
                )
            )
    return figure
