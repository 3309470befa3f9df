"""Two metrics of every question against each other: a marker each, or counts where there are very many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Floats
from core.charts.theme import count_heatmap, marker, safe_text
from core.influence.definitions import LABELS
from core.text.display import number

WEBGL_ABOVE = 1_000
DENSITY_ABOVE = 5_000
_CELLS = 40
_SHORT = 20  # characters of a question where thousands of them travel to the browser


def add_questions(figure: go.Figure, points: pd.DataFrame, x: str, y: str, names: Sequence[str]) -> None:
    """Add one marker a question by label, or counts per cell above 5,000 questions.

    ``points`` has ``query_id, question, label, rho`` and the columns ``x`` and ``y``, both known and not
    negative, y at most 1; ``names`` are their names in the hover. Markers have the ``query_id`` as
    ``customdata``, so that a click can select the question.
    """
    hover = f"{names[0]} %{{x:.2f}}<br>{names[1]} %{{y:.2f}}"
    if len(points) > DENSITY_ABOVE:
        across, up, counts = density(points[x].to_numpy(), points[y].to_numpy())
        figure.add_trace(count_heatmap(across, up, counts, "questions", hover))
        return
    trace = go.Scattergl if len(points) > WEBGL_ABOVE else go.Scatter
    limit = _SHORT if len(points) > WEBGL_ABOVE else 80
    for label in LABELS:
        chosen = points[points["label"] == label]
        if len(chosen):
            figure.add_trace(
                trace(
                    name=f"{label} ({len(chosen):,})",
                    mode="markers",
                    x=chosen[x].to_numpy().round(4),
                    y=chosen[y].to_numpy().round(4),
                    customdata=chosen["query_id"].to_list(),
                    text=[
                        f"{safe_text(question, limit)}<br>ρ {number(rho)}"
                        for question, rho in zip(chosen["question"], chosen["rho"], strict=True)
                    ],
                    hovertemplate=f"%{{text}}<br>{hover}<extra>{label}</extra>",
                    marker={**marker(label), "opacity": 0.8},
                )
            )


def density(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return centres of cells across and up, and the counts, whose rows go up."""
    # From 0, so that no cell is cut.
    top = max(float(x.max()), 1e-9)
    counts, across, up = np.histogram2d(x, y, bins=_CELLS, range=[[0, top], [0, 1]])
    return (across[:-1] + across[1:]) / 2, (up[:-1] + up[1:]) / 2, counts.T
