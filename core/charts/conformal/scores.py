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
from core.text.display import count, number

_LOOKS = {"Correct": "Aligned", "Incorrect": "Divergent", "Not known": "irrelevant"}


class _Group(NamedTuple):
    name: str
    sizes: list[int]  # of each range
    doors: list[str]


def score_histogram(analysis: ConformalAnalysis) -> go.Figure:
    """Draw how many answers have which nonconformity score, by whether they are correct.

    The line is the threshold of the correct answers: what lies to its right is flagged. Where groups have
    thresholds of their own there is none. Bars lead to their questions. Empty without a score.
    """
    score, values = analysis.score, analysis.queries["score"].dropna().to_numpy(dtype=np.float64)
    if score is None or not values.size:
        return empty_figure(
            REASONS["no_score"].meaning if score else "The run has no signal that can be a score."
        )
    low, high = float(values.min()), float(values.max())
    edges = round_edges(low, high) if high > low else np.array([low - 0.5, low + 0.5])
    groups, one = _groups(analysis, edges), analysis.coverages[OF_CORRECT]
    listed = ", ".join(f"{sum(group.sizes):,} {group.name.lower()}" for group in groups)
    several = math.isnan(one.threshold)
    line = (
        "each group has a threshold of its own"
        if several
        else f"no finite threshold: {one.reason[:1].lower()}{one.reason[1:].rstrip('.')}"
        if one.reason
        else f"threshold {number(one.threshold)} from {count(one.n_calibration, 'correct answer')}"
    )
    figure = new_figure(
        f"Histogram of the nonconformity score of {count(values.size, 'answer')}: {listed}; {line}.",
        f"{safe_text(score.title)}<br>as nonconformity (high = less typical)",
        "Questions",
    )
    for group in groups:
        figure.add_bar(
            name=f"{group.name} ({sum(group.sizes):,})",
            x=(edges[:-1] + edges[1:]) / 2,
            y=group.sizes,
            width=np.diff(edges),
            marker={**bar_marker(_LOOKS[group.name]), "line": {"width": 0.5, "color": "white"}},
            **doors(figure, group.doors, _hover(edges, group)),
        )
    most = max(1, *np.sum([group.sizes for group in groups], axis=0))
    low, high = float(edges[0]), float(edges[-1])
    if one.reason:
        figure.add_annotation(
            text="No finite threshold: no answer is flagged", x=0.5, y=1, xref="paper", yref="paper",
            yanchor="bottom", showarrow=False,
        )  # fmt: skip
        figure.update_layout(margin_t=32)
    elif not several:
        style = {"color": STYLES["highlight"].color, "width": 3}
        at = [one.threshold] * 2
        add_line(figure, f"Threshold {number(one.threshold)}", at, [0, 1.06 * most], style)
        # That of a store may lie beyond all scores of the run.
        low, high = min(low, one.threshold), max(high, one.threshold)
    margin = 0.02 * (high - low)
    figure.update_xaxes(range=[low - margin, high + margin])
    figure.update_yaxes(range=[0, 1.08 * most], tickformat=",d", dtick=count_step(most))
    figure.update_layout(barmode="stack")
    return figure


def _groups(analysis: ConformalAnalysis, edges: Floats) -> list[_Group]:
    """Return the bars of each group of answers that has any, with the doors to their questions."""
    q = analysis.queries[analysis.queries["score"].notna()]
    values, correct = (q[name].to_numpy(np.float64, na_value=math.nan) for name in ("score", "correct"))
    # A missing label is no condition of a door; where exactly the new questions lack it, their role is one.
    new = bool((np.isnan(correct) == (q["role"] == NEW).to_numpy()).all())
    asked: tuple[tuple[str, Bools, dict[str, object] | None], ...] = (
        ("Correct", correct == 1, {"correct": True}),
        ("Incorrect", correct == 0, {"correct": False}),
        ("Not known", np.isnan(correct), {"role": NEW} if new else None),
    )
    # The last range holds its upper end too.
    ends = [*zip(edges[:-1].tolist(), [*edges[1:-1].tolist(), None], strict=True)]
    groups = []
    for name, chosen, wanted in asked:
        sizes = np.histogram(values[chosen], edges)[0].tolist()
        leads_to = [
            where_door(where("conformal", "queries", score=end, **wanted)) if n and wanted else ""
            for n, end in zip(sizes, ends, strict=True)
        ]
        if sum(sizes):
            groups.append(_Group(name, sizes, leads_to))
    return groups


def _hover(edges: Floats, group: _Group) -> list[str]:
    return [
        f"{group.name}: {count(n, 'question')} of {sum(group.sizes):,}<br>"
        f"with a score from {number(low, '{:.4g}')} to {number(high, '{:.4g}')}"
        for n, low, high in zip(group.sizes, edges[:-1], edges[1:], strict=True)
    ]
