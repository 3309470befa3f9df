"""How far the attributions of a run can be read: the LDS of every question."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.arrays import Floats, Ints
from core.attribution.analysis import READABLE, UNREADABLE, UNTOLD, AttributionAnalysis
from core.charts import theme
from core.conditions import where
from core.text.display import count, number

N_BINS = 20
_LOOKS = {
    UNREADABLE: ("Divergent", "Do not read"),
    UNTOLD: ("Undefined", "Too few subsets to tell"),
    READABLE: ("Aligned", "Can be read"),
}


class _Data(NamedTuple):
    edges: Floats
    counts: dict[str, Ints]  # by whether the bars can be read, per bin
    ceiling: float  # mean over questions that were measured twice; NaN where none was
    n_ceiling: int


def lds_histogram(analysis: AttributionAnalysis) -> go.Figure:
    """Draw how many questions have which LDS; those whose bars cannot be read have a colour of their own.

    Chance gives 0. A dotted line is the mean LDS that measuring the same subsets again reaches, where that is
    known. Bars lead to their questions. Empty where no question has an LDS.
    """
    data, n = _data(analysis), len(analysis.judged)
    undefined = f"{len(analysis.queries) - n:,} undefined"
    if not n:
        return theme.empty_figure(f"No question has an LDS ({undefined}).")
    readable, cannot = int(data.counts[READABLE].sum()), int(data.counts[UNREADABLE].sum())
    alt = (
        f"Histogram of the LDS over {count(n, 'question')}, mean {number(analysis.judged['lds'].mean())} "
        f"(0 by chance): the bars of {readable:,} can be read, those of {cannot:,} cannot, "
        f"{n - readable - cannot:,} cannot be told, {undefined}."
    )
    figure = theme.new_figure(alt, "LDS: predicted against measured removals", "Questions", 300)
    for reading, (style, title) in _LOOKS.items():
        _add_bars(figure, data, reading, style, title)
    figure.add_vline(x=0, line=theme.DASHED)
    above = {"y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    figure.add_annotation(text="0 by chance", x=0, **above)
    figure.add_annotation(text=f"n = {n:,} · {undefined}", x=0, xref="paper", xanchor="left", **above)
    if data.n_ceiling:
        most = max(counts.max() for counts in data.counts.values())
        name = f"Mean ceiling {number(data.ceiling)} ({count(data.n_ceiling, 'question')})"
        line = {"color": theme.STYLES["highlight"].color, "width": 2, "dash": "dot"}
        theme.add_line(figure, name, [data.ceiling, data.ceiling], [0, most], line)
    figure.update_layout(barmode="stack", bargap=0, margin_t=32, legend_traceorder="normal")
    figure.update_xaxes(range=[-1.03, 1.03], dtick=0.5, tickformat=".1f")
    stacked = int(sum(data.counts.values()).max())  # type: ignore[union-attr]
    figure.update_yaxes(rangemode="tozero", tickformat=",d", dtick=theme.count_step(stacked))
    return figure


def _data(analysis: AttributionAnalysis) -> _Data:
    # Rounded, so that an LDS of 0.3 and an edge of 0.3 are the same number.
    q, edges = analysis.judged, np.round(np.linspace(-1, 1, N_BINS + 1), 9)
    counts = {
        reading: np.histogram(q.loc[q["reading"] == reading, "lds"].round(9), edges)[0] for reading in _LOOKS
    }
    ceilings = q["ceiling"].dropna()
    return _Data(edges, counts, float(ceilings.mean()) if len(ceilings) else np.nan, len(ceilings))


def _add_bars(figure: go.Figure, data: _Data, reading: str, style: str, title: str) -> None:
    edges, counts = data.edges, data.counts[reading]
    if not counts.any():
        return
    hover, leads_to = [], []
    for (low, high), n in zip(pairwise(edges.tolist()), counts.tolist(), strict=True):
        hover.append(f"LDS {number(low)} to {number(high)}<br>{title}: {count(n, 'question')}")
        # The last bin holds an LDS of 1 too.
        ends = (low, high if high < 1 else None)
        condition = where("attribution", "queries", lds=ends, reading=reading)
        leads_to.append(theme.where_door(condition) if n else "")
    theme.add_bars(
        figure, f"{title} ({counts.sum():,})", (edges[:-1] + edges[1:]) / 2, counts, style, hover, leads_to,
        orientation="v", width=np.diff(edges), showlegend=True,
    )  # fmt: skip
