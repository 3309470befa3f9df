"""Whether a promise holds: the share covered over many splits of the labels, beside the exact band."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.conformal.shared import add_mean, add_setting, not_promised, splits_of
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
from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import FLAGGED, METRICS, NEW, OF_CORRECT, OF_DISTANCE, OF_SCORE, OF_SETS, TEST
from core.conformal.promises import Coverage
from core.text.display import count, percent


class _Data(NamedTuple):
    one: Coverage
    alpha: float
    rows: pd.DataFrame  # of `Splits.to_frame`
    n_splits: int
    halves: str
    door: str  # to the tested questions that the run's own threshold misses


def coverage_by_alpha(analysis: ConformalAnalysis, name: str) -> go.Figure:
    """Draw the share covered against the promised one, 1 − α.

    The line is the mean over random splits of the labelled cases, within their middle 95 %; grey is the
    exact band of one split, for scores without ties. Dotted where the threshold is infinite in some or all
    splits: everything is covered then, and nothing promised. The mark is the run's own calibration and test;
    it leads to the tested questions that are not covered. Empty where there is nothing to split.
    """
    return _draw(_data(analysis, name))


def _data(analysis: ConformalAnalysis, name: str) -> _Data | str:
    """Return the curve, or why there is none."""
    splits = splits_of(analysis, name)
    if isinstance(splits, str):
        return splits
    one = analysis.coverages[name]
    halves = f"{splits.n_calibration:,} calibrate, {splits.n_test:,} test"
    missed = _missed(analysis, one) if one.n_covered < one.n_test else ""
    return _Data(one, analysis.alpha, splits.to_frame(), len(splits.coverage), halves, missed)


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


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    figure = new_figure(_alt(data), "Promised share, 1 − α (%)", "Tested cases covered (%)", height=440)
    rows = data.rows
    promised = 100 * (1 - rows["alpha"].to_numpy())
    kept = (rows["finite"] == 1).to_numpy()
    if kept.any():
        low, high = (100 * rows.loc[kept, end].to_numpy() for end in ("low", "high"))
        add_band(figure, "Exact 95 % band", promised[kept], low, high)
    shares = rows.copy()
    shares[["mean", "mean_low", "mean_high"]] *= 100
    add_mean(figure, f"Mean of {data.n_splits:,} splits", promised, shares, "mean", _hover(data))
    ends = [float(promised.min()), float(promised.max())]
    add_line(figure, "Promise", ends, ends, DASHED)
    lowest = min(ends[0], float(shares["mean_low"].min()), *(100 * rows.loc[kept, "low"]))
    one = data.one
    if one.n_test:
        lowest = min(lowest, 100 * one.n_covered / one.n_test)
    floor = max(0.0, 10 * math.floor(lowest / 10))
    add_setting(figure, data.alpha, floor, 100)
    if one.n_test:
        _add_own(figure, data)
    figure.update_xaxes(range=[ends[0] - 1, max(ends[1], 100 * (1 - data.alpha)) + 1])
    figure.update_yaxes(range=[floor - 2, 102])
    return figure


def _hover(data: _Data) -> list[str]:
    said = []
    for row in data.rows.itertuples():
        lines = [
            f"{percent(1 - row.alpha)} promised, {data.halves}",
            f"Mean covered {percent(row.mean)}",
            f"Middle 95 % of the splits: {percent(row.mean_low)} to {percent(row.mean_high)}",
        ]
        if row.finite == 1:
            lines.append(f"Exact 95 % band: {percent(row.low)} to {percent(row.high)}")
        elif row.finite:
            lines.append(f"Threshold finite in {percent(row.finite)} of the splits only")
        else:
            lines.append("Nothing is promised: the threshold is infinite")
        said.append("<br>".join(lines))
    return said


def _add_own(figure: go.Figure, data: _Data) -> None:
    one = data.one
    missed, share = one.n_test - one.n_covered, one.n_covered / one.n_test
    lines = [
        f"This run: {one.n_covered:,} of {one.n_test:,} tested covered ({percent(share)})",
        one.reason.replace(": ", ":<br>", 1)
        or f"{percent(1 - data.alpha)} promised, {percent(one.band[0])} to {percent(one.band[1])} expected",
        f"{count(missed, 'tested question')} not covered" if missed else "",
    ]
    style = STYLES["highlight"]
    figure.add_scatter(
        name=f"This run ({one.n_covered:,} of {one.n_test:,})",
        mode="markers",
        x=[100 * (1 - data.alpha)],
        y=[100 * share],
        # Open where nothing is promised.
        marker={
            "color": style.color,
            "symbol": style.symbol + ("-open" if one.reason else ""),
            "size": 15,
            "line": {"width": 2, "color": style.color},
        },
        cliponaxis=False,
        **doors(figure, [data.door], ["<br>".join(filter(None, lines))]),
    )


def _alt(data: _Data) -> str:
    one, rows = data.one, data.rows
    nearest = rows.iloc[int(np.abs(rows["alpha"] - data.alpha).argmin())]
    band = (
        f", exact band without ties {percent(nearest['low'])} to {percent(nearest['high'])}"
        if nearest["finite"] == 1
        else ""
    )
    own = f"; this run's own test: {one.n_covered:,} of {one.n_test:,}" if one.n_test else ""
    dotted = not_promised(rows)
    return (
        f"{METRICS[one.name].title}, share covered against 1 − α over {data.n_splits:,} random splits "
        f"({data.halves}), n = {count(one.n_calibration + one.n_test, 'case')}: at "
        f"{percent(1 - nearest['alpha'])} promised, {percent(nearest['mean'])} covered on average{band}{own}"
        f"{f'; dotted where {dotted}' if dotted else ''}."
    )
