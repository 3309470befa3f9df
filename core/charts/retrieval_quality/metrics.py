"""Hit, recall and nDCG at each depth k."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import STYLES, empty_figure, error_bars, marker, new_figure
from core.retrieval_quality.analysis import RetrievalQuality
from core.retrieval_quality.definitions import METRICS
from core.text.display import count, number

_APART = 0.09  # of the distance between two depths, so that intervals do not hide each other


_LOOKS = {  # title, style, symbol, dash
    "hit_at_k": ("Hit", "highlight", "star", "solid"),
    "recall_at_k": ("Recall", "retrieval", "square", "dash"),
    "ndcg_at_k": ("nDCG", "influence", "circle", "dot"),
}


def retrieval_quality_chart(quality: RetrievalQuality | pd.DataFrame) -> go.Figure:
    """Draw the mean hit, recall and nDCG at each depth k with their 95 % intervals.

    ``quality`` may also be given as its summary (`RetrievalQuality.to_frame`). Metrics without a value at a
    depth have no point there; empty when none has any.
    """
    frame = quality if isinstance(quality, pd.DataFrame) else quality.to_frame()
    return _draw(_data(frame))


def _data(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per metric and depth with a value: metric, k, mean, low, high, n, n_left_out, place."""
    data = frame[frame["metric"].isin(_LOOKS) & frame["mean"].notna()].reset_index(drop=True)
    data["k"] = data["k"].astype(int)
    # Depths are at equal distances: 1, 3, 5 and 10 in true proportion would crowd on a phone.
    depths = {k: i for i, k in enumerate(sorted(set(data["k"])))}
    offsets = dict(zip(_LOOKS, (-_APART, 0.0, _APART), strict=True))
    data["place"] = data["k"].map(depths).astype(float) + data["metric"].map(offsets).astype(float)
    return data


def _draw(data: pd.DataFrame) -> go.Figure:
    if not len(data):
        return empty_figure("No question has a known gold passage, so retrieval quality is undefined.")
    figure = new_figure(_alt(data), "Depth k, passages", "Mean, 95 % interval")
    for name, rows in data.groupby("metric", sort=False):
        _add_line(figure, str(name), rows)
    depths = sorted(set(data["k"]))
    ticks = {"tickvals": list(range(len(depths))), "ticktext": [f"{k:,}" for k in depths]}
    figure.update_xaxes(range=[-0.4, len(depths) - 0.6], **ticks)
    figure.update_yaxes(range=[-0.03, 1.05], tick0=0, dtick=0.2, tickformat=".1f")
    return figure


def _alt(data: pd.DataFrame) -> str:
    parts = []
    for name, rows in data.groupby("metric", sort=False):
        first, last = rows.iloc[0], rows.iloc[-1]
        ends = [first] if len(rows) == 1 else [first, last]
        values = " and ".join(f"{number(row['mean'])} at k = {row['k']}" for row in ends)
        parts.append(f"{_LOOKS[str(name)][0]} {values} ({count(int(last['n']), 'question')})")
    return f"Retrieval of gold passages: {'; '.join(parts)}."


def _add_line(figure: go.Figure, name: str, rows: pd.DataFrame) -> None:
    title, style, symbol, dash = _LOOKS[name]
    color = STYLES[style].color
    figure.add_scatter(
        name=title,
        mode="lines+markers",
        cliponaxis=False,
        x=rows["place"],
        y=rows["mean"],
        error_y=error_bars(rows["mean"], rows["low"], rows["high"], color, 1.5),
        customdata=[
            f"{title} at {row.k}: {number(row.mean, '{:.3f}')}<br>"
            f"95 %: {number(row.low)} to {number(row.high)}<br>"
            f"{count(row.n, 'question')}, {row.n_left_out:,} left out<br>{METRICS[name].meaning}"
            for row in rows.itertuples()
        ],
        hovertemplate="%{customdata}<extra></extra>",
        line={"color": color, "width": 2, "dash": dash},
        marker={**marker(style, 9), "symbol": symbol},
    )
