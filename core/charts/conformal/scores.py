"""How typical correct and incorrect answers are, and from where on an answer is flagged."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.arrays import Bools
from core.charts.bins import round_edges
from core.charts.theme import (
    STYLES,
    Floats,
    add_line,
    bar_marker,
    count_step,
    doors,
    empty_figure,
    new_figure,
    safe_text,
    where_door,
)
from core.conditions import where
from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import NEW, OF_CORRECT, REASONS
from core.conformal.promises import Coverage
from core.text.display import count, number

_LOOKS = {"Correct": "Aligned", "Incorrect": "Divergent", "Not known": "irrelevant"}


class _Group(NamedTuple):
    name: str
    n: int
    sizes: list[int]
    doors: list[str]


class _Data(NamedTuple):
    title: str
    edges: Floats
    groups: list[_Group]
    coverage: Coverage
    n: int


def score_histogram(analysis: ConformalAnalysis) -> go.Figure:
    """Draw how many answers have which nonconformity score, by whether they are correct.

    The line is the threshold of the correct answers: what lies to its right is flagged. Where groups have
    thresholds of their own there is none. Bars lead to their questions. Empty without a score.
    """
    return _draw(_data(analysis))


def _data(analysis: ConformalAnalysis) -> _Data | str:
    """Return the bars, or why there are none."""
    q = analysis.queries
    values = q["score"].to_numpy(dtype=np.float64)
    known = values[~np.isnan(values)]
    if analysis.score is None or not known.size:
        return REASONS["no_score"].meaning if analysis.score else "The run has no signal that can be a score."
    low, high = float(known.min()), float(known.max())
    edges = round_edges(low, high) if high > low else np.array([low - 0.5, low + 0.5])
    correct = q["correct"].to_numpy(dtype=np.float64, na_value=math.nan)
    # A missing label is no condition of a door; where exactly the new questions lack it, their role is one.
    new = bool((np.isnan(correct) == (q["role"] == NEW).to_numpy())[~np.isnan(values)].all())
    groups = []
    asked: tuple[tuple[str, Bools, dict[str, object] | None], ...] = (
        ("Correct", correct == 1, {"correct": True}),
        ("Incorrect", correct == 0, {"correct": False}),
        ("Not known", np.isnan(correct), {"role": NEW} if new else None),
    )
    for name, chosen, wanted in asked:
        sizes = np.histogram(values[chosen & ~np.isnan(values)], edges)[0].tolist()
        if sum(sizes):
            groups.append(_Group(name, sum(sizes), sizes, _doors(edges, sizes, wanted)))
    return _Data(analysis.score.title, edges, groups, analysis.coverages[OF_CORRECT], known.size)


def _doors(edges: Floats, sizes: list[int], wanted: dict[str, object] | None) -> list[str]:
    found = []
    for i, n in enumerate(sizes):
        # The last range holds its upper end too.
        ends = (float(edges[i]), float(edges[i + 1]) if i < len(sizes) - 1 else None)
        asked = wanted if n else None
        door = "" if asked is None else where_door(where("conformal", "queries", score=ends, **asked))
        found.append(door)
    return found


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    one, edges = data.coverage, data.edges
    listed = ", ".join(f"{group.n:,} {group.name.lower()}" for group in data.groups)
    several = math.isnan(one.threshold)
    line = (
        "each group has a threshold of its own"
        if several
        else f"no finite threshold: {one.reason[:1].lower()}{one.reason[1:].rstrip('.')}"
        if one.reason
        else f"threshold {number(one.threshold)} from {count(one.n_calibration, 'correct answer')}"
    )
    figure = new_figure(
        f"Histogram of the nonconformity score of {count(data.n, 'answer')}: {listed}; {line}.",
        f"{safe_text(data.title)}<br>as nonconformity (high = less typical)",
        "Questions",
    )
    for group in data.groups:
        figure.add_bar(
            name=f"{group.name} ({group.n:,})",
            x=(edges[:-1] + edges[1:]) / 2,
            y=group.sizes,
            width=np.diff(edges),
            marker={**bar_marker(_LOOKS[group.name]), "line": {"width": 0.5, "color": "white"}},
            **doors(figure, group.doors, _hover(data, group)),
        )
    most = max(1, *np.sum([group.sizes for group in data.groups], axis=0))
    low, high = float(edges[0]), float(edges[-1])
    if one.reason:
        figure.add_annotation(
            text="No finite threshold: no answer is flagged", x=0.5, y=1, xref="paper", yref="paper",
            yanchor="bottom", showarrow=False,
        )  # fmt: skip
        figure.update_layout(margin_t=32)
    elif not several:
        add_line(
            figure,
            f"Threshold {number(one.threshold)}",
            [one.threshold] * 2,
            [0, 1.06 * most],
            {"color": STYLES["highlight"].color, "width": 3},
        )
        # That of a store may lie beyond all scores of the run.
        low, high = min(low, one.threshold), max(high, one.threshold)
    margin = 0.02 * (high - low)
    figure.update_xaxes(range=[low - margin, high + margin])
    figure.update_yaxes(range=[0, 1.08 * most], tickformat=",d", dtick=count_step(most))
    figure.update_layout(barmode="stack")
    return figure


def _hover(data: _Data, group: _Group) -> list[str]:
    edges = data.edges
    return [
        f"{group.name}: {count(n, 'question')} of {group.n:,}<br>"
        f"with a score from {number(low, '{:.4g}')} to {number(high, '{:.4g}')}"
        for n, low, high in zip(group.sizes, edges[:-1], edges[1:], strict=True)
    ]
