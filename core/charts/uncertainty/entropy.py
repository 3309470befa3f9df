"""Semantic entropy against another measure of the samples, for all questions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.points import add_questions
from core.charts.theme import empty_figure, new_figure
from core.conditions import where
from core.text.display import count, number
from core.uncertainty.analysis import UncertaintyAnalysis

CORRECT, INCORRECT, UNKNOWN = "Correct", "Incorrect", "No label"
# What stands on the other axis: its title, its name in a sentence, and what a question without it lacks.
_UP = {
    "agreement": ("Agreement of the answer", "agreement", "an answer to compare with its samples"),
    "embedding_variance": (
        "Embedding variance of the samples",
        "embedding variance",
        "embeddings of its samples",
    ),
}
_STYLES = {CORRECT: "Aligned", INCORRECT: "Divergent", UNKNOWN: "irrelevant"}


def entropy_agreement(analysis: UncertaintyAnalysis) -> go.Figure:
    """Draw semantic entropy against the agreement of the answer with its samples, one marker a question.

    Colour and shape tell correct from incorrect answers, where reference answers are known. Markers lead to
    their questions; above 5,000 they become counts per cell. Empty when no question has both numbers.
    """
    return _draw(analysis, "agreement")


def entropy_variance(analysis: UncertaintyAnalysis) -> go.Figure:
    """Draw semantic entropy against the embedding variance of the samples, as `entropy_agreement` does.

    Empty where no embedding was measured.
    """
    return _draw(analysis, "embedding_variance")


def _data(analysis: UncertaintyAnalysis, up: str) -> pd.DataFrame:
    points = analysis.queries.dropna(subset=["entropy", up])
    correct = points["correct"]
    return points.assign(
        group=np.select(
            [correct.eq(True).fillna(False), correct.eq(False).fillna(False)], [CORRECT, INCORRECT], UNKNOWN
        ),
        note=[
            f"{count(n, 'meaning')} in {count(of, 'sample')}"
            for n, of in zip(points["n_meanings"], points["n_samples"], strict=True)
        ],
    )


def _draw(analysis: UncertaintyAnalysis, up: str) -> go.Figure:
    points, (title, name, lacks) = _data(analysis, up), _UP[up]
    n, n_without = len(points), len(analysis.queries) - len(points)
    if not n:
        return empty_figure(f"No question has both a semantic entropy and {lacks}.")
    listed = "; ".join(
        f"{len(rows):,} {str(group).lower()}, median entropy {number(rows['entropy'].median())} nats and "
        f"{name} {number(rows[up].median())}"
        for group, rows in points.groupby("group", sort=True)
    )
    alt = (
        f"Semantic entropy against {name} of {count(n, 'question')}: "
        f"{listed}; {n_without:,} without these numbers."
    )
    figure = new_figure(alt, "Semantic entropy of the samples (nats)", title)
    figure.update_yaxes(range=[-0.03, 1.05], tick0=0, dtick=0.2)
    figure.update_xaxes(rangemode="tozero")
    only_unknown = bool((points["group"] == UNKNOWN).all())

    def condition(group: str, **ends: object) -> str:
        if group != UNKNOWN:
            return where("uncertainty", "queries", **ends, correct=group == CORRECT)
        # A missing label is no condition: it would also list the labelled ones.
        return where("uncertainty", "queries", **ends) if only_unknown else ""

    add_questions(figure, points, "entropy", up, ("Entropy", name), _STYLES, condition)
    return figure
