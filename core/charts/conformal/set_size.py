"""What a promise costs: how many answers a prediction set holds on average."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.conformal.shared import add_mean, add_setting, not_promised, splits_of
from core.charts.theme import DASHED, add_line, add_marks, empty_figure, marker, new_figure
from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import OF_SETS
from core.text.display import count, number, percent


class _Data(NamedTuple):
    alpha: float
    rows: pd.DataFrame  # of `Splits.to_frame`
    n_splits: int
    halves: str
    n: int
    largest: float
    own: float  # mean size of the run's own tested sets
    n_test: int
    reason: str


def set_size(analysis: ConformalAnalysis) -> go.Figure:
    """Draw the mean number of answers in a prediction set against 1 − α.

    The line is the mean over random splits of the labelled questions, within their middle 95 %; dotted where
    the threshold is infinite in some or all splits, so that a set is everything that was sampled (the upper
    line). The mark is the run's own test. Empty without samples or reference answers.
    """
    return _draw(_data(analysis))


def _data(analysis: ConformalAnalysis) -> _Data | str:
    """Return the curve, or why there is none."""
    splits = splits_of(analysis, OF_SETS)
    if isinstance(splits, str):
        return splits
    one, sets = analysis.coverages[OF_SETS], analysis.sets
    halves = f"{splits.n_calibration:,} calibrate, {splits.n_test:,} test"
    return _Data(
        analysis.alpha, splits.to_frame(), len(splits.coverage), halves, splits.n_calibration + splits.n_test,
        splits.largest, sets.mean_size if sets else math.nan, one.n_test, one.reason,
    )  # fmt: skip


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    figure = new_figure(_alt(data), "Promised share, 1 − α (%)", "Mean answers in a set")
    promised = 100 * (1 - data.rows["alpha"].to_numpy())
    add_mean(figure, f"Mean of {data.n_splits:,} splits", promised, data.rows, "size", _hover(data))
    ends = [float(promised.min()), float(promised.max())]
    add_line(figure, f"Everything sampled ({number(data.largest)})", ends, [data.largest] * 2, DASHED)
    top = 1.1 * max(data.largest, float(data.rows["size_high"].max()), np.nan_to_num(data.own), 0.5)
    add_setting(figure, data.alpha, 0, top)
    if not math.isnan(data.own):
        add_marks(
            figure,
            f"This run ({number(data.own)})",
            [100 * (1 - data.alpha)],
            [data.own],
            {**marker("highlight", 14), "symbol": "star-open" if data.reason else "star"},
            [
                f"This run: {number(data.own)} answers in a set on average<br>n = "
                f"{count(data.n_test, 'tested question')}"
                + (f"<br>{data.reason.replace(': ', ':<br>', 1)}" if data.reason else "")
            ],
            cliponaxis=False,
        )
    figure.update_xaxes(range=[ends[0] - 1, max(ends[1], 100 * (1 - data.alpha)) + 1])
    figure.update_yaxes(range=[0, top])
    return figure


def _hover(data: _Data) -> list[str]:
    said = []
    for row in data.rows.itertuples():
        lines = [
            f"{percent(1 - row.alpha)} promised, {data.halves}",
            f"{number(row.size)} answers in a set on average, of {number(data.largest)} sampled",
            f"Middle 95 % of the splits: {number(row.size_low)} to {number(row.size_high)}",
        ]
        if row.finite < 1:
            share = percent(1 - row.finite)
            lines.append(f"In {share} of the splits a set is everything sampled")
        said.append("<br>".join(lines))
    return said


def _alt(data: _Data) -> str:
    rows = data.rows
    nearest = rows.iloc[int(np.abs(rows["alpha"] - data.alpha).argmin())]
    dotted = not_promised(rows)
    return (
        f"Mean number of answers in a prediction set against 1 − α over {data.n_splits:,} random splits of "
        f"{count(data.n, 'question')}: {number(nearest['size'])} at {percent(1 - nearest['alpha'])} "
        f"promised, middle 95 % {number(nearest['size_low'])} to {number(nearest['size_high'])}; "
        f"everything sampled would be {number(data.largest)}{f'; dotted where {dotted}' if dotted else ''}."
    )
