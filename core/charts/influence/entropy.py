"""Influence entropy against dominance ratio: how spread out the influence is."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts.influence.points import add_questions
from core.charts.theme import empty_figure, new_figure
from core.influence import InfluenceAnalysis
from core.text.display import count, number


def entropy_dominance(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw influence entropy against dominance ratio, one marker a question.

    Up to 5,000 questions have markers (drawn by WebGL above 1,000) that lead to them; more become counts per
    cell. The order of the passages plays no part in either number, so chance has no say.
    Empty when no question has both numbers.
    """
    points = _data(analysis)
    return _draw(points, len(analysis.queries) - len(points))


def _data(analysis: InfluenceAnalysis) -> pd.DataFrame:
    return analysis.queries.dropna(subset=["entropy", "dominance"])


def _draw(points: pd.DataFrame, n_without: int) -> go.Figure:
    n = len(points)
    if not n:
        return empty_figure("No question has an influence to spread: entropy and dominance are undefined.")
    alt = (
        f"Influence entropy against dominance ratio of {count(n, 'question')}: median entropy "
        f"{number(points['entropy'].median())} nats, dominance {number(points['dominance'].median())}; "
        f"{n_without:,} without these numbers."
    )
    figure = new_figure(alt, "Influence entropy (nats)", "Dominance ratio")
    figure.update_yaxes(range=[0, 1.05])
    figure.update_xaxes(rangemode="tozero")
    add_questions(figure, points, "entropy", "dominance", ("Entropy", "dominance"))
    return figure
