"""Two numbers of the samples of every question against each other: a marker each, or counts above 5,000."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.points import add_questions
from core.charts.theme import AXIS, empty_figure, new_figure
from core.conditions import where
from core.text.display import count, number
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.definitions import QUADRANTS
from core.uncertainty.grounding import UNGROUNDED, quadrant_counts

CORRECT, INCORRECT, UNKNOWN = "Correct", "Incorrect", "No label"
_BY_LABEL = {CORRECT: "Aligned", INCORRECT: "Divergent", UNKNOWN: "irrelevant"}
_BY_QUADRANT = dict(zip(QUADRANTS, ("Aligned", "Divergent", "influence", "irrelevant"), strict=True))


def entropy_agreement(analysis: UncertaintyAnalysis) -> go.Figure:
    """Draw semantic entropy against the agreement of the answer with its samples, one marker a question.

    Colour and shape tell correct from incorrect answers, where reference answers are known. Empty when no
    question has both numbers.
    """
    lacks = "an answer to compare with its samples"
    return _entropy(analysis, "agreement", "Agreement of the answer", "agreement", lacks)


def entropy_variance(analysis: UncertaintyAnalysis) -> go.Figure:
    """Draw semantic entropy against the embedding variance of the samples, as `entropy_agreement` does.

    Empty where no embedding was measured.
    """
    title, name = "Embedding variance of the samples", "embedding variance"
    return _entropy(analysis, "embedding_variance", title, name, "embeddings of its samples")


def _entropy(analysis: UncertaintyAnalysis, up: str, title: str, name: str, lacks: str) -> go.Figure:
    points = analysis.queries.dropna(subset=["entropy", up])
    n_without = len(analysis.queries) - len(points)
    if points.empty:
        return empty_figure(f"No question has both a semantic entropy and {lacks}.")
    right, wrong = (points["correct"].eq(value).fillna(False) for value in (True, False))
    points = _noted(points, np.select([right, wrong], [CORRECT, INCORRECT], UNKNOWN))
    listed = "; ".join(
        f"{len(rows):,} {str(group).lower()}, median entropy {number(rows['entropy'].median())} nats and "
        f"{name} {number(rows[up].median())}"
        for group, rows in points.groupby("group", sort=True)
    )
    alt = (
        f"Semantic entropy against {name} of {count(len(points), 'question')}: "
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

    add_questions(figure, points, "entropy", up, ("Entropy", name), _BY_LABEL, condition)
    return figure


def stability_grounding(analysis: UncertaintyAnalysis) -> go.Figure:
    """Draw the share of samples in the largest meaning against the share of claims that passages support.

    Colour and shape are the quadrants; lines are the borders: the threshold of the setting, and half of the
    claims. Empty where no question has both.
    """
    points = analysis.queries.dropna(subset=["quadrant"])
    n_without = len(analysis.queries) - len(points)
    if points.empty:
        return empty_figure("No question has both samples and claims that were verified.")
    listed = "; ".join(
        f"{row.quadrant.lower()} {row.n:,} ({number(row.expected, '{:.1f}')} by chance)"
        for row in quadrant_counts(points["quadrant"]).itertuples()
    )
    alt = (
        f"Agreement of the samples against grounding of {count(len(points), 'question')}: {listed}; "
        f"{n_without:,} without both."
    )
    across = "Share of samples in the largest meaning"
    figure = new_figure(alt, across, "Share of claims with a supporting passage")
    figure.update_xaxes(range=[-0.03, 1.05], tick0=0, dtick=0.2)
    figure.update_yaxes(range=[-0.05, 1.07], tick0=0, dtick=0.2)
    line, stable = {"color": AXIS, "width": 1, "dash": "dot"}, analysis.stable_from
    figure.add_shape(type="line", line=line, x0=stable, x1=stable, y0=0, y1=1, yref="paper")
    figure.add_shape(type="line", line=line, y0=UNGROUNDED, y1=UNGROUNDED, x0=0, x1=1, xref="paper")

    def condition(group: str, **ends: object) -> str:
        return where("uncertainty", "queries", **ends, quadrant=group)

    points = _noted(points, points["quadrant"])
    add_questions(
        figure, points, "meaning_share", "grounding", (across, "grounding"), _BY_QUADRANT, condition
    )
    return figure


def _noted(points: pd.DataFrame, group: object) -> pd.DataFrame:
    meanings = zip(points["n_meanings"], points["n_samples"], strict=True)
    note = [f"{count(n, 'meaning')} in {count(of, 'sample')}" for n, of in meanings]
    return points.assign(group=group, note=note)
