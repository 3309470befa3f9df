"""The error rate when only the surest answers are given, by several estimators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Floats
from core.charts.bins import thinned
from core.charts.theme import (
    STYLES,
    add_band,
    add_line,
    doors,
    empty_figure,
    new_figure,
    question_door,
    safe_text,
)
from core.text.display import count, percent
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.quality import risk_coverage_band

_BEST = 2
_LOOKS = (  # style, dash: the best, the second, and the trivial baselines
    ("Aligned", "solid"),
    ("influence", "dash"),
    ("highlight", "dot"),
    ("retrieval", "dashdot"),
)
_WRONG = 5  # incorrect answers with a mark


class _Curve(NamedTuple):
    title: str
    coverage: Floats
    risk: Floats
    low: Floats
    high: Floats  # of the band, of the best alone
    wrong: pd.DataFrame  # the incorrect answers it is surest of: coverage, risk, query_id, question


class _Data(NamedTuple):
    curves: tuple[_Curve, ...]
    error_rate: float
    n: int


def risk_coverage(analysis: UncertaintyAnalysis) -> go.Figure:
    """Draw the error rate among the surest answers, against the share of questions that these are.

    The two estimators with the best AUROC and the trivial baselines have a curve, the best with its 95 %
    bootstrap band; the dotted line is random order. Marks are the incorrect answers of which the best
    estimator is surest, and lead to them. Empty where the estimators cannot be judged.
    """
    return _draw(_data(analysis))


def _data(analysis: UncertaintyAnalysis) -> _Data | str:
    """Return the curves, or why there are none."""
    if analysis.not_judged is not None:
        return analysis.not_judged
    board = analysis.leaderboard
    board = board[board["auroc"].notna()]
    names = [
        *board.loc[~board["is_baseline"].astype(bool), "name"].head(_BEST),
        *board.loc[board["is_baseline"].astype(bool), "name"],
    ]
    correct = analysis.queries["correct"].to_numpy(dtype=np.float64, na_value=np.nan)
    curves = tuple(_curve(analysis, name, correct) for name in names)
    # Random order of the answers that the best curve ranks: others may lack samples.
    known = correct[~np.isnan(correct + analysis.scores[names[0]].uncertainty)]
    return _Data(curves, float(1 - known.mean()), int(known.size))


def _curve(analysis: UncertaintyAnalysis, name: str, correct: Floats) -> _Curve:
    scores = analysis.scores[name]
    uncertainty = scores.uncertainty
    coverage, risk, low, high = risk_coverage_band(uncertainty, correct)
    rows = np.flatnonzero(~np.isnan(uncertainty + correct))
    order = rows[np.argsort(uncertainty[rows], kind="stable")]
    at = np.flatnonzero(correct[order] == 0)[:_WRONG]
    wrong = analysis.queries.iloc[order[at]][["query_id", "question"]].assign(
        coverage=coverage[at], risk=risk[at]
    )
    kept = thinned(len(coverage))
    return _Curve(scores.estimator.title, coverage[kept], risk[kept], low[kept], high[kept], wrong)


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    listed = ", ".join(f"{curve.title} {percent(_at_half(curve))}" for curve in data.curves)
    alt = (
        f"Error rate among the surest half of {count(data.n, 'answer')}: {listed}; in random order, "
        f"{percent(data.error_rate)}."
    )
    figure = new_figure(
        alt, "Share of questions answered, the surest first (%)", "Incorrect among them (%)", height=460
    )
    best = data.curves[0]
    add_band(figure, f"{best.title}, 95 % band", 100 * best.coverage, 100 * best.low, 100 * best.high)
    for curve, (style, dash) in zip(data.curves, _LOOKS, strict=False):
        figure.add_scatter(
            name=curve.title,
            mode="lines",
            x=100 * curve.coverage,
            y=100 * curve.risk,
            line={"color": STYLES[style].color, "dash": dash, "width": 3 if curve is best else 2},
            customdata=[
                f"{curve.title}<br>The surest {percent(at)}: {percent(risk)} incorrect"
                for at, risk in zip(curve.coverage, curve.risk, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    add_line(figure, f"Random order ({percent(data.error_rate)})", [0, 100], [100 * data.error_rate] * 2)
    _add_wrong(figure, best)
    figure.update_xaxes(range=[0, 101])
    top = max(*(float(curve.risk.max()) for curve in data.curves), float(best.high.max()))
    figure.update_yaxes(range=[-2, min(102, 100 * top + 5)])
    return figure


def _add_wrong(figure: go.Figure, best: _Curve) -> None:
    wrong = best.wrong
    figure.add_scatter(
        name="Incorrect, yet among the surest",
        mode="markers",
        x=100 * wrong["coverage"],
        y=100 * wrong["risk"],
        marker={"color": STYLES["Divergent"].color, "symbol": "diamond", "size": 10},
        cliponaxis=False,
        **doors(
            figure,
            [question_door(query_id) for query_id in wrong["query_id"]],
            [
                f"{safe_text(row.question)}<br>Incorrect, but among the surest {percent(row.coverage)}"
                for row in wrong.itertuples()
            ],
        ),
    )


def _at_half(curve: _Curve) -> float:
    return float(curve.risk[np.searchsorted(curve.coverage, 0.5)])
