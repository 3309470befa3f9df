"""One question: the influence of each passage, in the retriever's order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.influence import InfluenceAnalysis
from core.text.display import count, number

_GOLD_AT = 1.06
_HOVER = ("passage_id", "retrieval_order", "influence", "influence_rank")


class _Data(NamedTuple):
    bars: pd.DataFrame  # place (1 on top), order, influence, low, high, above (or NA), gold, share, hover
    noise: float  # NaN where no repeats were run


def passage_bars(analysis: InfluenceAnalysis, query_id: str) -> go.Figure:
    """Draw the influence of one question's passages as bars, in retrieval order.

    Lines on the bars span the influence over the repeated baselines; the grey band is the noise
    floor, and bars within it are hatched. Stars mark gold passages. Ticks show the retrieval score
    as a share of the question's best score; scores have no common scale, so nothing is clipped,
    and where the best score is not positive there is no share. Empty when the question
    or its passages do not exist.
    """
    return _draw(_data(analysis, query_id))


def _data(analysis: InfluenceAnalysis, query_id: str) -> _Data:
    passages = analysis.passages
    rows = passages[passages["query_id"] == query_id].sort_values("retrieval_order", kind="stable")
    score = rows["retrieval_score"].to_numpy()
    best = float(np.nanmax(score)) if (~np.isnan(score)).any() else np.nan
    noise = analysis.queries.loc[analysis.queries["query_id"] == query_id, "noise_quantile"]
    bars = pd.DataFrame(
        {
            "place": np.arange(1, len(rows) + 1),
            "order": rows["retrieval_order"].to_numpy(),
            "influence": rows["influence"].to_numpy(),
            "low": rows["influence_low"].to_numpy(),
            "high": rows["influence_high"].to_numpy(),
            "above": rows["above_noise"].array,
            "gold": rows["is_gold"].fillna(False).to_numpy(dtype=bool),
            "share": score / best if best > 0 else np.full(len(rows), np.nan),
            "hover": list(map(_hover, *(rows[name] for name in _HOVER))),
        }
    )
    return _Data(bars, float(noise.iloc[0]) if len(noise) else np.nan)


def _hover(name: str, order: float, influence: float, rank: float) -> str:
    used = "unknown" if np.isnan(influence) else f"{number(influence, '{:.3f}')}, rank {rank:g}"
    return f"{theme.safe_text(name, 40)}<br>Retrieved as {order:g}<br>Influence {used}"


def _draw(data: _Data) -> go.Figure:
    bars = data.bars
    if not len(bars):
        return theme.empty_figure("This run has no such question, or the question has no passages.")
    known = bars[bars["influence"].notna()]
    n_above = int(bars["above"].fillna(False).sum())
    above = "" if np.isnan(data.noise) else f", {n_above} above the noise floor of {number(data.noise)}"
    largest = number(float(known["influence"].max())) if len(known) else "—"
    alt = (
        f"Influence of {count(len(bars), 'passage')} in retrieval order: largest {largest}{above}; "
        f"{count(int(bars['gold'].sum()), 'gold passage')}, {len(bars) - len(known)} of unknown influence."
    )
    height = int(np.clip(140 + 26 * len(bars), 260, 1_600))
    figure = theme.new_figure(alt, "Influence (0 = no change, 1 = all changed)", "Retrieval order", height)
    if not np.isnan(data.noise):
        figure.add_vrect(
            x0=0, x1=data.noise, fillcolor=theme.BAND, line_width=0, layer="below", showlegend=True,
            name="Noise floor",
        )  # fmt: skip
        figure.add_vline(x=data.noise, line=theme.BORDER)
    within = ~known["above"].fillna(True).astype(bool)  # NA: no noise floor is known
    _add_bars(figure, known[~within], "Influence", "influence")
    _add_bars(figure, known[within], "Within the noise", "Undefined")
    _add_marks(figure, bars)
    for at in bars.loc[bars["influence"].isna(), "place"]:
        figure.add_annotation(text="unknown", x=0, y=at, xanchor="left", xshift=4, showarrow=False)
    left = min(0.0, float(bars["share"].min(skipna=True)) * 1.05) if bars["share"].notna().any() else 0.0
    figure.update_xaxes(range=[left, 1.1], tickvals=[0, 0.25, 0.5, 0.75, 1])
    theme.name_rows(figure, [f"{order:g}" for order in bars["order"]])
    figure.update_layout(barmode="overlay", bargap=0.3)
    return figure


def _add_bars(figure: go.Figure, bars: pd.DataFrame, name: str, style: str) -> None:
    spread = theme.error_bars(bars["influence"], bars["low"], bars["high"], theme.STYLES[style].color)
    hover = [
        text + ("" if np.isnan(low) else f"<br>Over repeated baselines {number(low)} to {number(high)}")
        for text, low, high in zip(bars["hover"], bars["low"], bars["high"], strict=True)
    ]
    shown = spread if bars["low"].notna().any() else None
    theme.add_row_bars(figure, name, bars["influence"], bars["place"], style, hover, error_x=shown)


def _add_marks(figure: go.Figure, bars: pd.DataFrame) -> None:
    """Mark retrieval scores, as a share of the best, and gold passages."""
    scored, gold = bars[bars["share"].notna()], bars[bars["gold"]]
    # A marker made of a line takes its colour from its outline.
    line = {**theme.marker("retrieval", 15), "line": {"width": 4, "color": theme.STYLES["retrieval"].color}}
    hover = "Retrieval score: %{x:.0%} of the best"
    theme.add_marks(
        figure, "Retrieval score, share of the best", scored["share"], scored["place"], line, hover
    )
    hover = "Gold passage: known to hold the answer"
    theme.add_marks(
        figure, "Gold passage", [_GOLD_AT] * len(gold), gold["place"], theme.marker("highlight", 12), hover
    )
