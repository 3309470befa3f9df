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
from core.context_score import Band, band
from core.rows import places_of
from core.text.display import number

_NAME = 26  # characters of the label of a row


# Of the bands, by the word of each: apart for every reader, and near their own colours.
_LOOKS = {"low": "Divergent", "medium": "highlight", "high": "influence"}


class _Row(NamedTuple):
    title: str
    value: float
    start: float
    size: float  # NaN where the signal is missing
    most: float  # what it could add
    hover: str


class _Data(NamedTuple):
    rows: list[_Row]
    total: float
    confidence: float  # after the map
    threshold: float
    mapped: bool
    band: Band


def waterfall(analysis: ConfidenceAnalysis, query_id: str) -> go.Figure:
    """Draw what each signal adds to the confidence of an answer: its weight times its value.

    Outlined is what the signal could add at most. A missing signal has a note. The last row is the
    confidence, in the form of its band; before it the sum, where a map turns that into the confidence. Empty
    where the run has no weights.
    """
    return _draw(_data(analysis, query_id))


def _data(analysis: ConfidenceAnalysis, query_id: str) -> _Data | str:
    """Return the rows, or why there are none."""
    if analysis.used.reason:
        return analysis.used.reason
    places = places_of(analysis.queries, query_id)
    if not places.size:
        return "This run has no such question."
    place, at, rows = int(places[0]), 0.0, []
    for column, (name, weight) in enumerate(analysis.weighting.weights.items()):
        if not weight:
            continue
        title, value = analysis.used.titles[name], float(analysis.signals[name][place])
        size = float(analysis.contributions[place, column])
        said = (
            "no value" if math.isnan(value) else f"{number(value)} × weight {number(weight)} = {number(size)}"
        )
        rows.append(_Row(title, value, at, size, weight, f"{safe_text(title)}<br>{said}"))
        at += 0.0 if math.isnan(size) else size
    row = analysis.queries.iloc[place]
    return _Data(
        rows, float(row["raw_confidence"]), float(row["confidence"]), analysis.weighting.threshold,
        analysis.used.method.map.kind != "none", band(float(half_up(row["confidence"]))),
    )  # fmt: skip


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    rows = data.rows
    n = len(rows) + 1 + data.mapped
    figure = new_figure(_alt(data), "Confidence", "", height=120 + 44 * n)
    figure.add_bar(
        name="Most it could add",
        orientation="h",
        base=[row.start for row in rows],
        x=[row.most for row in rows],
        y=[*range(1, len(rows) + 1)],
        width=0.7,
        marker={"color": "rgba(0,0,0,0)", "line": {"width": 1, "color": AXIS}},
        hoverinfo="skip",
    )
    known = [(place, row) for place, row in enumerate(rows, start=1) if not math.isnan(row.size)]
    add_row_bars(
        figure, "Adds", [row.size for _, row in known], [place for place, _ in known], "Aligned",
        [row.hover for _, row in known], base=[row.start for _, row in known],
    )  # fmt: skip
    missing = [(place, row) for place, row in enumerate(rows, start=1) if math.isnan(row.size)]
    if missing:
        figure.add_scatter(
            name="Missing",
            mode="text",
            x=[row.start + row.most / 2 for _, row in missing],
            y=[place for place, _ in missing],
            text=["no value"] * len(missing),
            showlegend=False,
            customdata=[row.hover for _, row in missing],
            hovertemplate="%{customdata}<extra></extra>",
        )
    else:
        if data.mapped:
            add_row_bars(figure, "Sum", [data.total], [n - 1], "neutral", [f"Sum {number(data.total)}"])
        said = f"Confidence {number(data.confidence)}: {data.band.word}"
        add_row_bars(figure, "Confidence", [data.confidence], [n], _LOOKS[data.band.word], [said])
    add_line(figure, f"Threshold {number(data.threshold)}", [data.threshold] * 2, [0.4, n + 0.6], DASHED)
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(range=[-0.01, 1.02], dtick=0.2)
    names = [
        f"{safe_text(row.title, _NAME)}<br>{number(row.value)} × weight {number(row.most)}" for row in rows
    ]
    sums = [f"Sum {number(data.total)}"] if data.mapped else []
    names += [*sums, f"<b>Confidence {number(data.confidence)}</b><br>{data.band.icon} {data.band.word}"]
    name_rows(figure, names)
    return figure


def _alt(data: _Data) -> str:
    parts = ", ".join(f"{number(row.size)} of at most {number(row.most)}" for row in data.rows)
    if any(math.isnan(row.size) for row in data.rows):
        n = sum(math.isnan(row.size) for row in data.rows)
        said = f"undefined, {n} of {len(data.rows)} signals missing"
    else:
        said = f"{number(data.total)}{f', after the map {number(data.confidence)}' if data.mapped else ''}"
        said += f" ({data.band.word})"
    return (
        f"What {len(data.rows)} signals add to the confidence of 1 answer: {parts}; sum {said}, threshold "
        f"{number(data.threshold)}."
    )
