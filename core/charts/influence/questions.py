"""Two numbers of every question against each other, by label: a marker each, or counts above 5,000."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from core.charts import points as places
from core.charts.theme import AXIS, empty_figure, new_figure
from core.conditions import where
from core.influence import InfluenceAnalysis
from core.influence.definitions import LABELS
from core.text.display import count, number, p_text


def entropy_dominance(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw influence entropy against dominance ratio: how spread out the influence is.

    The order of the passages plays no part in either number, so chance has no say. Empty when no question has
    both numbers.
    """
    points = analysis.queries.dropna(subset=["entropy", "dominance"])
    n_without = len(analysis.queries) - len(points)
    if points.empty:
        return empty_figure("No question has an influence to spread: entropy and dominance are undefined.")
    alt = (
        f"Influence entropy against dominance ratio of {count(len(points), 'question')}: median entropy "
        f"{number(points['entropy'].median())} nats, dominance {number(points['dominance'].median())}; "
        f"{n_without:,} without these numbers."
    )
    figure = new_figure(alt, "Influence entropy (nats)", "Dominance ratio")
    figure.update_yaxes(range=[0, 1.05])
    figure.update_xaxes(rangemode="tozero")
    _add(figure, points, "entropy", "dominance", ("Entropy", "dominance"))
    return figure


def ndcg_against_chance(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw nDCG by influence against the level that random orders of the same influences give.

    Above the diagonal the retriever ranks the passages that the model uses first; below it, last. Empty when
    no question has an nDCG.
    """
    points = analysis.queries.dropna(subset=["influence_ndcg"])
    use = analysis.order_of_use
    if not use.n:
        return empty_figure("No question has an nDCG by influence: no removal changed an answer.")
    alt = (
        f"nDCG by influence against chance of {count(use.n, 'question')}: mean {number(use.mean)}, "
        f"{number(use.chance)} by chance ({p_text(use.p_value)}); excess {number(use.excess)}."
    )
    figure = new_figure(alt, "nDCG by chance", "nDCG by influence")
    figure.add_shape(type="line", x0=0, y0=0, x1=1, y1=1, line={"color": AXIS, "width": 2, "dash": "dot"})
    _add(figure, points, "ndcg_by_chance", "influence_ndcg", ("By chance", "nDCG"))
    figure.update_xaxes(range=[0, 1.05])
    figure.update_yaxes(range=[0, 1.05])
    return figure


def _add(figure: go.Figure, points: pd.DataFrame, x: str, y: str, names: Sequence[str]) -> None:
    points = points.assign(group=points["label"], note=[f"ρ {number(rho)}" for rho in points["rho"]])

    def condition(label: str, **ends: object) -> str:
        return where("influence", "queries", **ends, label=label)

    places.add_questions(figure, points, x, y, names, {label: label for label in LABELS}, condition)
