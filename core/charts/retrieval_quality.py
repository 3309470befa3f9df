"""Hit, recall and nDCG at each depth k."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.special import comb

from core.charts import theme
from core.conditions import where
from core.retrieval_quality.analysis import RetrievalQuality
from core.retrieval_quality.definitions import METRICS
from core.text.display import count, number

_LOOKS = {  # title, style, symbol, dash, and its place, so that intervals do not hide each other
    "hit_at_k": ("Hit", "highlight", "star", "solid", -0.09),
    "recall_at_k": ("Recall", "retrieval", "square", "dash", 0.0),
    "ndcg_at_k": ("nDCG", "influence", "circle", "dot", 0.09),
}


def retrieval_quality_chart(quality: RetrievalQuality) -> go.Figure:
    """Draw the mean hit, recall and nDCG at each depth k with their 95 % intervals.

    Thin lines are what the same retrieved passages give in random order. A mark leads to the questions that
    fall short there. Metrics without a value at a depth have no point; empty when none has any.
    """
    data = _data(quality)
    if not len(data):
        return theme.empty_figure("No question has a known gold passage, so retrieval quality is undefined.")
    parts = []
    for name, rows in data.groupby("metric", sort=False):
        values = " and ".join(
            f"{number(row['mean'])} at k = {row['k']} ({number(row['chance'])} by chance)"
            for _, row in rows.iloc[[0, -1] if len(rows) > 1 else [0]].iterrows()
        )
        parts.append(f"{_LOOKS[str(name)][0]} {values} ({count(int(rows['n'].iloc[-1]), 'question')})")
    alt = f"Retrieval of gold passages: {'; '.join(parts)}."
    figure = theme.new_figure(alt, "Depth k, passages", "Mean, 95 % interval")
    for name, rows in data.groupby("metric", sort=False):
        _add_line(figure, str(name), rows)
    depths = sorted(set(data["k"]))
    ticks = {"tickvals": list(range(len(depths))), "ticktext": [f"{k:,}" for k in depths]}
    figure.update_xaxes(range=[-0.4, len(depths) - 0.6], **ticks)
    figure.update_yaxes(range=[-0.03, 1.05], tick0=0, dtick=0.2, tickformat=".1f")
    return figure


def _data(quality: RetrievalQuality) -> pd.DataFrame:
    """One row per metric and depth with a value: as in the summary, chance, n_short and place."""
    frame, q = quality.summary, quality.queries
    data = frame[frame["metric"].isin(_LOOKS) & frame["mean"].notna()].reset_index(drop=True)
    data["k"] = data["k"].astype(int)
    data["column"] = [f"{name[:-1]}{k}" for name, k in zip(data["metric"], data["k"], strict=True)]
    data["n_short"] = [int((q[column] < 1).sum()) for column in data["column"]]
    data["chance"] = [_by_chance(q, row.metric, row.k, row.column) for row in data.itertuples()]
    # Depths are at equal distances: 1, 3, 5 and 10 in true proportion would crowd on a phone.
    depths = {k: i for i, k in enumerate(sorted(set(data["k"])))}
    data["place"] = [depths[row.k] + _LOOKS[row.metric][-1] for row in data.itertuples()]
    return data


def _by_chance(q: pd.DataFrame, metric: str, k: int, column: str) -> float:
    """Return the mean of a metric when each question's retrieved passages come in random order; exact."""
    q = q[q[column].notna()]
    retrieved, found, gold = (q[name].to_numpy(dtype=np.float64) for name in ("k", "n_found", "n_gold"))
    depth = np.minimum(k, retrieved)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.where(retrieved > 0, found / retrieved, 0.0)
    if metric == "hit_at_k":
        return float((1 - comb(retrieved - found, depth) / np.maximum(comb(retrieved, depth), 1)).mean())
    if metric == "recall_at_k":
        return float((density * depth / gold).mean())
    gains = np.r_[0.0, np.cumsum(1 / np.log2(np.arange(2, k + 2)))]
    ideal = gains[np.minimum(gold, k).astype(np.int64)]
    return float((density * gains[depth.astype(np.int64)] / ideal).mean())


def _add_line(figure: go.Figure, name: str, rows: pd.DataFrame) -> None:
    title, style, symbol, dash, _ = _LOOKS[name]
    color = theme.STYLES[style].color
    hover = [
        f"{title} at {row.k}: {number(row.mean, '{:.3f}')}, {number(row.chance, '{:.3f}')} by chance<br>"
        f"95 %: {number(row.low)} to {number(row.high)}<br>"
        f"{count(row.n, 'question')}, {row.n_left_out:,} left out; below 1 in {row.n_short:,}<br>"
        f"{theme.safe_text(METRICS[name].meaning, 160)}"
        for row in rows.itertuples()
    ]
    leads_to = [
        theme.where_door(where("retrieval_quality", "queries", **{row.column: (None, 1)}))
        if row.n_short
        else ""
        for row in rows.itertuples()
    ]
    theme.add_marks(
        figure, title, rows["place"], rows["mean"], {**theme.marker(style, 9), "symbol": symbol}, hover,
        leads_to, mode="lines+markers", line={"color": color, "width": 2, "dash": dash}, cliponaxis=False,
        error_y=theme.error_bars(rows["mean"], rows["low"], rows["high"], color, 1.5),
    )  # fmt: skip
    thin = {"color": color, "width": 1, "dash": dash}
    theme.add_marks(
        figure, f"{title} by chance", rows["place"], rows["chance"], None, mode="lines", line=thin,
        opacity=0.6,
    )  # fmt: skip
