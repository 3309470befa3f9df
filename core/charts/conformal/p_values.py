"""Whether the other questions look like the calibration: their p-values beside uniform ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.special import betaincinv

from core.charts.bins import thinned
from core.charts.conformal.curves import void
from core.charts.theme import (
    DASHED,
    STYLES,
    Floats,
    add_band,
    add_line,
    add_marks,
    empty_figure,
    marker,
    new_figure,
    question_door,
    safe_text,
)
from core.conformal.analysis import OWN, ConformalAnalysis
from core.conformal.definitions import METRICS
from core.text.display import count, number

_BAND = 0.95
_MOST = 300  # questions with a mark each
_MANY = 100  # from so many on their marks are small


class _Data(NamedTuple):
    rows: pd.DataFrame  # of the questions, their p-values rising
    p: Floats
    expected: Floats
    low: Floats  # of the 95 % that uniform p-values give at each place
    high: Floats


def p_value_plot(analysis: ConformalAnalysis) -> go.Figure:
    """Draw the p-values of the questions that do not calibrate, in rising order, against uniform ones.

    They are randomised, each among the calibration and all questions before it; below the diagonal is less
    typical than the calibration. Grey is where 95 of 100 uniform samples have each point, one point at a
    time. Of more than 300 questions the 300 least typical have a mark that leads to them.
    """
    return _draw(_data(analysis))


def _data(analysis: ConformalAnalysis) -> _Data | str:
    """Return the sorted p-values with their band, or why there are none."""
    if why := void(analysis):
        return why
    if not analysis.drift.n and analysis.origin == OWN:
        return f"Undefined because {METRICS['drift'].undefined_when}."
    if not analysis.drift.n:
        return "No score of another question can be compared with one of the calibration."
    rows = analysis.queries[analysis.queries["drift_p"].notna()].sort_values("drift_p", kind="stable")
    n = len(rows)
    place = np.arange(1, n + 1, dtype=np.float64)
    low, high = (betaincinv(place, n + 1 - place, end) for end in ((1 - _BAND) / 2, (1 + _BAND) / 2))
    return _Data(rows, rows["drift_p"].to_numpy(), place / (n + 1), low, high)


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    n, below, above = len(data.p), data.p < data.low, data.p > data.high
    outside = int((below | above).sum())
    by_chance, lowest = number((1 - _BAND) * n, "{:.1f}"), number(float(data.p[0]), "{:.2g}")
    figure = new_figure(
        f"P-values of {count(n, 'question')} that do not calibrate, sorted, against uniform ones: "
        f"{outside:,} lie outside the pointwise 95 % band ({by_chance} by chance), {int(below.sum()):,} "
        f"of them below it, less typical than the calibration; the lowest is {lowest}.",
        "Uniform p-values",
        "P-values of the questions",
        height=420,
    )
    kept = thinned(n)
    # From corner to corner, where all samples agree.
    ends = (np.r_[0, values[kept], 1] for values in (data.expected, data.low, data.high))
    add_band(figure, "95 % of uniform samples, pointwise", *ends)
    add_line(figure, "Uniform", [0, 1], [0, 1], DASHED)
    if n > _MOST:
        line = {"color": STYLES["neutral"].color, "width": 2}
        add_line(figure, f"All {n:,}", data.expected[kept], data.p[kept], line)
    for name, style, chosen in (
        ("Below the band", "Divergent", below),
        ("Inside", "Aligned", ~below & ~above),
        ("Above the band", "raised", above),
    ):
        marked = np.flatnonzero(chosen[:_MOST])
        add_marks(
            figure, f"{name} ({int(chosen.sum()):,})", data.expected[marked], data.p[marked],
            {**marker(style, 8 if n <= _MANY else 5), "opacity": 0.85},
            [_hover(data, i) for i in marked.tolist()],
            [question_door(one) for one in data.rows["query_id"].iloc[marked]], cliponaxis=False,
        )  # fmt: skip
    figure.update_xaxes(range=[-0.02, 1.02], dtick=0.2)
    figure.update_yaxes(range=[-0.02, 1.02], dtick=0.2)
    return figure


def _hover(data: _Data, i: int) -> str:
    p, expected, low, high = (number(float(one[i]), "{:.2g}") for one in data[1:])
    return (
        f"{safe_text(data.rows['question'].iloc[i])}<br>"
        f"p = {p}, number {i + 1:,} of {len(data.p):,} from the lowest<br>"
        f"Uniform: {expected} (95 %: {low} to {high})"
    )
