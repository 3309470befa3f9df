"""Histogram of rank agreement over the questions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.charts.theme import BAND, bar_marker, count_step, empty_figure, new_figure, number, several
from core.influence import ChanceBand, InfluenceAnalysis, chance_band

N_BINS = 20
_NARROWEST = 0.02  # a bar that a mouse can still hit


class _Bars(NamedTuple):
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]


class _Data(NamedTuple):
    divergent: _Bars
    aligned: _Bars
    n_undefined: int
    threshold: float
    band: ChanceBand


def rho_histogram(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw how many questions have which rank agreement ρ.

    Twenty bins over [-1, 1]; the bin that holds the threshold is split there, so the change of
    colour and hatch lies exactly on it. The grey band holds the middle 95 % of random orders for
    the commonest number of passages.

    Parameters
    ----------
    analysis : InfluenceAnalysis
        The run's analysis; its threshold is the one drawn.

    Returns
    -------
    Figure
        Traces "Divergent" and "Aligned"; an empty figure when no question has a ρ.
    """
    data = _data(analysis)
    return _draw(data)


def _data(analysis: InfluenceAnalysis) -> _Data:
    queries, defined = analysis.queries, analysis.defined
    rho, label = defined["rho"].to_numpy(), defined["label"]
    k = defined["k"].mode()
    edges = _edges(analysis.threshold)
    return _Data(
        _bars(rho[(label == "Divergent").to_numpy()], edges[edges <= analysis.threshold]),
        _bars(rho[(label == "Aligned").to_numpy()], edges[edges >= analysis.threshold]),
        len(queries) - len(defined),
        analysis.threshold,
        chance_band(int(k.iloc[0]) if len(k) else 0),
    )


def _edges(threshold: float) -> NDArray[np.float64]:
    """Twenty equal bins and one edge at the threshold; slivers beside it join their neighbour."""
    # Rounded, so that a ρ of 0.7 and an edge of 0.7 are the same number.
    regular = np.round(np.linspace(-1, 1, N_BINS + 1), 9)
    apart = (np.abs(regular - threshold) >= _NARROWEST) | (np.abs(regular) == 1)
    return np.unique(np.r_[regular[apart], threshold])


def _bars(rho: NDArray[np.float64], edges: NDArray[np.float64]) -> _Bars:
    if edges.size == 1:  # a threshold of ±1 leaves one side a single point
        edges = np.array([edges[0], edges[0] + _NARROWEST])
    values = np.clip(np.round(rho, 9), edges[0], edges[-1])
    return _Bars(edges, np.histogram(values, edges)[0].astype(np.int64))


def _draw(data: _Data) -> go.Figure:
    n_divergent, n_aligned = int(data.divergent.counts.sum()), int(data.aligned.counts.sum())
    n = n_divergent + n_aligned
    undefined = f"{data.n_undefined:,} undefined"
    if not n:
        return empty_figure(f"No question has a rank agreement ({undefined}).")
    band, threshold = data.band, number(data.threshold)
    chance = f"{number(band.low)} to {number(band.high)} (k = {band.k})"
    alt = (
        f"Histogram of rank agreement ρ over {several(n, 'question')}: {n_divergent:,} divergent below the "
        f"threshold of {threshold}, {n_aligned:,} aligned, {undefined}; the middle 95 % of random orders "
        f"spans {chance}."
    )
    figure = new_figure(alt, "Rank agreement ρ", "Questions")
    figure.add_vrect(
        x0=band.low, x1=band.high, fillcolor=BAND, line_width=0, layer="below", showlegend=True,
        name=f"95 % of random orders (k = {band.k})",
    )  # fmt: skip
    for name, bars in (("Divergent", data.divergent), ("Aligned", data.aligned)):
        figure.add_bar(
            name=f"{name} ({int(bars.counts.sum()):,})",
            x=(bars.edges[:-1] + bars.edges[1:]) / 2,
            y=bars.counts,
            width=np.diff(bars.edges),
            marker=bar_marker(name),
            customdata=[
                f"{number(a)} to {number(b)}" for a, b in zip(bars.edges, bars.edges[1:], strict=False)
            ],
            hovertemplate=f"ρ %{{customdata}}<br>%{{y:,}} questions<br>Chance: {chance}<extra>{name}</extra>",
        )
    figure.add_vline(
        x=data.threshold, line={"color": "rgba(128, 128, 128, 0.95)", "width": 2, "dash": "dash"}
    )
    figure.add_annotation(
        text=f"τ = {threshold}", x=data.threshold, y=1, yref="paper", yanchor="bottom", showarrow=False
    )
    x = 0 if data.threshold >= 0 else 1  # away from the threshold's own label
    figure.add_annotation(
        text=f"n = {n:,} · {undefined}", x=x, xref="paper", xanchor="left" if x == 0 else "right",
        y=1, yref="paper", yanchor="bottom", showarrow=False,
    )  # fmt: skip
    figure.update_layout(barmode="stack", bargap=0, margin_t=32, legend_traceorder="normal")
    figure.update_xaxes(range=[-1.03, 1.03], dtick=0.5, tickformat=".1f")
    counts = [*data.divergent.counts, *data.aligned.counts, 0]
    figure.update_yaxes(rangemode="tozero", tickformat=",d", dtick=count_step(max(counts)))
    return figure
