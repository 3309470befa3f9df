"""How far the samples agree against how far the answer is grounded, for all questions."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts.points import add_questions
from core.charts.theme import AXIS, empty_figure, new_figure
from core.conditions import where
from core.text.display import count, number
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.definitions import QUADRANTS
from core.uncertainty.grounding import UNGROUNDED, quadrant_counts

_STYLES = dict(zip(QUADRANTS, ("Aligned", "Divergent", "influence", "irrelevant"), strict=True))


def stability_grounding(analysis: UncertaintyAnalysis) -> go.Figure:
    """Draw the share of samples in the largest meaning against the share of claims that passages support.

    Colour and shape are the quadrants; lines are the borders: the threshold of the setting, and half of the
    claims. Markers lead to their questions; above 5,000 they become counts per cell. Empty where no question
    has both.
    """
    points = _data(analysis)
    return _draw(points, analysis.stable_from, len(analysis.queries) - len(points))


def _data(analysis: UncertaintyAnalysis) -> pd.DataFrame:
    points = analysis.queries.dropna(subset=["quadrant"])
    return points.assign(
        group=points["quadrant"],
        note=[
            f"{count(n, 'meaning')} in {count(of, 'sample')}"
            for n, of in zip(points["n_meanings"], points["n_samples"], strict=True)
        ],
    )


def _draw(points: pd.DataFrame, stable_from: float, n_without: int) -> go.Figure:
    if points.empty:
        return empty_figure("No question has both samples and claims that were verified.")
    listed = "; ".join(
        f"{row.quadrant.lower()} {row.n:,} ({number(row.expected, '{:.1f}')} by chance)"
        for row in quadrant_counts(points["quadrant"]).itertuples()
    )
    figure = new_figure(
        f"Agreement of the samples against grounding of {count(len(points), 'question')}: {listed}; "
        f"{n_without:,} without both.",
        "Share of samples in the largest meaning",
        "Share of claims with a supporting passage",
    )
    figure.update_xaxes(range=[-0.03, 1.05], tick0=0, dtick=0.2)
    figure.update_yaxes(range=[-0.05, 1.07], tick0=0, dtick=0.2)
    for border in ({"x0": stable_from, "x1": stable_from, "y0": 0, "y1": 1, "yref": "paper"},
                   {"y0": UNGROUNDED, "y1": UNGROUNDED, "x0": 0, "x1": 1, "xref": "paper"}):  # fmt: skip
        figure.add_shape(type="line", line={"color": AXIS, "width": 1, "dash": "dot"}, **border)

    def condition(group: str, **ends: object) -> str:
        return where("uncertainty", "queries", **ends, quadrant=group)

    names = ("Share of samples in the largest meaning", "grounding")
    add_questions(figure, points, "meaning_share", "grounding", names, _STYLES, condition)
    return figure
