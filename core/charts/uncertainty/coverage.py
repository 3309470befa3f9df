"""The error rate when only the surest answers are given, by several estimators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Floats
from core.charts import theme
from core.charts.bins import thinned
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

    The two estimators with the best AUROC and the trivial baselines have a curve, the best with Wilson's 95 %
    interval of each point; the dotted line is random order. Marks are the incorrect answers of which the best
    estimator is surest, and lead to them. Empty where the estimators cannot be judged.
    """
    if analysis.not_judged is not None:
        return theme.empty_figure(analysis.not_judged)
    data = _data(analysis)
    listed = ", ".join(
        f"{curve.title} {percent(float(curve.risk[np.searchsorted(curve.coverage, 0.5)]))}"
        for curve in data.curves
    )
    alt = (
        f"Error rate among the surest half of {count(data.n, 'answer')}: {listed}; in random order, "
        f"{percent(data.error_rate)}."
    )
    figure = theme.new_figure(
        alt, "Share of questions answered, the surest first (%)", "Incorrect among them (%)", height=460
    )
    best, random = data.curves[0], 100 * data.error_rate
    band = 100 * best.coverage, 100 * best.low, 100 * best.high
    theme.add_band(figure, f"{best.title}, 95 % band", *band)
    for curve, (style, dash) in zip(data.curves, _LOOKS, strict=False):
        line = {"color": theme.STYLES[style].color, "dash": dash, "width": 3 if curve is best else 2}
        hover = [
            f"{curve.title}<br>The surest {percent(at)}: {percent(risk)} incorrect"
            for at, risk in zip(curve.coverage, curve.risk, strict=True)
        ]
        x, y = 100 * curve.coverage, 100 * curve.risk
        theme.add_marks(figure, curve.title, x, y, None, hover, mode="lines", line=line)
    theme.add_line(figure, f"Random order ({percent(data.error_rate)})", [0, 100], [random] * 2)
    wrong = best.wrong
    theme.add_marks(
        figure, "Incorrect, yet among the surest", 100 * wrong["coverage"], 100 * wrong["risk"],
        theme.marker("Divergent", 10),
        [
            f"{theme.safe_text(row.question)}<br>Incorrect, but among the surest {percent(row.coverage)}"
            for row in wrong.itertuples()
        ],
        wrong["query_id"].map(theme.question_door), cliponaxis=False,
    )  # fmt: skip
    figure.update_xaxes(range=[0, 101])
    top = max(*(float(curve.risk.max()) for curve in data.curves), float(best.high.max()))
    figure.update_yaxes(range=[-2, min(102, 100 * top + 5)])
    return figure


def _data(analysis: UncertaintyAnalysis) -> _Data:
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
