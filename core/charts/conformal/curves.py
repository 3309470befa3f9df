"""Whether a promise holds, and what it costs: coverage and set size against 1 − α over many splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

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
    where_door,
)
from core.conditions import where
from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import (
    FINDINGS,
    FLAGGED,
    METRICS,
    NEW,
    OF_CORRECT,
    OF_DISTANCE,
    OF_SCORE,
    OF_SETS,
    REASONS,
    TEST,
)
from core.conformal.promises import Coverage
from core.text.display import count, number, percent

_PALE = "rgba(0, 114, 178, 0.20)"  # of the colour of "Aligned"
_PROMISED = "Promised share, 1 − α (%)"


class _Data(NamedTuple):
    one: Coverage
    alpha: float
    rows: pd.DataFrame  # of `Splits.to_frame`
    promised: Floats  # in percent, of each row
    n_splits: int
    halves: str
    largest: float


def coverage_by_alpha(analysis: ConformalAnalysis, name: str) -> go.Figure:
    """Draw the share covered against the promised one, 1 − α; empty where there is nothing to split.

    The line is the mean over random splits, within their middle 95 %; grey is the exact band of one split,
    for scores without ties. Dotted where some thresholds are infinite: everything is covered, and nothing
    promised. The mark is the run's own test; it leads to the questions that are not covered.
    """
    data = _data(analysis, name)
    if isinstance(data, str):
        return empty_figure(data)
    one, rows, ends = data.one, data.rows, _ends(data)
    figure = new_figure(_coverage_alt(data), _PROMISED, "Tested cases covered (%)", height=440)
    kept = (rows["finite"] == 1).to_numpy()
    low, high = (100 * rows.loc[kept, end].to_numpy() for end in ("low", "high"))
    if kept.any():
        add_band(figure, "Exact 95 % band", data.promised[kept], low, high)
    _add_mean(figure, data, "mean", 100, [_coverage_hover(data, row) for _, row in rows.iterrows()])
    add_line(figure, "Promise", ends, ends, DASHED)
    share = one.n_covered / one.n_test if one.n_test else 1.0
    lowest = min(ends[0], 100 * float(rows["mean_low"].min()), 100 * share, *low)
    floor = max(0.0, 10 * math.floor(lowest / 10))
    if one.n_test:
        missed = one.n_test - one.n_covered
        covered = f"{one.n_covered:,} of {one.n_test:,}"
        expected = f"{percent(one.band[0])} to {percent(one.band[1])} expected"
        lines = [
            f"This run: {covered} tested covered ({percent(share)})",
            "" if one.reason else f"{percent(1 - data.alpha)} promised, {expected}",
            f"{count(missed, 'tested question')} not covered" if missed else "",
        ]
        door = _missed(analysis, one) if missed else ""
        _add_own(figure, data, f"This run ({covered})", 100 * share, lines, [door])
    _add_setting(figure, data, floor, 100)
    figure.update_yaxes(range=[floor - 2, 102])
    return figure


def set_size(analysis: ConformalAnalysis) -> go.Figure:
    """Draw the mean number of answers in a prediction set against 1 − α; empty without samples or references.

    As `coverage_by_alpha`; the upper line is everything that was sampled.
    """
    data = _data(analysis, OF_SETS)
    if isinstance(data, str):
        return empty_figure(data)
    figure = new_figure(_size_alt(data), _PROMISED, "Mean answers in a set")
    _add_mean(figure, data, "size", 1, [_size_hover(data, row) for _, row in data.rows.iterrows()])
    add_line(figure, f"Everything sampled ({number(data.largest)})", _ends(data), [data.largest] * 2, DASHED)
    own = analysis.sets.mean_size if analysis.sets else math.nan
    top = 1.1 * max(data.largest, float(data.rows["size_high"].max()), np.nan_to_num(own), 0.5)
    if not math.isnan(own):
        lines = [
            f"This run: {number(own)} answers in a set on average",
            f"n = {count(data.one.n_test, 'tested question')}",
        ]
        _add_own(figure, data, f"This run ({number(own)})", own, lines)
    _add_setting(figure, data, 0, top)
    figure.update_yaxes(range=[0, top])
    return figure


def void(analysis: ConformalAnalysis) -> str:
    """Return why nothing is promised of the run at all; "" where something may be."""
    if not analysis.calibrated:
        return REASONS["not_calibrated"].meaning
    return FINDINGS["stale_calibration"].meaning if analysis.stale else ""


def _data(analysis: ConformalAnalysis, name: str) -> _Data | str:
    """Return the curve of a promise over repeated splits, or why there is none."""
    if why := void(analysis):
        return why
    one = analysis.coverages.get(name)
    if one is None:
        return f"Undefined because {METRICS[name].undefined_when}."
    splits = one.splits
    if splits is None:
        return "Fewer than two labelled cases of the run itself: nothing can be split."
    rows = splits.to_frame()
    promised = 100 * (1 - rows["alpha"].to_numpy())
    halves = f"{splits.n_calibration:,} calibrate, {splits.n_test:,} test"
    return _Data(one, analysis.alpha, rows, promised, len(splits.coverage), halves, splits.largest)


def _missed(analysis: ConformalAnalysis, one: Coverage) -> str:
    """Return the door to the tested questions that the threshold does not cover; "" where none is exact."""
    if one.name == OF_SCORE and not analysis.drift.n and (analysis.queries["role"] == NEW).any():
        return ""
    beyond = (math.nextafter(one.threshold, math.inf), None)
    asked: dict[str, dict[str, object]] = {
        OF_CORRECT: {"role": TEST, "correct": True, "verdict": FLAGGED},
        OF_DISTANCE: {"role": TEST, "distance": beyond},
        # Every question that does not calibrate has a place in the drift test, where there is one.
        OF_SCORE: {"score": beyond, **({"drift_p": (None, None)} if analysis.drift.n else {"role": TEST})},
        OF_SETS: {"role": TEST, "set_covers": False},
    }
    return where_door(where("conformal", "queries", **asked[one.name]))


def _ends(data: _Data) -> list[float]:
    return [float(data.promised.min()), float(data.promised.max())]


def _add_mean(figure: go.Figure, data: _Data, name: str, scale: float, hover: Sequence[str]) -> None:
    """Add the mean of the splits with their middle 95 %; dotted where a threshold may be infinite."""
    rows, promised = data.rows, data.promised
    mean, low, high = (scale * rows[f"{name}{end}"].to_numpy() for end in ("", "_low", "_high"))
    add_band(figure, "Middle 95 % of the splits", promised, low, high, _PALE)
    # α rises along the rows, and with it ever more thresholds are finite; the dotted part meets the other.
    n_open = int((rows["finite"] < 1).sum())
    never = (rows["finite"].iloc[:n_open] == 0).all()
    parts = (
        (f"Mean of {data.n_splits:,} splits", "solid", slice(n_open, None), n_open < len(rows)),
        ("Nothing promised" if never else "Not always promised", "dot", slice(n_open + 1), n_open > 0),
    )
    for text, dash, part, there in parts:
        if there:
            figure.add_scatter(
                name=text,
                mode="lines",
                x=promised[part],
                y=mean[part],
                line={"color": STYLES["Aligned"].color, "width": 3, "dash": dash},
                customdata=hover[part],
                hovertemplate="%{customdata}<extra></extra>",
            )


def _add_own(
    figure: go.Figure, data: _Data, name: str, y: float, lines: Sequence[str], doors: Sequence[str] = ()
) -> None:
    """Mark the run's own test; open where nothing is promised."""
    reason = data.one.reason
    look = {**marker("highlight", 15), "symbol": "star-open" if reason else "star"}
    look["line"] = {"width": 2, "color": look["color"]}
    hover = "<br>".join(filter(None, [*lines, reason.replace(": ", ":<br>", 1)]))
    add_marks(figure, name, [100 * (1 - data.alpha)], [y], look, [hover], doors, cliponaxis=False)


def _add_setting(figure: go.Figure, data: _Data, low: float, high: float) -> None:
    """Mark 1 − α of the setting from ``low`` to ``high`` on the y axis, and fit the x axis to it."""
    at, ends = 100 * (1 - data.alpha), _ends(data)
    add_line(figure, f"Setting: 1 − α = {percent(1 - data.alpha)}", [at, at], [low, high])
    figure.update_xaxes(range=[ends[0] - 1, max(ends[1], at) + 1])


def _coverage_hover(data: _Data, row: pd.Series) -> str:
    lines = [
        f"{percent(1 - row['alpha'])} promised, {data.halves}",
        f"Mean covered {percent(row['mean'])}",
        f"Middle 95 % of the splits: {percent(row['mean_low'])} to {percent(row['mean_high'])}",
        f"Exact 95 % band: {percent(row['low'])} to {percent(row['high'])}"
        if row["finite"] == 1
        else f"Threshold finite in {percent(row['finite'])} of the splits only"
        if row["finite"]
        else "Nothing is promised: the threshold is infinite",
    ]
    return "<br>".join(lines)


def _size_hover(data: _Data, row: pd.Series) -> str:
    lines = [
        f"{percent(1 - row['alpha'])} promised, {data.halves}",
        f"{number(row['size'])} answers in a set on average, of {number(data.largest)} sampled",
        f"Middle 95 % of the splits: {number(row['size_low'])} to {number(row['size_high'])}",
    ]
    if row["finite"] < 1:
        lines.append(f"In {percent(1 - row['finite'])} of the splits a set is everything sampled")
    return "<br>".join(lines)


def _nearest(data: _Data) -> pd.Series:
    return data.rows.iloc[int(np.abs(data.rows["alpha"] - data.alpha).argmin())]


def _coverage_alt(data: _Data) -> str:
    one, nearest = data.one, _nearest(data)
    band = (
        f", exact band without ties {percent(nearest['low'])} to {percent(nearest['high'])}"
        if nearest["finite"] == 1
        else ""
    )
    own = f"; this run's own test: {one.n_covered:,} of {one.n_test:,}" if one.n_test else ""
    return (
        f"{METRICS[one.name].title}, share covered against 1 − α over {data.n_splits:,} random splits "
        f"({data.halves}), n = {count(one.n_calibration + one.n_test, 'case')}: at "
        f"{percent(1 - nearest['alpha'])} promised, {percent(nearest['mean'])} covered on average{band}{own}"
        f"{_dotted(data.rows)}."
    )


def _size_alt(data: _Data) -> str:
    nearest, one = _nearest(data), data.one
    return (
        f"Mean number of answers in a prediction set against 1 − α over {data.n_splits:,} random splits of "
        f"{count(one.n_calibration + one.n_test, 'question')}: {number(nearest['size'])} at "
        f"{percent(1 - nearest['alpha'])} promised, middle 95 % {number(nearest['size_low'])} to "
        f"{number(nearest['size_high'])}; everything sampled would be {number(data.largest)}"
        f"{_dotted(data.rows)}."
    )


def _dotted(rows: pd.DataFrame) -> str:
    """Say from where on nothing, or not always something, is promised; "" where it always is."""
    finite = rows["finite"]
    never, sometimes = rows.loc[finite == 0, "alpha"], rows.loc[(finite > 0) & (finite < 1), "alpha"]
    said = []
    if len(never) == len(rows):
        said.append("nothing is promised at any 1 − α")
    elif len(never):
        said.append(f"nothing is promised from {percent(1 - never.max())} on")
    if len(sometimes):
        said.append(f"from {percent(1 - sometimes.max())} on the threshold is infinite in some of the splits")
    return f"; dotted where {'; '.join(said)}" if said else ""
