"""Mean influence at each place of the retriever's order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import STYLES, add_band, empty_figure, error_bars, marker, new_figure
from core.influence import InfluenceAnalysis
from core.stats import mean_interval
from core.text.display import count, number


class _Data(NamedTuple):
    means: pd.DataFrame  # order, mean, low, high (NaN where n is 1), n questions, chance_low, chance_high
    n_queries: int
    noise: float  # NaN where no repeats were run
    n_noise: int


def influence_by_rank(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw the mean influence of the passages at each place of the retriever's order.

    Error bars are 95 % t intervals of the mean over questions. Every passage with a known influence counts,
    including those of inert questions. The grey band holds the middle 95 % of means when each question's
    influences come in random order. With repeats, a line shows the mean noise floor. Empty when no influence
    is known.
    """
    return _draw(_data(analysis))


def _data(analysis: InfluenceAnalysis) -> _Data:
    known = analysis.passages[["query_id", "retrieval_order", "influence"]].dropna()
    # Passages that share a place within a question count once, with their mean.
    at_place = known.groupby(["query_id", "retrieval_order"], sort=False)["influence"].agg(["mean", "size"])
    own = known.groupby("query_id", sort=False)["influence"].agg(["size", "mean", "var"]).add_prefix("own_")
    rows = []
    for order, found in at_place.join(own).groupby("retrieval_order"):
        low, high = mean_interval(found["mean"], lower=0.0, upper=1.0)
        # Variance of the mean of that many of the question's own values, drawn without replacement.
        variance = found["own_var"].fillna(0) / found["size"] * (1 - found["size"] / found["own_size"])
        expected, half = found["own_mean"].mean(), 1.96 * np.sqrt(variance.sum()) / len(found)
        rows.append((order, found["mean"].mean(), low, high, len(found), expected - half, expected + half))
    noise = analysis.queries["noise_quantile"].dropna()
    return _Data(
        pd.DataFrame(rows, columns=["order", "mean", "low", "high", "n", "chance_low", "chance_high"]),
        known["query_id"].nunique(),
        float(noise.mean()) if len(noise) else np.nan,
        len(noise),
    )


def _draw(data: _Data) -> go.Figure:
    means = data.means
    if not len(means):
        return empty_figure("No influence is known: no passage has been left out of a prompt yet.")
    first, last = means.iloc[0], means.iloc[-1]
    alt = (
        f"Mean influence by retrieval order over {count(data.n_queries, 'question')}: "
        f"{number(first['mean'])} at place {first['order']:g}, {number(last['mean'])} at place "
        f"{last['order']:g}; mean noise floor {number(data.noise)}."
    )
    figure = new_figure(alt, "Retrieval order (1 = first)", "Mean influence")
    add_band(figure, "Middle 95 % by chance", means["order"], means["chance_low"], means["chance_high"])
    color = STYLES["influence"].color
    figure.add_scatter(
        name="Mean, 95 % interval",
        mode="lines+markers",
        showlegend=True,
        cliponaxis=False,
        x=means["order"],
        y=means["mean"],
        error_y=error_bars(means["mean"], means["low"], means["high"], color, 1.5),
        customdata=[
            f"95 %: {number(row.low)} to {number(row.high)}<br>{count(row.n, 'question')}<br>"
            f"By chance {number(row.chance_low)} to {number(row.chance_high)}"
            for row in means.itertuples()
        ],
        hovertemplate="Place %{x}: %{y:.3f}<br>%{customdata}<extra></extra>",
        line={"color": color, "width": 2},
        marker=marker("influence", 8),
    )
    if not np.isnan(data.noise):
        figure.add_hline(
            y=data.noise,
            line={"color": STYLES["Divergent"].color, "width": 2, "dash": "dash"},
            showlegend=True,
            name=f"Mean noise floor ({count(data.n_noise, 'question')})",
        )
    figure.update_xaxes(dtick=max(1, int(np.ceil(float(last["order"]) / 10))), tick0=1)
    figure.update_yaxes(rangemode="tozero")
    return figure
