"""One question: its sampled answers in a plane, near each other where they are alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Floats
from core.charts.theme import STYLES, doors, empty_figure, new_figure, where_door
from core.charts.uncertainty.answer_samples import (
    LOOKS,
    AnswerSamples,
    answer_samples,
    settings,
    texts,
)
from core.conditions import where
from core.text.display import count, percent
from core.uncertainty.analysis import UncertaintyAnalysis

_FEWEST = 3  # different answers; fewer lie on a line, whatever they say
_ROUNDING = 1e-9  # an eigenvalue below it is 0


class _Data(NamedTuple):
    points: pd.DataFrame  # one row per different answer: x, y, n, meaning, is_consensus, hover
    explained: tuple[float, float]
    n_samples: int
    n_meanings: int
    door: str
    kind: str


def answer_scatter(analysis: UncertaintyAnalysis, query_id: str) -> go.Figure:
    """Draw the samples of a question as points, alike answers near each other.

    Positions are the leading two coordinates of classical scaling (Torgerson 1952) of the likeness by
    ROUGE-L or, where the samples were embedded, of the embeddings, which is their PCA; the axis titles say
    how much of the differences they hold. Equal answers share a mark,
    whose area grows with their number. Marks lead to all questions with as many meanings. Empty for fewer
    than three different answers.
    """
    return _draw(_data(analysis, query_id))


def _data(analysis: UncertaintyAnalysis, query_id: str) -> _Data | str:
    """Return one point per different answer, or why there is no figure."""
    found = answer_samples(analysis, query_id)
    if len(set(found.group)) < _FEWEST:
        return "Fewer than three different answers were sampled: there is nothing to lay out in a plane."
    n_meanings = int(found.rows["meaning"].max())
    every = analysis.queries["n_meanings"]
    alike = int((every == n_meanings).sum())
    coordinates, explained = projection(found.gram)
    return _Data(
        _points(found, coordinates, count(alike, "question")),
        explained,
        len(found.rows),
        n_meanings,
        where_door(where("uncertainty", "queries", n_meanings=n_meanings)),
        found.kind,
    )


def projection(similarity: Floats) -> tuple[Floats, tuple[float, float]]:
    """Return the leading two coordinates of points from their likeness, (n, 2), and the share each explains.

    The eigenvectors of the double-centred matrix, scaled by the roots of their eigenvalues: squared distances
    are 2 (1 − similarity), as far as two dimensions can show them. Shares are of the positive eigenvalues.
    """
    centred = similarity - similarity.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    total = float(np.maximum(values, 0).sum())
    values, vectors = values[::-1][:2], vectors[:, ::-1][:, :2]
    values = np.where(values > _ROUNDING, values, 0.0)
    # An eigenvector may point either way; the entry farthest from 0 shall be positive.
    vectors = vectors * np.where(np.abs(vectors.min(axis=0)) > vectors.max(axis=0) + _ROUNDING, -1.0, 1.0)
    share = values / total if total > 0 else values
    return vectors * np.sqrt(values), (float(share[0]), float(share[1]))


def _points(found: AnswerSamples, coordinates: Floats, alike: str) -> pd.DataFrame:
    rows, points = found.rows.assign(x=coordinates[:, 0], y=coordinates[:, 1], group=found.group), []
    size = rows["meaning"].value_counts()
    for _, same in rows.groupby("group", sort=False):
        meaning = int(same["meaning"].iloc[0])
        lines = [
            texts(same["answer"]),
            f"{len(same)} of {count(len(rows), 'sample')}",
            f"Meaning {meaning}, {count(int(size[meaning]), 'sample')}",
            settings(same),
            "Most typical answer" if same["is_consensus"].any() else "",
            f"As many meanings in {alike}",
        ]
        points.append(
            {
                "x": float(same["x"].iloc[0]),
                "y": float(same["y"].iloc[0]),
                "n": len(same),
                "meaning": meaning,
                "is_consensus": bool(same["is_consensus"].any()),
                "hover": "<br>".join(filter(None, lines)),
            }
        )
    return pd.DataFrame(points)


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    largest = int(data.points.loc[data.points["meaning"] == 1, "n"].sum())
    alt = (
        f"{count(data.n_samples, 'sample')} of this question in a plane by {data.kind}: "
        f"{count(len(data.points), 'different answer')} with {count(data.n_meanings, 'meaning')}, the "
        f"largest with {count(largest, 'sample')}; the axes hold {percent(sum(data.explained))} of the "
        "differences."
    )
    across, up = (
        f"Dimension {i + 1} ({percent(share)} of differences)" for i, share in enumerate(data.explained)
    )
    figure = new_figure(alt, across, up, height=420)
    for i, (colour, symbol, _) in enumerate(LOOKS):
        last = i == len(LOOKS) - 1
        of_look = data.points["meaning"] > i if last else data.points["meaning"] == i + 1
        chosen = data.points[of_look]
        if len(chosen):
            n = count(int(chosen["n"].sum()), "sample")
            figure.add_scatter(
                name=f"Other meanings ({n})" if last else f"Meaning {i + 1} ({n})",
                mode="markers",
                x=chosen["x"],
                y=chosen["y"],
                marker={
                    "color": colour,
                    "symbol": symbol,
                    "size": 15 * np.sqrt(chosen["n"].to_numpy(dtype=float)),
                    "opacity": 0.75,
                    "line": {"width": 1, "color": "white"},
                },
                cliponaxis=False,
                **doors(figure, [data.door] * len(chosen), chosen["hover"]),
            )
    typical = data.points[data.points["is_consensus"]]
    figure.add_scatter(
        name="Most typical answer",
        mode="markers",
        x=typical["x"],
        y=typical["y"],
        marker={
            "symbol": "star",
            "size": 9,
            "color": "white",
            "line": {"width": 1.5, "color": STYLES["highlight"].color},
        },
        cliponaxis=False,
        **doors(figure, [data.door] * len(typical), typical["hover"]),
    )
    # Both axes have one scale, so that distances read the same in every direction.
    figure.update_yaxes(scaleanchor="x", scaleratio=1)
    _leave_room(figure, data.points)
    return figure


def _leave_room(figure: go.Figure, points: pd.DataFrame) -> None:
    """Keep the largest marks inside the plot."""
    for update, name in ((figure.update_xaxes, "x"), (figure.update_yaxes, "y")):
        low, high = float(points[name].min()), float(points[name].max())
        margin = 0.15 * max(high - low, 0.2)
        update(range=[low - margin, high + margin], dtick=0.5)
