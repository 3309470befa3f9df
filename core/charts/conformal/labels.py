"""What more labels buy: how far the realised coverage may lie from the promised one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.charts.theme import (
    DASHED,
    STYLES,
    Floats,
    add_band,
    add_line,
    add_marks,
    error_bars,
    marker,
    new_figure,
)
from core.conformal.coverage import coverage_band
from core.conformal.split import label_shortage, labels_needed, threshold_rank
from core.text.display import count, percent

_PLACES = 100
_LEAST = 200


class _Data(NamedTuple):
    labels: list[int]  # those with a finite threshold
    mean: Floats
    low: Floats
    high: Floats
    needed: int
    most: int
    n: int
    own: (
        tuple[float, float, float] | None
    )  # mean, low and high of the chosen n; None where nothing is promised
    alpha: float


def coverage_by_labels(n: int, alpha: float) -> go.Figure:
    """Draw where the realised coverage of a threshold lies in 95 of 100 calibrations, by number of labels.

    Parameters
    ----------
    n : int
        Calibration labels, at least 1: the mark.
    alpha : float
        Between 0 and 1.
    """
    return _draw(_data(n, alpha))


def _data(n: int, alpha: float) -> _Data:
    needed = labels_needed(alpha)
    most = max(_LEAST, 2 * n, 2 * needed)
    places = {needed, most, *np.geomspace(needed, most, _PLACES).round().astype(int).tolist()}
    labels = sorted(places | ({n} if n >= needed else set()))
    bands = np.array([(_mean(one, alpha), *coverage_band(one, alpha)) for one in labels])
    own = (_mean(n, alpha), *coverage_band(n, alpha)) if n >= needed else None
    mean, low, high = bands.T
    return _Data(labels, mean, low, high, needed, most, n, own, alpha)


def _mean(n: int, alpha: float) -> float:
    return threshold_rank(n, alpha) / (n + 1)


def _draw(data: _Data) -> go.Figure:
    promise = percent(1 - data.alpha)
    figure = new_figure(_alt(data), "Calibration labels (log scale)", "Realised coverage (%)")
    add_band(figure, "95 of 100 calibrations", data.labels, 100 * data.low, 100 * data.high)
    add_line(figure, f"Promise ({promise})", [1, data.most], [100 * (1 - data.alpha)] * 2)
    figure.add_scatter(
        name="Mean",
        mode="lines",
        x=data.labels,
        y=100 * data.mean,
        line={"color": STYLES["Aligned"].color, "width": 2},
        customdata=[_said(*one) for one in zip(data.labels, data.mean, data.low, data.high, strict=True)],
        hovertemplate="%{customdata}<extra></extra>",
    )
    floor = max(0.0, 10 * math.floor(10 * min(float(data.low.min()), 0.95 - data.alpha)))
    add_line(figure, f"Fewest labels ({data.needed:,})", [data.needed] * 2, [floor, 100], DASHED)
    _add_chosen(figure, data, floor)
    ticks = [step * 10**power for power in range(8) for step in (1, 2, 5) if step * 10**power <= data.most]
    figure.update_xaxes(
        type="log",
        range=[-0.02, math.log10(data.most) + 0.02],
        tickvals=ticks,
        ticktext=[f"{t:,}" for t in ticks],
        tickangle=0,
    )
    figure.update_yaxes(range=[floor, 101])
    return figure


def _add_chosen(figure: go.Figure, data: _Data, floor: float) -> None:
    options: dict[str, Any] = {}
    if data.own is None:
        look, y = {**marker("Undefined", 14), "symbol": "x"}, floor
        hover = label_shortage(data.n, data.alpha).replace("; ", ";<br>")
    else:
        mean, low, high = (100 * one for one in data.own)
        look, y = marker("highlight", 15), mean
        color = STYLES["highlight"].color
        options = {"error_y": error_bars([mean], [low], [high], color, 3)}
        hover = _said(data.n, *data.own)
    name = f"n = {data.n:,}" + (": nothing promised" if data.own is None else "")
    add_marks(figure, name, [data.n], [y], look, [hover], cliponaxis=False, **options)


def _said(n: int, mean: float, low: float, high: float) -> str:
    return (
        f"{count(n, 'label')}: {percent(mean)} covered on average,<br>"
        f"{percent(low)} to {percent(high)} in 95 of 100 calibrations"
    )


def _alt(data: _Data) -> str:
    if data.own is None:
        said = label_shortage(data.n, data.alpha).rstrip(".")
    else:
        _, low, high = map(percent, data.own)
        said = (
            f"with {count(data.n, 'label')} it lies between {low} and {high} in 95 of 100 calibrations; a "
            f"finite threshold takes at least {count(data.needed, 'label')}"
        )
    return (
        f"Realised coverage against the number of calibration labels, 1 to {data.most:,}, "
        f"{percent(1 - data.alpha)} promised: {said}."
    )
