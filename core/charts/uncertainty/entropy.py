"""Semantic entropy against the agreement of the answer with its samples, for all questions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.points import add_questions
from core.charts.theme import empty_figure, new_figure
from core.text.display import count, number
from core.uncertainty.analysis import UncertaintyAnalysis
from core.worklist import where

CORRECT, INCORRECT, UNKNOWN = "Correct", "Incorrect", "No reference answer"
_STYLES = {CORRECT: "Aligned", INCORRECT: "Divergent", UNKNOWN: "irrelevant"}


def entropy_agreement(analysis: UncertaintyAnalysis) -> go.Figure:
    """Draw semantic entropy against the agreement of the answer with its samples, one marker a question.

    Colour and shape tell correct from incorrect answers, where reference answers are known. Markers lead to
    their questions; above 5,000 they become counts per cell. Empty when no question has both numbers.
    """
    points = _data(analysis)
    return _draw(points, len(analysis.queries) - len(points))


def _data(analysis: UncertaintyAnalysis) -> pd.DataFrame:
    points = analysis.queries.dropna(subset=["entropy", "agreement"])
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


def _draw(points: pd.DataFrame, n_without: int) -> go.Figure:
    n = len(points)
    if not n:
        return empty_figure(
            "No question has both a semantic entropy and an answer to compare with its samples."
        )
    listed = "; ".join(
        f"{len(rows):,} {str(name).lower()}, median entropy {number(rows['entropy'].median())} nats and "
        f"agreement {number(rows['agreement'].median())}"
        for name, rows in points.groupby("group", sort=True)
    )
    alt = (
        f"Semantic entropy against the answer's agreement with its samples of {count(n, 'question')}: "
        f"{listed}; {n_without:,} without these numbers."
    )
    figure = new_figure(alt, "Semantic entropy of the samples (nats)", "Agreement of the answer")
    figure.update_yaxes(range=[-0.03, 1.05], tick0=0, dtick=0.2)
    figure.update_xaxes(rangemode="tozero")
    only_unknown = bool((points["group"] == UNKNOWN).all())

    def condition(group: str, **ends: object) -> str:
        if group != UNKNOWN:
            return where("uncertainty", "queries", **ends, correct=group == CORRECT)
        # A missing label is no condition: it would also list the labelled ones.
        return where("uncertainty", "queries", **ends) if only_unknown else ""

    add_questions(figure, points, "entropy", "agreement", ("Entropy", "agreement"), _STYLES, condition)
    return figure
