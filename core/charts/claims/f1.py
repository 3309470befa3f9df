"""F1@K of a run's answers against K, the number of supported claims that an answer should have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import (
    BORDER,
    STYLES,
    add_band,
    add_marks,
    doors,
    empty_figure,
    fade,
    marker,
    new_figure,
    where_door,
)
from core.claims.analysis import ClaimsAnalysis
from core.claims.rafe import DEFAULT_K
from core.conditions import where
from core.text.display import count, number

LEAST, MOST = 20, 100  # the curve ends between these values of K


def f1_at_k_chart(analysis: ClaimsAnalysis) -> go.Figure:
    """Draw the mean F1@K over the answers against K, the number of supported claims an answer should have.

    The mean has its 95 % interval, and a mark at the usual K = 10. A point leads to the answers with fewer
    supported claims than its K. Empty when no answer has a claim with a verdict.
    """
    curve = analysis.f1_curve(ks_of(analysis))
    supported = analysis.queries["n_supported"][analysis.queries["grounding"].notna()]
    curve["n_short"] = [int((supported < k).sum()) for k in curve["k"]]
    left_out = int(curve["n_undefined"].max()) if len(curve) else 0
    return _draw(curve[curve["mean"].notna()], left_out)


def ks_of(analysis: ClaimsAnalysis) -> tuple[int, ...]:
    """Return 1 to twice the largest number of claims of an answer, at least 20 and at most 100."""
    claims = analysis.queries["n_claims"]
    largest = int(claims.max()) if len(claims) and claims.notna().any() else 0
    return tuple(range(1, int(np.clip(2 * largest, LEAST, MOST)) + 1))


def _draw(curve: pd.DataFrame, n_undefined: int) -> go.Figure:
    if not len(curve):
        return empty_figure("No answer has a relevant claim with a verdict, so F1@K is undefined.")
    first, last = curve.iloc[0], curve.iloc[-1]
    usual = curve[curve["k"] == DEFAULT_K]
    shown = [first, *(row for _, row in usual.iterrows()), last]
    values = ", ".join(f"{number(row['mean'])} at K = {int(row['k'])}" for row in shown)
    n = int(last["n"])
    alt = f"Mean F1@K over {count(n, 'answer')}: {values}; {n_undefined:,} undefined and left out."
    figure = new_figure(alt, "K, supported claims expected per answer", "Mean F1@K")
    known = curve[curve["low"].notna() & curve["high"].notna()]
    if len(known):
        pale = fade("well supported", 0.22)[0][1]
        add_band(figure, "95 % interval", known["k"], known["low"], known["high"], pale)
    color = STYLES["well supported"].color
    figure.add_scatter(
        name=f"Mean of {count(n, 'answer')}",
        mode="lines+markers",  # a line alone cannot be selected
        x=curve["k"],
        y=curve["mean"],
        line={"color": color, "width": 2.5},
        marker={"color": color, "size": 5},
        **doors(
            figure,
            [_door(row) for row in curve.itertuples()],
            [
                f"F1@{row.k:g}: {number(row.mean, '{:.3f}')}<br>"
                + (f"95 %: {number(row.low)} to {number(row.high)}<br>" if not np.isnan(row.low) else "")
                + f"{count(row.n, 'answer')}, {row.n_undefined:,} left out<br>"
                f"Fewer than {count(int(row.k), 'supported claim')}: {row.n_short:,}"
                for row in curve.itertuples()
            ],
        ),
    )
    _add_usual(figure, usual)
    top = float(last["k"])
    figure.update_xaxes(range=[0.5, top + 0.5], tickvals=_ticks(int(top)))
    figure.update_yaxes(range=[0, 1.05], tick0=0, dtick=0.2, tickformat=".1f")
    return figure


def _door(row: Any) -> str:
    short = where("claims", "queries", n_supported=(None, row.k), grounding=(None, None))
    return where_door(short) if row.n_short else ""


def _add_usual(figure: go.Figure, usual: pd.DataFrame) -> None:
    if not len(usual):
        return
    value = float(usual["mean"].iloc[0])
    figure.add_vline(x=DEFAULT_K, line=BORDER)
    star = {**marker("highlight", 13), "line": {"width": 1, "color": "white"}}
    add_marks(figure, f"F1@{DEFAULT_K} = {number(value)}", [DEFAULT_K], [value], star)


def _ticks(top: int) -> list[int]:
    step = 5 if top <= 30 else 10 if top <= 60 else 20
    return [1, *range(step, top + 1, step)]
