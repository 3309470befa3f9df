"""Histogram of rank agreement over the questions, against what chance alone gives."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.arrays import Floats, Ints
from core.charts import theme
from core.conditions import where
from core.influence import InfluenceAnalysis
from core.text.display import count, number

N_BINS = 20
_NARROWEST = 0.02  # a bar that a mouse can still hit
_NAMES = {"Divergent": "Divergent", "Aligned": "Aligned", "Undefined": "Too tied for a label"}


class _Data(NamedTuple):
    edges: Floats
    counts: dict[str, Ints]  # by label, per bin
    expected: Floats  # by chance, per bin
    low: Floats  # middle 95 % of the counts by chance
    high: Floats


def rho_histogram(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw how many questions have which rank agreement ρ.

    Twenty bins over [-1, 1]; the bin that holds the threshold is split there, so the change of
    colour and hatch lies exactly on it. The line is the count that random orders of each question's own
    influences give, the grey band its middle 95 %. Bars lead to their questions. Empty when no question has
    a ρ.
    """
    data, n = _data(analysis), len(analysis.defined)
    undefined = f"{len(analysis.queries) - n:,} undefined"
    if not n:
        return theme.empty_figure(f"No question has a rank agreement ({undefined}).")
    shown = {name: int(counts.sum()) for name, counts in data.counts.items()}
    tau, threshold, edges = analysis.threshold, number(analysis.threshold), data.edges
    tied = f", {shown['Undefined']:,} too tied for a label" if shown["Undefined"] else ""
    by_chance = float(data.expected[edges[:-1] < tau].sum())
    alt = (
        f"Histogram of rank agreement ρ over {count(n, 'question')}: {shown['Divergent']:,} divergent "
        f"below the threshold of {threshold}, {shown['Aligned']:,} aligned{tied}, {undefined}; "
        f"chance alone puts {by_chance:.1f} below the threshold."
    )
    figure = theme.new_figure(alt, "Rank agreement ρ", "Questions")
    steps = np.repeat(edges, 2)[1:-1]
    theme.add_band(figure, "Middle 95 % by chance", steps, np.repeat(data.low, 2), np.repeat(data.high, 2))
    for name in _NAMES:
        if shown[name]:
            _add_bars(figure, data, name)
    line = {"color": theme.STYLES["highlight"].color, "width": 2}
    theme.add_line(figure, "Chance, expected count", steps, np.repeat(data.expected, 2), line)
    figure.add_vline(x=tau, line={"color": "rgba(128, 128, 128, 0.95)", "width": 2, "dash": "dash"})
    above = {"y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    figure.add_annotation(text=f"τ = {threshold}", x=tau, **above)
    x, side = (0, "left") if tau >= 0 else (1, "right")  # away from the threshold's own label
    figure.add_annotation(text=f"n = {n:,} · {undefined}", x=x, xref="paper", xanchor=side, **above)
    figure.update_layout(barmode="stack", bargap=0, margin_t=32, legend_traceorder="normal")
    figure.update_xaxes(range=[-1.03, 1.03], dtick=0.5, tickformat=".1f")
    most = max(float(data.high.max()), *(counts.max() for counts in data.counts.values()))
    figure.update_yaxes(rangemode="tozero", tickformat=",d", dtick=theme.count_step(most))
    return figure


def _data(analysis: InfluenceAnalysis) -> _Data:
    defined, edges = analysis.defined, _edges(analysis.threshold)
    counts = {name: _counts(defined["rho"][defined["label"] == name].to_numpy(), edges) for name in _NAMES}
    # The last bin holds a ρ of 1 too.
    below = analysis.random_rhos.p_below([*edges[:-1], 2.0])
    chance = np.diff(below[~np.isnan(below[:, 0])], axis=1)
    expected = chance.sum(axis=0)
    half = 1.96 * np.sqrt((chance * (1 - chance)).sum(axis=0))
    return _Data(edges, counts, expected, np.maximum(0, expected - half), expected + half)


def _edges(threshold: float) -> Floats:
    """Return twenty equal bins and one edge at the threshold; slivers beside it join their neighbour."""
    # Rounded, so that a ρ of 0.7 and an edge of 0.7 are the same number.
    regular = np.round(np.linspace(-1, 1, N_BINS + 1), 9)
    apart = (np.abs(regular - threshold) >= _NARROWEST) | (np.abs(regular) == 1)
    return np.unique(np.r_[regular[apart], threshold])


def _counts(rho: Floats, edges: Floats) -> Ints:
    return np.histogram(np.clip(np.round(rho, 9), -1, 1), edges)[0].astype(np.int64)


def _add_bars(figure: go.Figure, data: _Data, name: str) -> None:
    edges, counts, title = data.edges, data.counts[name], _NAMES[name]
    hover, leads_to = [], []
    for (low, high), n, expected, least, most in zip(pairwise(edges), counts, *data[2:], strict=True):
        hover.append(
            f"ρ {number(low)} to {number(high)}<br>{count(int(n), f'{title.lower()} question')}<br>"
            f"By chance {number(expected, '{:.1f}')} in all, 95 %: {number(least, '{:.1f}')} to "
            f"{number(most, '{:.1f}')}"
        )
        # The last bin holds a ρ of 1 too.
        condition = where("influence", "queries", rho=(low, high if high < 1 else None), label=name)
        leads_to.append(theme.where_door(condition) if n else "")
    theme.add_bars(
        figure, f"{title} ({counts.sum():,})", (edges[:-1] + edges[1:]) / 2, counts, name, hover, leads_to,
        orientation="v", width=np.diff(edges),
    )  # fmt: skip
