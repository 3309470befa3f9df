"""Axes, sizes of marks and lines, and heights of the figures, of runs so small that they can be worked out by hand."""

from datetime import UTC, datetime
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from core.charts import attribution, claims, confidence, conformal, influence, losses, uncertainty, validation
from core.charts.compare import compare_figure
from core.charts.likelihood import answer_against_reference
from core.charts.retrieval_quality import retrieval_quality_chart
from core.charts.signals import correlation_heatmap, signal_histogram
from core.charts.theme import alt_text
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


def less_and_less_sure():
    """Of four answers the surest is correct."""
    samples = [["yes"] * 4, ["no"] * 3 + ["x"], ["a", "a", "b", "c"], ["d", "e", "f", "g"]]
    return uncertainty.risk_coverage(sampled(samples, references=["yes", "z", "z", "z"]))


@cache
def promised():
    rows = [(i % 2 == 0, i / 40, float(i < 30)) for i in range(40)]
    return calibrated(rows, meanings=[[True, True, False, i < 38] for i in range(40)])


def removed():
    """Two claims; without p1 the answer says nothing, without p2 it stays as it is, p3 was not left out."""
    texts = ["Unwin planned the town.", "It opened in 1903."]
    ablated = [["I don't know.", " ".join(texts), None]]
    return one_answer([[0.9, 0.8, 0.1], [0.1, None, None]], texts=[texts], ablated=ablated)


def streamed(n=5):
    store = Calibration(np.linspace(0, 1, 40), np.ones(40), [None] * 40)
    return calibrated([(NEW, i / n, None) for i in range(n)], store=store, origin="a store")


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


def answered_yes():
    columns = ["query_id", "question", "a", "b", "difference", "change"]
    frame = pd.DataFrame([("q1", "One?", 0.0, 1.0, 1.0, "better")], columns=columns)
    return compare_figure(frame, QuestionColumn("correct", "Correct", pattern="bool"))


def moved():
    points = [Point(f"r{i}", f"Run {i}", f"2026-01-0{i}", 3, 4, (("k", "1", "2"),) * (i - 1)) for i in (1, 2)]
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
    "claims_causal": lambda: claims.claims_heatmap(removed(), "causal"),
    "claims_both": lambda: claims.claims_heatmap(removed(), "both"),
    "waterfall_missing": lambda: confidence.waterfall(scored([(np.nan, 0.6, 1)]), "q1"),
    "certified_risk_in_use": lambda: conformal.certified_risk(promised(), 0.5),
    "nothing_certified": lambda: conformal.certified_risk(calibrated([(True, 0.1, 1)] * 3, 0.1)),
    "stream_of_100": lambda: conformal.p_value_plot(streamed(100)),
    "stream_of_300": lambda: conformal.p_value_plot(streamed(300)),
    "stream_of_many": lambda: conformal.p_value_plot(streamed(101)),
    "stream_of_most": lambda: conformal.p_value_plot(streamed(301)),
    "nothing": lambda: conformal.certified_risk(calibrated([(NEW, 0.1, None)])),
    "evidence_matrix": lambda: claims.evidence_matrix(claims_analysis([MATRIX, [[0.7, 0.1, 0.0]]])),
    "f1_at_k": lambda: claims.f1_at_k_chart(claims_analysis([MATRIX, [[0.7, 0.1, 0.0]]])),
    "claims_quadrants": lambda: claims.claims_quadrants(
        claims_analysis([[[0.9, 0.1, 0.8]]], influence=[[0.4, 0.3, 0.0]])
    ),
    "compare": compared,
    "compare_yes": answered_yes,
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

#: Ranges and ticks of the axes; then each trace, in pixels where it is a size; shapes by their ends, texts by place.
LOOKS = {
    "rho_histogram": """
height 380, top 32
barmode stack
bargap 0
x: range -1.03 to 1.03, dtick 0.5
y: dtick 1, rangemode tozero
line 0 solid, from -1 0 to 1 1.563
bars 0.1 wide, outline 0, from -0.95 to 0.95
bars 0.1 wide, outline 0, from -0.95 to 0.95
line 2 solid, from -1 0.03333 to 1 0.3944
shape 0.7 0 0.7 1, 2 dash
text 0.7 1 bottom
text 0 1 left bottom
""",
    "entropy_dominance": """
height 380, top 16
x: rangemode tozero
y: range 0 to 1.05
marks 17.49, opacity 0.8, not cut
marks 17.49, opacity 0.8, not cut
""",
    "rank_against_rank": """
height 460, top 16
hoverdistance 100
x: range 0.4 to 6.6, tickvals 1 2 3 4 5 6, no grid
y: range 6.6 to 0.4, tickvals 1 2 3 4 5 6, no grid
cells -1.333 to 1.333, gaps 1 1, scale 10 None None None 0, at None
marks 26, opacity 0, opacity 0.5, no entry
marks 8, outline 1, line 2 solid
marks 8, outline 1, line 2 dash
shape 1 1 6 6, 2 dot
""",
    "influence_by_rank": """
height 380, top 16
x: tick0 1, dtick 1
y: rangemode tozero
line 0 solid, from 1 0.1826 to 6 0.5174
line 2 dot, from 1 0.35 to 6 0.35
marks 10, line 2 solid, interval 1.5 4, not cut
""",
    "failure_mode_counts": """
height 386, top 16
bargap 0.35
x: range 0 to 5.8, dtick 1
y: no grid
bars as plotly wide, outline 0
marks 16, outline 4, interval 2 5, not cut
text 4 Ignored top hit left 6
text 4 Buried evidence left 6
text 0 Over-reliance left 6
text 2 Inverted order left 6
text 0 Inert left 6
text 0 Parametric left 6
text 0 Redundant or invented left 6
text 0 Harmful passage left 6
text 0 Missed evidence left 6
""",
    "ndcg_against_chance": """
height 380, top 16
x: range 0 to 1.05
y: range 0 to 1.05
marks 17.49, opacity 0.8, not cut
marks 17.49, opacity 0.8, not cut
shape 0 0 1 1, 2 dot
""",
    "rank_slope": """
height 466, top 16
x: range -0.12 to 1.42, tickvals 0 1, side top, no grid
y: range 12.7 to 0.3, tickvals 1 2 3 4 5 6 7 8 9 10 11 12
marks 7, line 1.5 dot
marks 10, line 3 solid
marks 10, line 3 dash
text 1 1 left 10
text 1 2 left 10
text 1 3 left 10
text 1 4 left 10
text 1 5 left 10
text 1 6 left 10
text 1 7 left 10
text 1 8 left 10
text 1 9 left 10
text 1 10 left 10
text 1 11 left 10
text 1 12 left 10
""",
    "verdict_changes": """
height 280, top 16
x: no grid
y: no grid
cells -4 to 4, gaps 3 3
marks 70, opacity 0, opacity 0.3, no entry
text Aligned Aligned
text Divergent Aligned
text Undefined Aligned
text Aligned Divergent
text Divergent Divergent
text Undefined Divergent
""",
    "retrieval_quality": """
height 380, top 16
x: range -0.4 to 2.4, tickvals 0 1 2
y: range -0.03 to 1.05, tick0 0, dtick 0.2
marks 9, line 2 solid, interval 1.5 4, not cut
line 1 solid, from -0.09 0.04167 to 1.91 0.2083, opacity 0.6
""",
    "entropy_agreement": """
height 380, top 16
x: rangemode tozero
y: range -0.03 to 1.05, tick0 0, dtick 0.2
marks 9 9, opacity 0.8, not cut
marks 9 9, opacity 0.8, not cut
""",
    "estimator_leaderboard": """
height 510, top 16
x: range 0.003848 to 1.02, dtick 0.1
y: range 10.6 to 0.4, tickvals 1 2 3 4 5 6 7 8 9 10, no grid
marks 10, interval 2 5, not cut
marks 10, interval 2 5, not cut
shape 0.5 0 0.5 1, 1.5 dot
""",
    "risk_coverage": """
height 460, top 16
x: range 0 to 101
y: range -2 to 99.54
line 0 solid, from 25 5.462 to 100 94.54
line 3 solid, from 25 33.33 to 100 50
line 2 dash, from 25 33.33 to 100 50
line 2 dot, from 25 33.33 to 100 50
line 2 dashdot, from 25 50 to 100 66.67
line 1.5 dot, from 0 50 to 100 50
marks 10, not cut
""",
    "stability_grounding": """
height 380, top 16
x: range -0.03 to 1.05, tick0 0, dtick 0.2
y: range -0.05 to 1.07, tick0 0, dtick 0.2
marks 17.49, opacity 0.8, not cut
marks 9 9, opacity 0.8, not cut
shape 0.8 0 0.8 1, 1 dot
shape 0 0.5 1 0.5, 1 dot
""",
    "answer_scatter": """
height 420, top 16
x: range -0.7961 to 0.7961, dtick 0.5
y: range -0.9192 to 0.9192, dtick 0.5, scaleanchor x, scaleratio 1
marks 21.21, outline 1, opacity 0.75, not cut
marks 15, outline 1, opacity 0.75, not cut
marks 15, outline 1, opacity 0.75, not cut
marks 9, outline 1.5, not cut
""",
    "certified_risk": """
height 440, top 16
x: range 0 to 102
y: range -2 to 57
line 2.5 dash, from 2.5 0 to 100 25
line 1.5 dot, from 0 50 to 100 50
marks 10, outline 2, not cut
marks 10, not cut
marks 16, not cut
""",
    "p_value_plot": """
height 420, top 16
x: range -0.02 to 1.02, dtick 0.2
y: range -0.02 to 1.02, dtick 0.2
line 0 solid, from 0 0 to 1 1
line 2 dash, from 0 0 to 1 1
marks 8, opacity 0.85, not cut
""",
    "score_histogram": """
height 380, top 16
barmode stack
x: range -0.02 to 1.02
y: range 0 to 4.32, dtick 1
bars 0.1 wide, outline 0.5, from 0.05 to 0.95
bars 0.1 wide, outline 0.5, from 0.05 to 0.95
line 3 solid, from 0.35 0 to 0.35 4.24
""",
    "set_size": """
height 380, top 16
x: range 49 to 99
y: range 0 to 2.2
line 0 solid, from 50 0.9 to 98 2
line 3 solid, from 50 0.949 to 94 1.004
line 3 dot, from 94 1.004 to 98 2
line 2 dash, from 50 2 to 98 2
marks 15, outline 2, not cut
line 1.5 dot, from 50 0 to 50 2.2
""",
    "coverage_by_alpha": """
height 440, top 16
x: range 49 to 99
y: range 18 to 102
line 0 solid, from 50 25 to 94 100
line 0 solid, from 50 90 to 98 100
line 3 solid, from 50 94.9 to 94 97.65
line 3 dot, from 94 97.65 to 98 100
line 2 dash, from 50 50 to 98 98
marks 15, outline 2, not cut
line 1.5 dot, from 50 20 to 50 100
""",
    "reliability": """
height 480, top 16
barmode stack
x: range -0.02 to 1.02, dtick 0.2
y: range -2 to 103, domain 0.32 to 1
y2: range 0 to 5.5, domain 0 to 0.22, nticks 4
line 1.5 dot, from 0 0 to 1 100
marks 10, interval 2 5, not cut
marks 10, interval 2 5, not cut
bars 0.06 wide, outline 0, from 0.03333 to 0.9
bars 0.06 wide, outline 0, from 0.03333 to 0.9
""",
    "waterfall": """
height 252, top 16
barmode overlay
x: range -0.01 to 1.02, dtick 0.2
y: range 3.6 to 0.4, tickvals 1 2 3, no grid
bars 0.7 wide, outline 1
bars 0.7 wide, outline 1.5, opacity 0.6
bars 0.7 wide, outline 1.5, opacity 0.6
line 2 dash, from 0.6 0.4 to 0.6 3.6
""",
    "flag_rates": """
height 318, top 16
x: range -2 to 102, dtick 20
y: range 3.6 to 0.4, tickvals 1 2 3, no grid
marks 11, interval 2 5, not cut
marks 11, interval 2 5, not cut
marks 22, outline 3, not cut
""",
    "objection_reasons": """
height 210, top 16
barmode stack
x: range 0 to 1.05, dtick 1
y: range 2.6 to 0.4, tickvals 1 2, no grid
bars 0.5 wide, outline 0
marks 16, outline 4, interval 2 5, not cut
""",
    "verdict_counts": """
height 232, top 16
barmode stack
x: range 0 to 2
y: range 3.6 to 0.4, tickvals 1 2 3, no grid
bars 0.6 wide, outline 0, opacity 1
bars 0.6 wide, outline 0, opacity 1
bars 0.6 wide, outline 0, opacity 0.45
""",
    "pass_rate_by_day": """
height 320, top 16
x: range 2026-11-17T00:00 to 2026-11-23T23:59, tickangle 0
y: range -2 to 102, dtick 20
marks 9, line 1 dot, interval 2 5, not cut, no entry
""",
    "lds_histogram": """
height 300, top 32
barmode stack
bargap 0
x: range -1.03 to 1.03, dtick 0.5
y: dtick 1, rangemode tozero
bars 0.1 wide, outline 0, from -0.95 to 0.95
bars 0.1 wide, outline 0, from -0.95 to 0.95
shape 0 0 0 1, 2 dash
text 0 1 bottom
text 0 1 left bottom
""",
    "passage_scores": """
height 450, top 16
x: range 0.4 to 3.6, tick0 1, dtick 1
y: domain 0.24 to 0.77
y2: range 0 to 1.1, domain 0.8 to 1, loose
y3: domain 0 to 0.18, nticks 3, zero line
bars 0.5 wide, outline 0, from 0.88 to 2.88, opacity 0.75
marks 9
line 3 solid, from 1 0 to 2 1
bars 0.5 wide, outline 0, from 1 to 3
shape 0 0 1 0, 1.5 None
""",
    "slot_effects": """
height 300, top 16
x: range 0.5 to 3.5, tick0 1, dtick 1
line 0 solid, from 0.5 0 to 3.5 0
marks 10, interval 1.5 4, not cut
shape 0 0 1 0, 2 dash
""",
    "loss_ladder": """
height 376, top 16
barmode overlay
x: range 0 to 10.98
y: no grid
bars 0.7 wide, outline 1.5, opacity 0.6
bars 0.7 wide, outline 1.5, opacity 0.6
marks 1, interval 2 5, not cut
marks 20, outline 3, not cut
text 4.726 Not retrieved left 6
text 5.767 Placed too late left 6
text 6.767 Distracted left 6
text 7.767 Buried in its passage left 6
text 5 Not read right -6
text 6 Grounded right -6
text 7 By luck right -6
""",
    "fix_balance": """
height 320, top 16
barmode overlay
x: range -7.912 to 7.912, dtick 1
y: no grid
bars 0.7 wide, outline 1.5, opacity 0.6
bars 0.7 wide, outline 1.5, opacity 0.6
bars 0.7 wide, outline 1.5, opacity 0.3, opacity 0.6, no entry
bars 0.7 wide, outline 1.5, opacity 0.3, opacity 0.6, no entry
marks 10, interval 2 5, not cut
marks 10, interval 2 5, not cut, no entry
shape 0 0 0 1, 2 None
""",
    "claims_heatmap": """
height 411, top 105
showlegend True
x: range -0.5 to 2.5, domain 0 to 0.8, tickvals 0 1 2, side top, text 11, no grid
x2: range -0.4 to 2, domain 0.82 to 1, tickvals 0.5, tickangle 0, side top, text 11, no grid, loose
y: range 5.5 to -0.5, tickvals 0 1 2 3 4 5, text 11, no grid
marks 10, text 11
marks 10, text 11
cells 0 to 1, gaps 1 2, scale 10 0.8 0 1 0, at 0 0.5 1
marks 9
text 14, no entry
""",
    "claims_causal": """
height 260, top 60
showlegend True
x: range -0.5 to 2.5, domain 0 to 0.8, tickvals 0 1 2, side top, text 11, no grid
x2: range -0.4 to 2, domain 0.82 to 1, tickvals 0.5, tickangle 0, side top, text 11, no grid, loose
y: range 1.5 to -0.5, tickvals 0 1, text 11, no grid
marks 10, text 11
marks 10, text 11
cells -0.5 to 2.5, gaps 1 2
text 14, no entry
marks 11, outline 1
text 14, no entry
marks 11, outline 1
text 14, no entry
marks 11, outline 1
""",
    "claims_both": """
height 317, top 105
showlegend True
x: range -0.5 to 2.5, domain 0 to 0.8, tickvals 0 1 2, side top, text 11, no grid
x2: range -0.4 to 2, domain 0.82 to 1, tickvals 0.5, tickangle 0, side top, text 11, no grid, loose
y: range 1.5 to -0.5, tickvals 0 1, text 11, no grid
marks 10, text 11
marks 10, text 11
cells 0 to 1, gaps 1 2, scale 10 0.8 0 1 0, at 0 0.5 1
marks 9
marks 14, outline 1
marks 8, outline 1
marks 11, outline 1
""",
    "waterfall_missing": """
height 252, top 16
barmode overlay
x: range -0.01 to 1.02, dtick 0.2
y: range 3.6 to 0.4, tickvals 1 2 3, no grid
bars 0.7 wide, outline 1
bars 0.7 wide, outline 1.5, opacity 0.6
no entry
line 2 dash, from 0.6 0.4 to 0.6 3.6
""",
    "certified_risk_in_use": """
height 440, top 16
x: range 0 to 102
y: range -2 to 57
line 2.5 dash, from 2.5 0 to 100 25
line 1.5 dot, from 0 50 to 100 50
marks 10, outline 2, not cut
marks 10, not cut
marks 16, not cut
marks 13, not cut
""",
    "nothing_certified": """
height 440, top 50
x: range 0 to 102
y: range -2 to 13.8
line 2.5 dash, from 33.33 0 to 100 0
line 1.5 dot, from 0 10 to 100 10
marks 10, outline 2, not cut
text 0.5 1 bottom
""",
    "stream_of_100": """
height 420, top 16
x: range -0.02 to 1.02, dtick 0.2
y: range -0.02 to 1.02, dtick 0.2
line 0 solid, from 0 0 to 1 1
line 2 dash, from 0 0 to 1 1
marks 8, opacity 0.85, not cut
marks 8, opacity 0.85, not cut
""",
    "stream_of_300": """
height 420, top 16
x: range -0.02 to 1.02, dtick 0.2
y: range -0.02 to 1.02, dtick 0.2
line 0 solid, from 0 0 to 1 1
line 2 dash, from 0 0 to 1 1
marks 5, opacity 0.85, not cut
marks 5, opacity 0.85, not cut
""",
    "stream_of_many": """
height 420, top 16
x: range -0.02 to 1.02, dtick 0.2
y: range -0.02 to 1.02, dtick 0.2
line 0 solid, from 0 0 to 1 1
line 2 dash, from 0 0 to 1 1
marks 5, opacity 0.85, not cut
marks 5, opacity 0.85, not cut
""",
    "stream_of_most": """
height 420, top 16
x: range -0.02 to 1.02, dtick 0.2
y: range -0.02 to 1.02, dtick 0.2
line 0 solid, from 0 0 to 1 1
line 2 dash, from 0 0 to 1 1
line 2 solid, from 0.003311 0.003155 to 0.9967 0.9689
marks 5, opacity 0.85, not cut
marks 5, opacity 0.85, not cut
""",
    "nothing": """
height 200, top 16
text 0.5 0.5 14
""",
    "evidence_matrix": """
height 210, top 60
showlegend True
x: range 0.5 to 4.6, tickvals 1 2 3 4, tickangle 0, no grid
y: range 2.5 to -0.5, tickvals 0 1 2, text 11, no grid
cells 0 to 1, gaps 1 1, gaps say nothing, scale 10 1 0 1 0, at 0 0.5 1
marks 8
marks 11
marks 11
shape 0 1.5 1 1.5, 1 solid
""",
    "f1_at_k": """
height 380, top 16
x: range 0.5 to 20.5, tickvals 1 5 10 15 20
y: range 0 to 1.05, tick0 0, dtick 0.2
line 0 solid, from 1 0 to 20 1
marks 5, line 2.5 solid
marks 13, outline 1
shape 10 0 10 1, 1.5 dot
""",
    "claims_quadrants": """
height 460, top 16
x: range -0.024 to 0.424
y: range -0.34 to 1.34, tickvals 0 0.25 0.5 0.75 1
marks 8, outline 0.5, opacity 0.75, not cut
marks 8, outline 0.5, opacity 0.75, not cut
marks 8, outline 0.5, opacity 0.75, not cut
shape 0 0.5 1 0.5, 1.5 dot
shape 0 0 0 1, 1.5 dot
text 1 1 right top 12
text 1 0 right bottom 12
text 0 1 left top 12
text 0 0 left bottom 12
""",
    "compare": """
height 250, top 16
x: range -0.04 to 1.04, side top
y: range 3.6 to 0.2, no grid
line 3 solid, from 0 1 to 1 1, no entry
line 3 solid, from 0.25 3 to 0.5 3, no entry
marks 9
marks 11
marks 11
marks 11
text 0 0.88 left bottom 12
text 0 1.88 left bottom 12
text 0 2.88 left bottom 12
""",
    "compare_yes": """
height 190, top 16
x: range -0.04 to 1.04, tickvals 0 1, side top
y: range 1.6 to 0.2, no grid
line 3 solid, from 0 1 to 1 1, no entry
marks 9
marks 11
text 0 0.88 left bottom 12
""",
    "trend": """
height 202, top 16
x: range -1 to 101, dtick 20
y: range 2.6 to 0.4, tickvals 1 2, no grid
marks 11, interval 2 5, not cut
marks 11, interval 2 5, not cut
""",
    "likelihood": """
height 380, top 16
marks 9, opacity 0.7
marks 9, opacity 0.7
shape 0 0 1 0, 2 dash
shape 0 0 0 1, 2 dash
""",
    "signal_histogram": """
height 250, top 16
x: tickvals 0.2 0.4, tickangle 0
y: range 0 to 2.16, dtick 1
bars 0.16 wide, outline 0.5, from 0.2 to 0.4, no entry
line 2.5 solid, from 0.3333 0 to 0.3333 2.1
line 2.5 dot, from 0.4 0 to 0.4 2.1
""",
    "correlation_heatmap": """
height 198, top 16
x: range 0.5 to 2.5, tickvals 1 2, tickangle 0, no grid
y: range 2.5 to 0.5, tickvals 1 2, no grid
cells -1 to 1, gaps 2 2, gaps say nothing, scale 10 None None 1 0, at -1 -0.5 0 0.5 1
cells -1 to 1, gaps 2 2, gaps say nothing
""",
}


def plain(value):
    """A number, or several, in few words."""
    if isinstance(value, tuple | list | np.ndarray):
        return " ".join(map(plain, value))
    return f"{round(float(value), 6) + 0:.4g}" if isinstance(value, int | float | np.number) else str(value)


def of_axis(axis):
    for key in ("range", "domain"):
        if axis.get(key) is not None:
            yield f"{key} {' to '.join(map(plain, axis[key]))}"
    for key in (
        "tickvals",
        "tick0",
        "dtick",
        "nticks",
        "tickangle",
        "rangemode",
        "side",
        "scaleanchor",
        "scaleratio",
    ):
        if axis.get(key) is not None:
            yield f"{key} {plain(axis[key])}"
    if axis.get("tickfont"):
        yield f"text {axis['tickfont']['size']}"
    if axis.get("showgrid") is False:
        yield "no grid"
    if axis.get("zeroline"):
        yield "zero line"
    if not (axis.get("fixedrange") and axis.get("automargin")) and axis:
        yield "loose"


def of_cells(trace):
    yield f"cells {plain(trace.zmin)} to {plain(trace.zmax)}, gaps {trace.xgap} {trace.ygap}"
    if trace.hoverongaps is False:
        yield "gaps say nothing"
    bar = trace.colorbar
    if trace.showscale is not False and bar.thickness:
        yield f"scale {plain([bar.thickness, bar.len, bar.x, bar.y, bar.outlinewidth])}"
        yield f"at {plain(bar.tickvals)}"


def of_bars(trace):
    wide = "as plotly" if trace.width is None else plain(np.unique(np.round(trace.width, 6)))
    yield f"bars {wide} wide, outline {trace.marker.line.width}"
    if trace.orientation != "h":
        yield f"from {plain(trace.x[0])} to {plain(trace.x[-1])}"


def of_marks(trace):
    if trace.marker.size is not None:
        yield f"marks {plain(trace.marker.size)}"
    if trace.marker.line.width is not None:
        yield f"outline {plain(trace.marker.line.width)}"
    if trace.line.width is not None:
        yield f"line {plain(trace.line.width)} {trace.line.dash or 'solid'}"
    if trace.mode == "lines":
        x, y = (pd.Series(one, dtype=float).agg(["min", "max"]) for one in (trace.x, trace.y))
        yield f"from {plain([x['min'], y['min']])} to {plain([x['max'], y['max']])}"
    if trace.textfont.size is not None:
        yield f"text {plain(trace.textfont.size)}"


def of_all(trace):
    for bars in (trace.error_x, trace.error_y):
        if bars.thickness is not None:
            yield f"interval {plain(bars.thickness)} {plain(bars.width)}"
    for opacity in (trace.opacity, trace.marker.opacity, trace.selected.marker.opacity):
        if opacity is not None:
            yield f"opacity {plain(opacity)}"
    if trace.type != "bar" and trace.cliponaxis is False:
        yield "not cut"
    if trace.showlegend is False:
        yield "no entry"


def of_trace(trace):
    if trace.type == "heatmap":
        return [*of_cells(trace)]
    return [*(of_bars if trace.type == "bar" else of_marks)(trace), *of_all(trace)]


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


#: What is read aloud of a figure, or a part of it.
SAID = {
    # Two of four are correct; of the three shortest, which tie, one is.
    "risk_coverage": "surest half of 4 answers: Lexical diversity 50 %, Mean pairwise ROUGE-L 50 %, Different answers 50 %, "
    "Length of the answer 67 %; in random order, 50 %.",
    "coverage_by_alpha": "at 50 % promised, 95 % covered on average, exact band without ties 25 % to 80 %; "
    "this run's own test: 19 of 20;",
    "trend": "Share of correct answers in 2 runs of one data set, the newest first: 2026-01-02 75 % (95 % interval 30–95 %, "
    "n = 4); 2026-01-01 75 %",
}


def test_the_surest_half_is_half_of_the_answers():
    assert "Different answers 50 %" in alt_text(less_and_less_sure())


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_a_figure(name):
    assert SAID[name] in alt_text(FIGURES[name]())


def test_the_trend_of_two_runs_by_hand():
    """3 of 4 correct in both: Wilson's interval is that of another library."""
    before, changed = moved().data
    low, high = binomtest(3, 4).proportion_ci(method="wilson")
    for trace, row, key in ((before, 2, "r1"), (changed, 1, "r2")):
        assert (list(trace.x), list(trace.y), trace.customdata[0][0]) == ([75], [row], key)
        np.testing.assert_allclose(trace.error_x.array, [100 * high - 75])
        np.testing.assert_allclose(trace.error_x.arrayminus, [75 - 100 * low])
    assert "k: 1 → 2" in changed.customdata[0][1] and "→" not in before.customdata[0][1]
    assert list(moved().layout.yaxis.ticktext) == ["2026-01-02<br>Run 2", "2026-01-01<br>Run 1"]
