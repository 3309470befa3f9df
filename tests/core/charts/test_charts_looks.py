"""Axes, sizes of marks and lines, and heights of the figures, of runs so small that each is worked out by hand."""

from datetime import UTC, datetime
from functools import cache

import numpy as np
import pandas as pd
import pytest

from core.charts import attribution, claims, confidence, conformal, influence, losses, uncertainty, validation
from core.charts.compare import compare_figure
from core.charts.likelihood import answer_against_reference
from core.charts.retrieval_quality import retrieval_quality_chart
from core.charts.signals import correlation_heatmap, signal_histogram
from core.charts.trend import trend_figure
from core.conformal.promises import Calibration
from core.influence import analyse, compare_reported
from core.report.signals import signal_agreement
from core.report.trend import Point, Trend
from core.retrieval_quality.analysis import retrieval_quality
from core.signals import Signal
from core.socket import QuestionColumn
from core.validation.metrics import daily
from tests.core.charts.attribution_runs import attribution_of
from tests.core.charts.chart_claims import claims_analysis, one_answer
from tests.core.charts.chart_confidence import scored
from tests.core.charts.chart_conformal import NEW, calibrated
from tests.core.charts.chart_runs import make_run
from tests.core.charts.chart_samples import sampled
from tests.core.charts.chart_validation import validated
from tests.core.charts.losses_runs import losses_of
from tests.core.likelihood.likelihood_runs import analysed_run, scored_run
from tests.core.report.signal_runs import diagnosis_of
from tests.core.validation.validation_runs import CASES, run_of


@cache
def ranked():
    """Two questions whose passages are used in the order of retrieval, and two in the opposite one."""
    up, down = [0.6, 0.5, 0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    run = make_run([up, up, down, down], query_reported_rho=[0.9] * 4, is_gold=[True] + [False] * 23)
    return run, analyse(run)


def longer():
    """One question of twelve passages, used in the opposite order."""
    return analyse(make_run([[i / 20 for i in range(12)]]))


@cache
def answered():
    samples = [["a b c", "d e f", "g h i", "a b c"], ["yes"] * 4, ["no"] * 4, ["a", "b", "c", "d"]]
    return sampled(samples, references=["a b c", "yes", "x", "y"]).labelled(
        grounding=pd.Series([0.0, 1.0, 1.0, 0.0])
    )


@cache
def promised():
    rows = [(i % 2 == 0, i / 40, float(i < 30)) for i in range(40)]
    return calibrated(rows, meanings=[[True, True, False, i < 38] for i in range(40)])


def streamed():
    store = Calibration(np.linspace(0, 1, 40), np.ones(40), [None] * 40)
    return calibrated([(NEW, i / 5, None) for i in range(5)], store=store, origin="a store")


@cache
def attributed():
    return attribution_of(place=True, shapley=True)[1]


@cache
def lost():
    return losses_of()[1]


@cache
def checked():
    return validated(run_of({"fine": CASES["fine"], "sure": CASES["sure"]}))


def day():
    now = datetime(2026, 11, 23, tzinfo=UTC)
    return validation.pass_rate_by_day(daily(checked().observations(now), now, 7))


def compared():
    columns = ["query_id", "question", "a", "b", "difference", "change"]
    rows = [("q1", "One?", 0.0, 1.0, 1.0, "better"), ("q2", "Two?", 0.5, 0.25, -0.25, "worse")]
    return compare_figure(
        pd.DataFrame([*rows, ("q3", "Three?", 0.5, 0.5, 0.0, "same")], columns=columns),
        QuestionColumn("rho", "ρ"),
    )


def moved():
    points = [
        Point(f"r{i}", f"Run {i}", f"2026-01-0{i}", 3, 4, (("k", "1", "2"),) * (i - 1)) for i in (1, 2)
    ]
    return trend_figure(Trend("d", 4, tuple(points)), str)


MATRIX = [[0.9, 0.2, None], [0.1, 0.1, 0.2]]
FIGURES = {
    "rho_histogram": lambda: influence.rho_histogram(ranked()[1]),
    "entropy_dominance": lambda: influence.entropy_dominance(ranked()[1]),
    "rank_against_rank": lambda: influence.rank_against_rank(ranked()[1]),
    "influence_by_rank": lambda: influence.influence_by_rank(ranked()[1]),
    "failure_mode_counts": lambda: influence.failure_mode_counts(ranked()[1]),
    "ndcg_against_chance": lambda: influence.ndcg_against_chance(ranked()[1]),
    "rank_slope": lambda: influence.rank_slope(longer(), "q1"),
    "verdict_changes": lambda: influence.verdict_changes(compare_reported(*ranked())),
    "retrieval_quality": lambda: retrieval_quality_chart(retrieval_quality(*ranked())),
    "entropy_agreement": lambda: uncertainty.entropy_agreement(answered()),
    "estimator_leaderboard": lambda: uncertainty.estimator_leaderboard(answered()),
    "risk_coverage": lambda: uncertainty.risk_coverage(answered()),
    "stability_grounding": lambda: uncertainty.stability_grounding(answered()),
    "answer_scatter": lambda: uncertainty.answer_scatter(answered(), "q1"),
    "certified_risk": lambda: conformal.certified_risk(promised()),
    "p_value_plot": lambda: conformal.p_value_plot(streamed()),
    "score_histogram": lambda: conformal.score_histogram(promised()),
    "set_size": lambda: conformal.set_size(promised()),
    "coverage_by_alpha": lambda: conformal.coverage_by_alpha(promised(), "coverage_sets"),
    "reliability": lambda: confidence.reliability_diagram(
        scored([(i / 40, i % 7 / 6, i % 2) for i in range(41)])
    ),
    "waterfall": lambda: confidence.waterfall(scored([(0.8, 0.6, 1)]), "q1"),
    "flag_rates": lambda: validation.flag_rates(checked()),
    "objection_reasons": lambda: validation.objection_reasons(checked()),
    "verdict_counts": lambda: validation.verdict_counts(checked()),
    "pass_rate_by_day": day,
    "lds_histogram": lambda: attribution.lds_histogram(attributed()),
    "passage_scores": lambda: attribution.passage_scores(attributed(), "either"),
    "slot_effects": lambda: attribution.slot_effects(attributed()),
    "loss_ladder": lambda: losses.loss_ladder(lost()),
    "fix_balance": lambda: losses.fix_balance(lost()),
    "claims_heatmap": lambda: claims.claims_heatmap(one_answer(MATRIX * 3)),
    "evidence_matrix": lambda: claims.evidence_matrix(claims_analysis([MATRIX, [[0.7, 0.1, 0.0]]])),
    "f1_at_k": lambda: claims.f1_at_k_chart(claims_analysis([MATRIX, [[0.7, 0.1, 0.0]]])),
    "claims_quadrants": lambda: claims.claims_quadrants(
        claims_analysis([[[0.9, 0.1, 0.8]]], influence=[[0.4, 0.3, 0.0]])
    ),
    "compare": compared,
    "trend": moved,
    "likelihood": lambda: answer_against_reference(
        analysed_run(scored_run(("omega", "alpha", (2.0, -1.0, 0), (-0.5, 3.0, 1))))
    ),
    "signal_histogram": lambda: signal_histogram(
        Signal("toy", "doubt", "Doubt", "Toy", "{:.2f}", "more uncertain", np.array([0.2, 0.4, 0.4]))
    ),
    "correlation_heatmap": lambda: correlation_heatmap(
        signal_agreement(diagnosis_of(sure=np.arange(20.0), doubt=-np.arange(20.0)))
    ),
}


def plain(value):
    """A number, or several, in few words."""
    if isinstance(value, tuple | list | np.ndarray):
        return " ".join(map(plain, value))
    return f"{float(value):.4g}" if isinstance(value, int | float | np.number) else str(value)


def of_axis(axis):
    for key in ("range", "domain"):
        if axis.get(key) is not None:
            yield f"{key} {' to '.join(map(plain, axis[key]))}"
    for key in ("tickvals", "tick0", "dtick", "nticks", "tickangle", "rangemode", "side"):
        if axis.get(key) is not None:
            yield f"{key} {plain(axis[key])}"
    if axis.get("showgrid") is False:
        yield "no grid"


def of_trace(trace):
    if trace.type == "heatmap":
        yield f"cells {plain(trace.zmin)} to {plain(trace.zmax)}, gaps {trace.xgap} {trace.ygap}"
        return
    if trace.type == "bar":
        upright = trace.orientation != "h"
        yield f"bars {plain(np.unique(np.round(trace.width, 6)))} wide, outline {trace.marker.line.width}"
        if upright:
            yield f"from {plain(trace.x[0])} to {plain(trace.x[-1])}"
    if trace.type != "bar" and trace.marker.size is not None:
        yield f"marks {plain(trace.marker.size)}"
        if trace.marker.line.width is not None:
            yield f"outline {plain(trace.marker.line.width)}"
    if trace.type != "bar" and trace.line.width is not None:
        yield f"line {plain(trace.line.width)} {trace.line.dash or 'solid'}"
    for bars in (trace.error_x, trace.error_y):
        if bars.thickness is not None:
            yield f"interval {plain(bars.thickness)} {plain(bars.width)}"
    for opacity in (trace.opacity, trace.marker.opacity):
        if opacity is not None:
            yield f"opacity {plain(opacity)}"
    if trace.cliponaxis is False:
        yield "not cut"
    if trace.showlegend is False:
        yield "no entry"


def told(figure):
    """Say how a figure looks, a line each: its layout, axes, marks, lines and texts."""
    layout = figure.to_plotly_json()["layout"]
    lines = [f"height {layout['height']}, top {layout['margin']['t']}"]
    keys = ("barmode", "bargap", "hoverdistance", "showlegend")
    lines += [f"{key} {layout[key]}" for key in keys if layout.get(key) is not None]
    for name in ("xaxis", "xaxis2", "yaxis", "yaxis2", "yaxis3"):
        lines.append(f"{name[0]}{name[5:]}: {', '.join(of_axis(layout.get(name, {})))}")
    lines += [", ".join(of_trace(trace)) for trace in figure.data]
    for one in figure.layout.shapes:
        ends = plain([one.x0, one.y0, one.x1, one.y1])
        lines.append(f"shape {ends}, {plain(one.line.width)} {one.line.dash}")
    for one in figure.layout.annotations:
        place = plain([one.x, one.y, one.xanchor, one.yanchor, one.xshift, one.font.size])
        lines.append(f"text {place}".replace(" None", ""))
    return [line for line in lines if not line.endswith(": ")]


@pytest.mark.parametrize("name", FIGURES)
def test_how_a_figure_looks(name):
    assert told(FIGURES[name]()) == LOOKS[name].strip().splitlines()
