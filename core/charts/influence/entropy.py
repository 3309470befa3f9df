"""How spread out the influence is, against how much the strongest passage takes."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from core.charts.influence.points import add_questions
from core.charts.theme import empty_figure, new_figure, number, several
from core.influence import InfluenceAnalysis


class _Data(NamedTuple):
    points: pd.DataFrame  # query_id, question, entropy, dominance, rho, label; the first two numbers known
    n_without: int


def entropy_dominance(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw influence entropy against dominance ratio, one marker a question.

    Up to 5,000 questions each has its marker (drawn by WebGL above 1,000), with its ``query_id`` as
    ``customdata`` so that a click can select it; more become counts per cell.

    Parameters
    ----------
    analysis : InfluenceAnalysis
        The run's analysis.

    Returns
    -------
    Figure
        One trace per label, or one heat map; an empty figure when no question has both numbers.
    """
    return _draw(_data(analysis))


def _data(analysis: InfluenceAnalysis) -> _Data:
    columns = ["query_id", "question", "entropy", "dominance", "rho", "label"]
    points = analysis.queries[columns].dropna(subset=["entropy", "dominance"])
    return _Data(points.reset_index(drop=True), len(analysis.queries) - len(points))


def _draw(data: _Data) -> go.Figure:
    points, n = data.points, len(data.points)
    if not n:
        return empty_figure("No question has an influence to spread: entropy and dominance are undefined.")
    alt = (
        f"Influence entropy against dominance ratio of {several(n, 'question')}: median entropy "
        f"{number(points['entropy'].median())} nats, dominance {number(points['dominance'].median())}; "
        f"{data.n_without:,} without these numbers."
    )
    figure = new_figure(alt, "Influence entropy (nats)", "Dominance ratio")
    figure.update_yaxes(range=[0, 1.05])
    figure.update_xaxes(rangemode="tozero")
    add_questions(figure, points, "entropy", "dominance", ("Entropy", "dominance"))
    return figure
