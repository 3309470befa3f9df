"""Mean influence at each place of the retriever's order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.conditions import where
from core.influence import InfluenceAnalysis
from core.stats import mean_interval
from core.text.display import count, number

_COLUMNS = ["order", "mean", "low", "high", "n", "n_first", "chance", "chance_low", "chance_high"]


class _Data(NamedTuple):
    means: pd.DataFrame  # _COLUMNS: the ends are NaN where n is 1
    n_queries: int
    noise: float  # NaN where no repeats were run
    n_noise: int


def influence_by_rank(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw the mean influence of the passages at each place of the retriever's order.

    Error bars are 95 % t intervals of the mean over questions. Every passage with a known influence counts,
    including those of inert questions. The dotted line is the mean when each question's influences come in
    random order, the grey band its middle 95 %. With repeats, a line shows the mean noise floor. A mark leads
    to the questions whose most influential passage is there. Empty when no influence is known.
    """
    data, measure = _data(analysis), analysis.measure
    means = data.means
    if not len(means):
        return theme.empty_figure(measure.reason.meaning)
    first, last = means.iloc[0], means.iloc[-1]
    alt = (
        f"Mean {measure.noun} by retrieval order over {count(data.n_queries, 'question')}: "
        f"{number(first['mean'])} at place {first['order']:g} ({number(first['chance'])} by chance), "
        f"{number(last['mean'])} at place {last['order']:g} ({number(last['chance'])} by chance); mean noise "
        f"floor {number(data.noise)}."
    )
    unit = f" ({measure.unit})" if measure.unit else ""
    figure = theme.new_figure(alt, "Retrieval rank (1 = first)", f"Mean {measure.noun}{unit}")
    order, color = means["order"], theme.STYLES["influence"].color
    theme.add_band(figure, "Middle 95 % by chance", order, means["chance_low"], means["chance_high"])
    dotted = {"color": theme.STYLES["highlight"].color, "width": 2, "dash": "dot"}
    theme.add_line(figure, "Mean by chance", order, means["chance"], dotted)
    hover = [
        f"Retrieved {row.order:g}: mean {measure.noun} {number(row.mean, '{:.3f}')}{measure.in_unit} of "
        f"{count(row.n, 'question')}<br>95 %: {number(row.low)} to {number(row.high)}<br>"
        f"By chance {number(row.chance, '{:.3f}')}, 95 %: {number(row.chance_low)} to "
        f"{number(row.chance_high)}<br>"
        f"Most influential in {count(row.n_first, 'question')}"
        for row in means.itertuples()
    ]
    leads_to = [
        theme.where_door(where("influence", "passages", retrieval_order=f"{row.order:g}", influence_rank=1))
        if row.n_first
        else ""
        for row in means.itertuples()
    ]
    theme.add_marks(
        figure, "Mean, 95 % interval", order, means["mean"], theme.marker("influence", 10), hover, leads_to,
        mode="lines+markers", line={"color": color, "width": 2}, showlegend=True, cliponaxis=False,
        error_y=theme.error_bars(means["mean"], means["low"], means["high"], color, 1.5),
    )  # fmt: skip
    if not np.isnan(data.noise):
        figure.add_hline(
            y=data.noise,
            line={"color": theme.STYLES["Divergent"].color, "width": 2, "dash": "dash"},
            showlegend=True,
            name=f"Mean noise floor ({count(data.n_noise, 'question')})",
        )
    figure.update_xaxes(dtick=max(1, int(np.ceil(float(last["order"]) / 10))), tick0=1)
    figure.update_yaxes(rangemode="tozero")
    return figure


def _data(analysis: InfluenceAnalysis) -> _Data:
    known = analysis.passages[["query_id", "retrieval_order", "influence"]].dropna()
    # Passages that share a place within a question count once, with their mean.
    at_place = known.groupby(["query_id", "retrieval_order"], sort=False)["influence"].agg(["mean", "size"])
    own = known.groupby("query_id", sort=False)["influence"].agg(["size", "mean", "var"]).add_prefix("own_")
    first = analysis.passages[analysis.passages["influence_rank"] == 1]
    n_first = first.groupby("retrieval_order")["query_id"].nunique().to_dict()
    lowest, highest = analysis.measure.bounds
    rows = []
    for order, found in at_place.join(own).groupby("retrieval_order"):
        low, high = mean_interval(found["mean"], lower=lowest, upper=highest)
        # Variance of the mean of that many of the question's own values, drawn without replacement.
        variance = found["own_var"].fillna(0) / found["size"] * (1 - found["size"] / found["own_size"])
        expected, half = found["own_mean"].mean(), 1.96 * np.sqrt(variance.sum()) / len(found)
        ends = max(lowest, expected - half), expected + half
        rows.append(
            (order, found["mean"].mean(), low, high, len(found), n_first.get(order, 0), expected, *ends)
        )
    noise = analysis.queries["noise_quantile"].dropna()
    means = pd.DataFrame(rows, columns=_COLUMNS)
    floor = float(noise.mean()) if len(noise) else np.nan
    return _Data(means, known["query_id"].nunique(), floor, len(noise))
