"""What a threshold on the confidence lets through, and how much of that is correct."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from core.calibration.weighted import Weighting
from core.charts.theme import (
    DASHED,
    STYLES,
    add_band,
    add_line,
    doors,
    empty_figure,
    new_figure,
    where_door,
)
from core.conditions import where
from core.confidence.analysis import ConfidenceAnalysis
from core.text.display import count, number, percent

_PALE = "rgba(0, 114, 178, 0.18)"  # of the colour of "Aligned"
_HALF, _FUZZ = 0.005, 5e-12  # of the second decimal, to which a confidence is rounded, and of a sum of floats


class _Data(NamedTuple):
    rows: pd.DataFrame  # of `ConfidenceAnalysis.curve`
    other: pd.DataFrame | None  # likewise, of another weighting
    threshold: float
    base: float  # share correct of all labelled answers with a confidence
    n: int
    n_labelled: int


def threshold_curve(analysis: ConfidenceAnalysis, other: Weighting | None = None) -> go.Figure:
    """Draw for each threshold the share of answers that pass, and the share of them that is correct.

    The band is Wilson's 95 % interval. Dotted is the share correct of all answers: what any threshold would
    give if the confidence told nothing. Marks lead to the answers that pass, and to the incorrect ones among
    them. Another weighting adds lines of its own. Empty without a confidence.
    """
    return _draw(_data(analysis, other))


def _data(analysis: ConfidenceAnalysis, other: Weighting | None) -> _Data | str:
    """Return the curves, or why there are none."""
    rows = analysis.curve()
    first = rows.iloc[0]
    if not first["n"]:
        return analysis.reason or "No answer has a confidence."
    return _Data(
        rows,
        None if other is None else analysis.curve(other),
        analysis.weighting.threshold,
        float(first["accuracy"]),
        int(first["n"]),
        int(first["n_labelled"]),
    )


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    rows, known = data.rows, data.rows[data.rows["n_labelled"] > 0]
    figure = new_figure(_alt(data), "Threshold on the confidence", "Share of answers (%)", 420)
    if len(known):
        low, high = (100 * known[end].to_numpy() for end in ("low", "high"))
        add_band(figure, "95 % interval", known["threshold"], low, high, _PALE)
    _add_curve(figure, f"Pass (of {data.n:,})", "irrelevant", rows, "coverage", _passing(rows))
    if len(known):
        _add_curve(figure, "Correct among them", "Aligned", known, "accuracy", _correct(known))
        add_line(figure, f"Base rate {percent(data.base)}", [0, 1], [100 * data.base] * 2)
    if data.other is not None:
        _add_other(figure, data.other)
    add_line(figure, f"Threshold {number(data.threshold)}", [data.threshold] * 2, [0, 100], DASHED)
    figure.update_xaxes(range=[-0.02, 1.02], dtick=0.2)
    figure.update_yaxes(range=[-2, 103])
    return figure


def _add_curve(
    figure: go.Figure, name: str, style: str, rows: pd.DataFrame, column: str, marks: list[tuple[str, str]]
) -> None:
    look = STYLES[style]
    figure.add_scatter(
        name=name,
        mode="lines+markers",
        x=rows["threshold"],
        y=100 * rows[column],
        line={"color": look.color, "width": 2.5},
        marker={"color": look.color, "symbol": look.symbol, "size": 7},
        **doors(figure, *zip(*marks, strict=True)),
    )


def _add_other(figure: go.Figure, rows: pd.DataFrame) -> None:
    """Add the curves of other weights, dashed and in colours of their own."""
    for name, style, column, of in (
        ("Pass, other weights", "irrelevant", "coverage", "n"),
        ("Correct, other weights", "influence", "accuracy", "n_labelled"),
    ):
        shown = rows[rows[of] > 0]
        if len(shown):
            figure.add_scatter(
                name=name,
                mode="lines",
                x=shown["threshold"],
                y=100 * shown[column],
                line={"color": STYLES[style].color, "width": 2.5, "dash": "dash"},
                hovertemplate="%{fullData.name}<br>Threshold %{x:.2f}: %{y:.0f} %<extra></extra>",
            )


def _passing(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return door and hover of each mark of the answers that pass."""
    return [
        (
            _door(row.threshold) if row.n_passing else "",
            f"Threshold {number(row.threshold)}<br>"
            f"{row.n_passing:,} of {count(row.n, 'answer')} pass ({percent(row.coverage)})",
        )
        for row in rows.itertuples()
    ]


def _correct(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return door, to the incorrect answers that pass, and hover of each mark of the correct ones."""
    found = []
    for row in rows.itertuples():
        wrong = int(row.n_labelled - row.n_correct)
        lines = [
            f"Threshold {number(row.threshold)}",
            f"{row.n_correct:,} of {count(row.n_labelled, 'labelled answer')} that pass<br>are correct "
            f"({percent(row.accuracy)}; 95 %: {percent(0, (row.low, row.high))})",
            f"{count(wrong, 'incorrect answer')}",
        ]
        found.append((_door(row.threshold, correct=False) if wrong else "", "<br>".join(lines)))
    return found


def _door(threshold: float, **more: Any) -> str:
    """Return the door to the answers that reach a threshold; their confidence is rounded half up."""
    low = round(threshold - _HALF, 9) - _FUZZ if threshold else None
    return where_door(where("confidence", "queries", confidence=(low, None), **more))


def _alt(data: _Data) -> str:
    at = data.rows.iloc[(data.rows["threshold"] - data.threshold).abs().argmin()]
    of = f"of {count(data.n, 'answer')} {percent(at['coverage'])} pass"
    right = "no answer is labelled"
    if data.n_labelled:
        right = (
            f"{percent(at['accuracy'])} of the {at['n_labelled']:,.0f} labelled ones among them are correct"
            if at["n_labelled"]
            else "none of them is labelled"
        )
        right += f", of all {data.n_labelled:,} labelled {percent(data.base)}"
    return (
        "Share of answers that pass and share of correct ones among them, by threshold on the confidence: "
        f"at {number(at['threshold'])} {of}; {right}."
    )
