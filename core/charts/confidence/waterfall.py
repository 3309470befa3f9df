"""What the confidence of one answer is made of."""

from __future__ import annotations

import math
from typing import NamedTuple

import plotly.graph_objects as go

from core.calibration.weighted import half_up
from core.charts.theme import (
    AXIS,
    DASHED,
    add_line,
    add_row_bars,
    empty_figure,
    name_rows,
    new_figure,
    safe_text,
)
from core.confidence.analysis import ConfidenceAnalysis
from core.context_score import band
from core.rows import places_of
from core.text.display import number

_NAME = 26  # characters of the label of a row


# Of the bands, by the word of each: apart for every reader, and near their own colours.
_LOOKS = {"low": "Divergent", "medium": "highlight", "high": "influence"}


class _Row(NamedTuple):
    place: int
    title: str
    value: float
    start: float
    size: float  # NaN where the signal is missing
    most: float  # what it could add
    hover: str


def waterfall(analysis: ConfidenceAnalysis, query_id: str) -> go.Figure:
    """Draw what each signal adds to the confidence of an answer: its weight times its value.

    Outlined is what the signal could add at most. A missing signal has a note. The last row is the
    confidence, in the form of its band; before it the sum, where a map turns that into the confidence. Empty
    where the run has no weights.
    """
    places = places_of(analysis.queries, query_id)
    if analysis.used.reason or not places.size:
        return empty_figure(analysis.used.reason or "This run has no such question.")
    rows, one = _rows(analysis, int(places[0])), analysis.queries.iloc[int(places[0])]
    total, confidence = float(one["raw_confidence"]), float(one["confidence"])
    own, threshold = band(float(half_up(confidence))), analysis.weighting.threshold
    mapped = analysis.used.method.map.kind != "none"
    sums = [f"Sum {number(total)}"] if mapped else []
    n = len(rows) + 1 + mapped
    after = f"{number(total)}{f', after the map {number(confidence)}' if mapped else ''} ({own.word})"
    figure = new_figure(_alt(rows, after, threshold), "Confidence", "", height=120 + 44 * n)
    figure.add_bar(
        name="Most it could add",
        orientation="h",
        base=[row.start for row in rows],
        x=[row.most for row in rows],
        y=[row.place for row in rows],
        width=0.7,
        marker={"color": "rgba(0,0,0,0)", "line": {"width": 1, "color": AXIS}},
        hoverinfo="skip",
    )
    known = [row for row in rows if not math.isnan(row.size)]
    add_row_bars(
        figure, "Adds", [row.size for row in known], [row.place for row in known], "Aligned",
        [row.hover for row in known], base=[row.start for row in known],
    )  # fmt: skip
    missing = [row for row in rows if math.isnan(row.size)]
    if missing:
        figure.add_scatter(
            name="Missing",
            mode="text",
            x=[row.start + row.most / 2 for row in missing],
            y=[row.place for row in missing],
            text=["no value"] * len(missing),
            showlegend=False,
            customdata=[row.hover for row in missing],
            hovertemplate="%{customdata}<extra></extra>",
        )
    else:
        if mapped:
            add_row_bars(figure, "Sum", [total], [n - 1], "neutral", sums)
        said = f"Confidence {number(confidence)}: {own.word}"
        add_row_bars(figure, "Confidence", [confidence], [n], _LOOKS[own.word], [said])
    add_line(figure, f"Threshold {number(threshold)}", [threshold] * 2, [0.4, n + 0.6], DASHED)
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(range=[-0.01, 1.02], dtick=0.2)
    names = [
        f"{safe_text(row.title, _NAME)}<br>{number(row.value)} × weight {number(row.most)}" for row in rows
    ]
    names += [*sums, f"<b>Confidence {number(confidence)}</b><br>{own.icon} {own.word}"]
    name_rows(figure, names)
    return figure


def _rows(analysis: ConfidenceAnalysis, place: int) -> list[_Row]:
    at, rows = 0.0, list[_Row]()
    for column, (name, weight) in enumerate(analysis.weighting.weights.items()):
        if weight:
            title, value = analysis.used.titles[name], float(analysis.signals[name][place])
            size = float(analysis.contributions[place, column])
            said = f"{number(value)} × weight {number(weight)} = {number(size)}"
            hover = f"{safe_text(title)}<br>{'no value' if math.isnan(value) else said}"
            rows.append(_Row(len(rows) + 1, title, value, at, size, weight, hover))
            at += 0.0 if math.isnan(size) else size
    return rows


def _alt(rows: list[_Row], said: str, threshold: float) -> str:
    parts = ", ".join(f"{number(row.size)} of at most {number(row.most)}" for row in rows)
    missing = sum(math.isnan(row.size) for row in rows)
    if missing:
        said = f"undefined, {missing} of {len(rows)} signals missing"
    return (
        f"What {len(rows)} signals add to the confidence of 1 answer: {parts}; sum {said}, threshold "
        f"{number(threshold)}."
    )
