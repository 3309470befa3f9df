"""Two metrics of influence of every question against each other, by label."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from core.charts import points as places
from core.conditions import where
from core.influence.definitions import LABELS
from core.text.display import number


def add_questions(figure: go.Figure, points: pd.DataFrame, x: str, y: str, names: Sequence[str]) -> None:
    """Add the questions by label; ``points`` are rows of the analysis's ``queries``."""
    points = points.assign(group=points["label"], note=[f"ρ {number(rho)}" for rho in points["rho"]])
    styles = {label: label for label in LABELS}
    places.add_questions(figure, points, x, y, names, styles, _condition)


def _condition(label: str, **ends: object) -> str:
    return where("influence", "queries", **ends, label=label)
