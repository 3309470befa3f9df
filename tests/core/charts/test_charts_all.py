"""What holds for every figure: empty input, hostile text, size, and a description."""

import html
import re
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from core.charts import claims, confidence, conformal, influence, retrieval_quality, uncertainty, validation
from core.charts.compare import compare_figure
from core.charts.theme import alt_text
from core.conformal.promises import Calibration
from core.influence import analyse, compare_reported
from core.retrieval_quality.analysis import retrieval_quality as quality_of
from core.socket import QuestionColumn
from core.uncertainty import measure
from core.validation.metrics import daily
from tests.core.charts.chart_confidence import TITLES, scored
from tests.core.charts.chart_conformal import calibrated
from tests.core.charts.chart_runs import HOSTILE, make_run, shown_strings
from tests.core.charts.chart_samples import sampled_run
from tests.core.charts.chart_validation import validated
from tests.core.validation.validation_runs import CASES, run_of

WHOLE_RUN = {
    "rho_histogram": influence.rho_histogram,
    "entropy_dominance": influence.entropy_dominance,
    "rank_against_rank": influence.rank_against_rank,
    "influence_by_rank": influence.influence_by_rank,
    "failure_mode_counts": influence.failure_mode_counts,
    "ndcg_against_chance": influence.ndcg_against_chance,
}
ONE_QUESTION = {"rank_slope": influence.rank_slope}
SAMPLED = {
    "entropy_agreement": uncertainty.entropy_agreement,
    "entropy_variance": uncertainty.entropy_variance,
    "estimator_leaderboard": uncertainty.estimator_leaderboard,
    "risk_coverage": uncertainty.risk_coverage,
    "stability_grounding": uncertainty.stability_grounding,
}
SAMPLED_QUESTION = {"answer_scatter": uncertainty.answer_scatter}
CALIBRATED = {
    "certified_risk": conformal.certified_risk,
    "p_value_plot": conformal.p_value_plot,
    "score_histogram": conformal.score_histogram,
    "set_size": conformal.set_size,
}
CONFIDENT = {
    "reliability_diagram": confidence.reliability_diagram,
}
VALIDATED = {
    "flag_rates": validation.flag_rates,
    "objection_reasons": validation.objection_reasons,
    "verdict_counts": validation.verdict_counts,
}
_OURS = re.compile(r"</?b>|<br>|<extra>|</extra>")
_OWN_TEMPLATES = ("hovertemplate",)


def test_every_public_figure_is_tested_here():
    assert set(influence.__all__) == set(WHOLE_RUN) | set(ONE_QUESTION) | {"verdict_changes"}
    assert set(uncertainty.__all__) == set(SAMPLED) | set(SAMPLED_QUESTION)
    assert set(conformal.__all__) == set(CALIBRATED) | {"coverage_by_alpha"}
    assert set(confidence.__all__) == set(CONFIDENT) | {"waterfall"}
    assert set(validation.__all__) == set(VALIDATED) | {"pass_rate_by_day"}
    # Tested in files of their own.
    assert set(claims.__all__) == {"claims_heatmap", "claims_quadrants", "evidence_matrix", "f1_at_k_chart"}


@pytest.mark.parametrize("name", WHOLE_RUN)
def test_a_run_without_questions_gives_a_labelled_empty_figure(name, empty_analysis):
    figure = WHOLE_RUN[name](empty_analysis)
    assert not figure.data
    assert figure.layout.annotations[0].text.replace("<br>", " ") == alt_text(figure)
    assert alt_text(figure).endswith(".")


@pytest.mark.parametrize("name", ONE_QUESTION)
def test_a_question_of_an_empty_run_gives_a_labelled_empty_figure(name, empty_analysis):
    figure = ONE_QUESTION[name](empty_analysis, "q1")
    assert not figure.data
    assert len(figure.layout.annotations) == 1


@pytest.mark.parametrize("name", WHOLE_RUN)
def test_twenty_thousand_questions_stay_small(name, large):
    figure = WHOLE_RUN[name](large)
    assert figure.data
    assert len(figure.to_json()) < 100_000


def test_the_most_points_that_are_drawn_one_by_one_stay_below_a_megabyte(large):
    import dataclasses

    chosen = large.queries[large.queries["entropy"].notna()].iloc[:5_000].assign(question="问" * 80)
    figure = influence.entropy_dominance(dataclasses.replace(large, queries=chosen))
    # Questions at the same place share a marker; the legend counts every one.
    assert (
        sum(int(re.search(r"\(([\d,]+) question", trace.name)[1].replace(",", "")) for trace in figure.data)
        == 5_000
    )
    assert len(figure.to_json()) < 1_000_000


@pytest.fixture(scope="module")
def figures():
    """Every figure, of texts that are HTML."""
    k = 6
    run = make_run(
        [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.9, 0.5, 0.4, 0.3, 0.2, 0.1]],
        query_question=[HOSTILE, HOSTILE],
        query_reported_rho=[0.9, 0.9],
        query_planted_case=["inert", HOSTILE],
        passage_id=[f"{i}{HOSTILE}" for i in range(2 * k)],
        title=[HOSTILE] * 2 * k,
        retrieval_score=[float(i) for i in range(2 * k)],
        is_gold=[True] * 2 * k,
    )
    analysis = analyse(run)
    figures = {name: draw(analysis) for name, draw in WHOLE_RUN.items()}
    figures |= {name: draw(analysis, "q1") for name, draw in ONE_QUESTION.items()}
    comparison = compare_reported(run, analysis).assign(cause=HOSTILE)
    figures["verdict_changes"] = influence.verdict_changes(comparison)
    figures["retrieval_quality_chart"] = retrieval_quality.retrieval_quality_chart(quality_of(run, analysis))
    pairs = pd.DataFrame(
        {
            "query_id": "q1",
            "question": HOSTILE,
            "a": [0.0],
            "b": 1.0,
            "difference": 1.0,
            "change": "better",
        }
    )
    figures["compare"] = compare_figure(pairs, QuestionColumn("rho", "ρ"))
    run = sampled_run(
        [[HOSTILE, f"other {HOSTILE}", "third", f"fourth and {HOSTILE}"], [HOSTILE, "right"]],
        answers=[HOSTILE, "right"],
        references=["wrong", "right"],
        question=HOSTILE,
    )
    measured = measure(run, lambda texts: np.eye(len(texts)))
    analysis = measured.labelled(grounding=pd.Series([0.0, 1.0]))
    figures |= {name: draw(analysis) for name, draw in SAMPLED.items()}
    figures |= {name: draw(analysis, "q1") for name, draw in SAMPLED_QUESTION.items()}
    rows = [(i % 2 == 0, i / 40, float(i < 30)) for i in range(40)]
    promises = calibrated(
        rows, kinds=[f"{i % 2}{HOSTILE}" for i in range(40)], question=HOSTILE, title=HOSTILE,
        meanings=[[True, True, False, i < 38] for i in range(40)],
    )  # fmt: skip
    figures |= {name: draw(promises) for name, draw in CALIBRATED.items()}
    # Drift is tested where a store calibrates.
    store = Calibration(np.linspace(0, 1, 40), np.ones(40), [None] * 40)
    streamed = calibrated(rows, store=store, origin="a store", question=HOSTILE, title=HOSTILE)
    figures["p_value_plot"] = conformal.p_value_plot(streamed)
    sure = scored([(i / 40, i % 7 / 6, i % 2) for i in range(41)], titles=dict.fromkeys(TITLES, HOSTILE))
    figures |= {name: draw(sure) for name, draw in CONFIDENT.items()}
    figures["waterfall"] = confidence.waterfall(sure, "q5")
    figures["coverage_by_alpha"] = conformal.coverage_by_alpha(promises, "coverage_sets")
    verdicts = [
        {"query_id": "fine", "validator": HOSTILE, "passed": False, "reason": HOSTILE, "detail": HOSTILE}
    ]
    stopped = validated(run_of({"fine": CASES["fine"], "sure": CASES["sure"]}, verdicts=verdicts))
    figures |= {name: draw(stopped) for name, draw in VALIDATED.items()}
    now = datetime(2026, 11, 23, tzinfo=UTC)
    figures["pass_rate_by_day"] = validation.pass_rate_by_day(daily(stopped.observations(now), now, 7))
    return figures


def test_hostile_text_arrives_escaped_and_cut(figures):
    for name, figure in figures.items():
        shown = shown_strings(figure)
        assert shown, name
        for key, text in shown:
            where = (name, key, text)
            assert "<" not in _OURS.sub("", text), where
            assert "script>" not in text, where
            assert "$" not in text, where
            assert not re.search(r"[\x00-\x1f\u202e]", text), where
            # Doors are never drawn.
            if key not in (*_OWN_TEMPLATES, "bdata") and not re.match("(question|where)=", text):
                assert "bold</b>" not in text, where
                # One cut text and our own few words.
                assert len(html.unescape(_OURS.sub(" ", text))) < 260, where


def test_figures_with_text_from_data_do_show_it(figures):
    with_text = [
        "entropy_dominance",
        "rank_slope",
        "verdict_changes",
        "compare",
        "entropy_agreement",
        "risk_coverage",
        "answer_scatter",
        "p_value_plot",
        "score_histogram",
        "waterfall",
        "flag_rates",
        "objection_reasons",
        "verdict_counts",
    ]
    for name in with_text:
        assert any("&lt;script&gt;" in text for _, text in shown_strings(figures[name])), name


def test_every_figure_has_axis_titles_or_named_ticks_a_description_and_no_title(figures):
    for name, figure in figures.items():
        layout, described = figure.layout, alt_text(figure)
        assert layout.title.text is None, name
        assert layout.xaxis.title.text or layout.xaxis.ticktext, name
        assert layout.yaxis.title.text or layout.yaxis.ticktext or name == "failure_mode_counts", name
        assert described.count(".") >= 1 and "\n" not in described and re.search(r"\d", described), name


def test_no_text_colour_is_fixed_for_one_background(figures):
    for name, figure in figures.items():
        layout = figure.layout
        assert layout.font.color is None, name
        assert all(annotation.font.color is None for annotation in layout.annotations), name
        assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)", name
