"""What more labels buy: how far the realised coverage may lie from the promised one."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import DASHED, STYLES, add_band, add_line, add_marks, error_bars, marker, new_figure
from core.conformal.split import coverage_band, label_shortage, labels_needed, threshold_rank
from core.text.display import count, percent

_PLACES = 100
_LEAST = 200


def coverage_by_labels(n: int, alpha: float) -> go.Figure:
    """Draw where the realised coverage of a threshold lies in 95 of 100 calibrations, by number of labels.

    ``n`` labels, at least 1, are marked; ``alpha`` lies between 0 and 1.
    """
    rows, needed, short = _data(n, alpha), labels_needed(alpha), label_shortage(n, alpha)
    most, promise = int(rows["n"].max()), percent(1 - alpha)
    own = rows[rows["n"] == n].iloc[0] if not short else None
    said = (
        short.rstrip(".")
        if own is None
        else f"with {count(n, 'label')} it lies between {percent(own['low'])} and {percent(own['high'])} in "
        f"95 of 100 calibrations; a finite threshold takes at least {count(needed, 'label')}"
    )
    figure = new_figure(
        f"Realised coverage against the number of calibration labels, 1 to {most:,}, {promise} promised: "
        f"{said}.",
        "Calibration labels (log scale)",
        "Realised coverage (%)",
    )
    mean, low, high = (100 * rows[name].to_numpy() for name in ("mean", "low", "high"))
    add_band(figure, "95 of 100 calibrations", rows["n"], low, high)
    add_line(figure, f"Promise ({promise})", [1, most], [100 * (1 - alpha)] * 2)
    figure.add_scatter(
        name="Mean",
        mode="lines",
        x=rows["n"],
        y=mean,
        line={"color": STYLES["Aligned"].color, "width": 2},
        customdata=[_said(row) for _, row in rows.iterrows()],
        hovertemplate="%{customdata}<extra></extra>",
    )
    floor = max(0.0, 10 * math.floor(min(float(low.min()), 95 - 100 * alpha) / 10))
    add_line(figure, f"Fewest labels ({needed:,})", [needed] * 2, [floor, 100], DASHED)
    if own is None:
        look = {**marker("Undefined", 14), "symbol": "x"}
        hover = short.replace("; ", ";<br>")
        add_marks(figure, f"n = {n:,}: nothing promised", [n], [floor], look, [hover], cliponaxis=False)
    else:
        at, ends = 100 * own["mean"], [[100 * own[end]] for end in ("low", "high")]
        bars = error_bars([at], *ends, STYLES["highlight"].color, 3)
        look = marker("highlight", 15)
        add_marks(figure, f"n = {n:,}", [n], [at], look, [_said(own)], cliponaxis=False, error_y=bars)
    ticks = [step * 10**power for power in range(8) for step in (1, 2, 5) if step * 10**power <= most]
    figure.update_xaxes(
        type="log",
        range=[-0.02, math.log10(most) + 0.02],
        tickvals=ticks,
        ticktext=[f"{t:,}" for t in ticks],
        tickangle=0,
    )
    figure.update_yaxes(range=[floor, 101])
    return figure


def _data(n: int, alpha: float) -> pd.DataFrame:
    """Return ``n, mean, low, high`` for numbers of labels with a finite threshold."""
    needed = labels_needed(alpha)
    most = max(_LEAST, 2 * n, 2 * needed)
    places = {needed, most, *np.geomspace(needed, most, _PLACES).round().astype(int).tolist()}
    rows = [
        (one, threshold_rank(one, alpha) / (one + 1), *coverage_band(one, alpha))
        for one in sorted(places | ({n} if n >= needed else set()))
    ]
    return pd.DataFrame(rows, columns=["n", "mean", "low", "high"])


def _said(row: pd.Series) -> str:
    return (
        f"{count(int(row['n']), 'label')}: {percent(row['mean'])} covered on average,<br>"
        f"{percent(row['low'])} to {percent(row['high'])} in 95 of 100 calibrations"
    )
