"""F1@K of a run's answers against K, the number of supported claims that an answer should have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.claims.analysis import ClaimsAnalysis
from core.claims.rafe import DEFAULT_K
from core.conditions import where
from core.text.display import count, number

LEAST, MOST = 20, 100  # the curve ends between these values of K


def f1_at_k_chart(analysis: ClaimsAnalysis) -> go.Figure:
    """Draw the mean F1@K with its 95 % interval over the answers against K; empty without a verdict.

    A mark is at the usual K = 10. A point leads to the answers with fewer supported claims than its K.
    """
    curve = _data(analysis)
    if not len(curve):
        return theme.empty_figure("No answer has a relevant claim with a verdict, so F1@K is undefined.")
    first, last = curve.iloc[0], curve.iloc[-1]
    usual = curve[curve["k"] == DEFAULT_K]
    shown = [first, *(row for _, row in usual.iterrows()), last]
    values = ", ".join(f"{number(row['mean'])} at K = {int(row['k'])}" for row in shown)
    answers = count(int(last["n"]), "answer")
    alt = f"Mean F1@K over {answers}: {values}; {int(last['n_undefined']):,} undefined and left out."
    figure = theme.new_figure(alt, "K, supported claims expected per answer", "Mean F1@K")
    known = curve[curve["low"].notna() & curve["high"].notna()]
    if len(known):
        pale = theme.fade("well supported", 0.22)[0][1]
        theme.add_band(figure, "95 % interval", known["k"], known["low"], known["high"], pale)
    color = theme.STYLES["well supported"].color
    theme.add_marks(
        figure, f"Mean of {answers}", curve["k"], curve["mean"], {"color": color, "size": 5},
        [_hover(row) for row in curve.itertuples()], [_door(row) for row in curve.itertuples()],
        mode="lines+markers",  # a line alone cannot be selected
        line={"color": color, "width": 2.5},
    )  # fmt: skip
    if len(usual):
        figure.add_vline(x=DEFAULT_K, line=theme.BORDER)
        star = {**theme.marker("highlight", 13), "line": {"width": 1, "color": "white"}}
        value = float(usual["mean"].iloc[0])
        theme.add_marks(figure, f"F1@{DEFAULT_K} = {number(value)}", [DEFAULT_K], [value], star)
    top = int(last["k"])
    step = 5 if top <= 30 else 10 if top <= 60 else 20
    figure.update_xaxes(range=[0.5, top + 0.5], tickvals=[1, *range(step, top + 1, step)])
    figure.update_yaxes(range=[0, 1.05], tick0=0, dtick=0.2, tickformat=".1f")
    return figure


def _data(analysis: ClaimsAnalysis) -> pd.DataFrame:
    """Return the curve where it has a mean, with the number of answers that fall short of each K."""
    curve = analysis.f1_curve(ks_of(analysis))
    supported = analysis.queries["n_supported"][analysis.queries["grounding"].notna()]
    curve["n_short"] = [int((supported < k).sum()) for k in curve["k"]]
    return curve[curve["mean"].notna()]


def ks_of(analysis: ClaimsAnalysis) -> tuple[int, ...]:
    """Return 1 to twice the largest number of claims of an answer, at least 20 and at most 100."""
    claims = analysis.queries["n_claims"]
    largest = int(claims.max()) if len(claims) and claims.notna().any() else 0
    return tuple(range(1, int(np.clip(2 * largest, LEAST, MOST)) + 1))


def _hover(row: Any) -> str:
    interval = "" if np.isnan(row.low) else f"95 %: {number(row.low)} to {number(row.high)}<br>"
    return (
        f"F1@{row.k:g}: {number(row.mean, '{:.3f}')}<br>{interval}{count(row.n, 'answer')}, "
        f"{row.n_undefined:,} left out<br>Fewer than {count(int(row.k), 'supported claim')}: {row.n_short:,}"
    )


def _door(row: Any) -> str:
    short = where("claims", "queries", n_supported=(None, row.k), grounding=(None, None))
    return theme.where_door(short) if row.n_short else ""
