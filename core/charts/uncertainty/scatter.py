"""One question: its sampled answers in a plane, near each other where they are alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Floats
from core.charts import theme
from core.conditions import where
from core.rows import rows_of
from core.text.display import count, number, percent
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.similarity import unit

_FEWEST = 3  # different answers; fewer lie on a line, whatever they say
_ROUNDING = 1e-9  # an eigenvalue below it is 0
_TEXT = 120  # characters that a hover box shows
_LOOKS = (  # style and symbol of the meanings, the largest first; the last is that of all others
    ("Aligned", "circle"),
    ("Divergent", "diamond"),
    ("influence", "square"),
    ("retrieval", "cross"),
    ("highlight", "triangle-up"),
    ("Undefined", "x"),
)


class _Data(NamedTuple):
    points: pd.DataFrame  # one row per different answer: x, y, n, meaning, is_consensus, hover
    explained: tuple[float, float]
    n_samples: int
    n_meanings: int
    door: str
    kind: str  # of likeness


def answer_scatter(analysis: UncertaintyAnalysis, query_id: str) -> go.Figure:
    """Draw the samples of a question as points, alike answers near each other.

    Positions are the leading two coordinates of classical scaling (Torgerson 1952) of the likeness by
    ROUGE-L or, where the samples were embedded, of the embeddings, which is their PCA; the axis titles say
    how much of the differences they hold. Equal answers share a mark, whose area grows with their number.
    Marks lead to all questions with as many meanings. Empty for fewer than three different answers.
    """
    data = _data(analysis, query_id)
    if data is None:
        few = "Fewer than three different answers were sampled: there is nothing to lay out in a plane."
        return theme.empty_figure(few)
    points = data.points
    largest = int(points.loc[points["meaning"] == 1, "n"].sum())
    alt = (
        f"{count(data.n_samples, 'sample')} of this question in a plane by {data.kind}: "
        f"{count(len(points), 'different answer')} with {count(data.n_meanings, 'meaning')}, the "
        f"largest with {count(largest, 'sample')}; the axes hold {percent(sum(data.explained))} of the "
        "differences."
    )
    across, up = (
        f"Dimension {i + 1} ({percent(share)} of differences)" for i, share in enumerate(data.explained)
    )
    figure = theme.new_figure(alt, across, up, height=420)
    for i, (style, symbol) in enumerate(_LOOKS, start=1):
        last = i == len(_LOOKS)
        chosen = points[points["meaning"] >= i if last else points["meaning"] == i]
        n = count(int(chosen["n"].sum()), "sample")
        look = {
            "color": theme.STYLES[style].color,
            "symbol": symbol,
            "size": 15 * np.sqrt(chosen["n"].to_numpy(dtype=float)),
            "opacity": 0.75,
            "line": {"width": 1, "color": "white"},
        }
        _add(figure, f"Other meanings ({n})" if last else f"Meaning {i} ({n})", chosen, look, data.door)
    star = {"symbol": "star", "size": 9, "color": "white"}
    star["line"] = {"width": 1.5, "color": theme.STYLES["highlight"].color}
    _add(figure, "Most typical answer", points[points["is_consensus"]], star, data.door)
    # Both axes have one scale, so that distances read the same in every direction.
    figure.update_yaxes(scaleanchor="x", scaleratio=1)
    for update, name in ((figure.update_xaxes, "x"), (figure.update_yaxes, "y")):
        low, high = float(points[name].min()), float(points[name].max())
        margin = 0.15 * max(high - low, 0.2)  # keeps the largest marks inside the plot
        update(range=[low - margin, high + margin], dtick=0.5)
    return figure


def _add(figure: go.Figure, name: str, rows: pd.DataFrame, look: dict[str, object], door: str) -> None:
    leads_to = [door] * len(rows)
    theme.add_marks(figure, name, rows["x"], rows["y"], look, rows["hover"], leads_to, cliponaxis=False)


def _data(analysis: UncertaintyAnalysis, query_id: str) -> _Data | None:
    """Return one point per different answer; None where there are too few."""
    rows, samples = rows_of(analysis.samples, query_id), analysis.texts.get(query_id)
    rows = rows[rows["meaning"].notna()]  # calls that failed have none
    if samples is None or rows.empty:
        return None
    order = np.argsort(rows["meaning"].to_numpy(dtype=np.int64), kind="stable")
    rows = rows.iloc[order].assign(group=samples.clusters("exact")[order])
    if rows["group"].nunique() < _FEWEST:
        return None
    if samples.embeddings is None:
        kind, gram = "ROUGE-L", samples.graph("rouge_l")[np.ix_(order, order)]
    else:
        vectors = unit(samples.rows("embeddings")[order])
        kind, gram = "cosine of embeddings", vectors @ vectors.T
    n_meanings = int(rows["meaning"].max())
    alike = int((analysis.queries["n_meanings"] == n_meanings).sum())
    coordinates, explained = projection(gram)
    points = _points(rows.assign(x=coordinates[:, 0], y=coordinates[:, 1]), count(alike, "question"))
    door = theme.where_door(where("uncertainty", "queries", n_meanings=n_meanings))
    return _Data(points, explained, len(rows), n_meanings, door, kind)


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


def _points(rows: pd.DataFrame, alike: str) -> pd.DataFrame:
    points, size = [], rows["meaning"].value_counts()
    for _, same in rows.groupby("group", sort=False):
        first, typical = same.iloc[0], bool(same["is_consensus"].any())
        lines = [
            _texts(same["answer"]),
            f"{len(same)} of {count(len(rows), 'sample')}",
            f"Meaning {first['meaning']}, {count(int(size[first['meaning']]), 'sample')}",
            _settings(same),
            "Most typical answer" if typical else "",
            f"As many meanings in {alike}",
        ]
        hover = "<br>".join(filter(None, lines))
        points.append((first["x"], first["y"], len(same), int(first["meaning"]), typical, hover))
    return pd.DataFrame(points, columns=["x", "y", "n", "meaning", "is_consensus", "hover"])


def _settings(rows: pd.DataFrame) -> str:
    """Say at which temperature and top_p samples were drawn; "" where that is unknown."""
    said = []
    for name, title in (("temperature", "Temperature"), ("top_p", "top_p")):
        known = rows[name].dropna()
        if len(known):
            ends = dict.fromkeys((known.min(), known.max()))
            said.append(f"{title} {' to '.join(number(value, '{:g}') for value in ends)}")
    return ", ".join(said)


def _texts(answers: pd.Series) -> str:
    """Return the different wordings of samples that count as one answer, at most three."""
    found = list(dict.fromkeys(answers))
    shown = [theme.safe_text(text, _TEXT // min(len(found), 3)) or "(empty)" for text in found[:3]]
    more = [f"and {count(len(found) - 3, 'more wording')}"] if len(found) > 3 else []
    return "<br>".join([*shown, *more])
