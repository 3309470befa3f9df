"""Every figure of real runs: its doors open, marks say how many questions are behind them, and none shows an id."""

import html
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from core.charts import (
    claims,
    confidence,
    conformal,
    influence,
    retrieval_quality,
    signals,
    uncertainty,
    validation,
)  # fmt: skip
from core.charts.overview import against_chance
from core.charts.theme import alt_text, has_doors
from core.conditions import describe, matching
from core.diagnosis import Diagnosis
from core.influence import compare_reported
from core.pipeline import fill
from core.report.signals import signal_agreement
from core.run import Run
from core.schema import TABLES
from core.sources.formats import import_file
from core.sources.simulation import SimulationOptions, simulate
from core.validation.metrics import daily
from core.validation.step import ValidationStep
from core.worklist import key_of
from tests.core.charts.chart_conformal import calibrated_run
from tests.core.charts.chart_runs import shown_strings
from tests.core.validation.validation_runs import run_of

ROOT = Path(__file__).parents[3]
ID = "internal-id-"
# Where a figure of one answer knows nothing of the other questions.
UNCOUNTED = {"claims_heatmap text", "claims_heatmap causal", "claims_heatmap both"}
RUNS = {
    "recorded": lambda: Run.load(ROOT / "sample_data/recorded_run"),
    "worked": lambda: Run.load(ROOT / "sample_data/worked_answers"),
    "simulated": lambda: simulate(SimulationOptions(queries=60, noise=0.05)),
    "calibrated": calibrated_run,
    "validated": lambda: fill(Run.load(ROOT / "sample_data/worked_answers"), ValidationStep()),
    "stopped": lambda: fill(run_of(), ValidationStep()),
    "imported": lambda: import_file(ROOT / "tests/app/influence.csv").run,
}
SETTINGS = {"worked": {"by_embedding": True}}
_IDS = ("query_id", "passage_id", "second_passage_id", "claim_id")


def with_telling_ids(run):
    """The same run with ids that no text of it holds."""
    frames = {}
    for name in TABLES:
        frame = run[name].copy()
        for column in set(_IDS) & set(frame):
            frame[column] = ID + column + "-" + frame[column]
        frames[name] = frame
    return Run.create(dict(run.manifest), **frames)


def figures_of(diagnosis):
    """Every figure of a run, by name; those of one question for the question with most to show."""
    found, run = diagnosis["influence"], diagnosis.run
    figures = {"against_chance": against_chance(diagnosis)}
    for name in set(influence.__all__) - {"rank_slope", "verdict_changes"}:
        figures[name] = getattr(influence, name)(found)
    figures["rank_against_rank divergent"] = influence.rank_against_rank(found, "Divergent")
    first = found.queries.sort_values("reason", na_position="first", kind="stable")["query_id"].iloc[0]
    figures["rank_slope"] = influence.rank_slope(found, first)
    figures["retrieval_quality_chart"] = retrieval_quality.retrieval_quality_chart(
        diagnosis["retrieval_quality"]
    )
    figures["verdict_changes"] = influence.verdict_changes(compare_reported(run, found))
    if diagnosis.diagnostic("claims").lacks(run) is None:
        analysis = diagnosis["claims"]
        answer = analysis.answer(analysis.queries.sort_values("n_claims")["query_id"].iloc[-1])
        figures["claims_quadrants"] = claims.claims_quadrants(analysis)
        figures["evidence_matrix"] = claims.evidence_matrix(analysis)
        figures["f1_at_k_chart"] = claims.f1_at_k_chart(analysis)
        for shown in ("text", "causal", "both"):
            figures[f"claims_heatmap {shown}"] = claims.claims_heatmap(answer, shown)
    if diagnosis.diagnostic("uncertainty").lacks(run) is None:
        sampling = diagnosis["uncertainty"]
        most = sampling.queries.sort_values("n_meanings")["query_id"].iloc[-1]
        for name in (
            "entropy_agreement", "entropy_variance", "estimator_leaderboard", "risk_coverage", "stability_grounding",
        ):  # fmt: skip
            figures[name] = getattr(uncertainty, name)(sampling)
        figures["answer_scatter"] = uncertainty.answer_scatter(sampling, most)
    figures |= promises_of(diagnosis)
    figures |= confidences_of(diagnosis, first)
    figures |= verdicts_of(diagnosis)
    agreement = signal_agreement(diagnosis)
    figures["correlation_heatmap"] = signals.correlation_heatmap(agreement)
    for one in agreement.signals:
        figures[f"signal_histogram {one.key}"] = signals.signal_histogram(one)
    return figures


def confidences_of(diagnosis, query_id):
    """The figures of the confidence."""
    if diagnosis.diagnostic("confidence").lacks(diagnosis.run) is not None:
        return {}
    found = diagnosis["confidence"]
    return {
        "reliability_diagram": confidence.reliability_diagram(found),
        "waterfall": confidence.waterfall(found, query_id),
    }


def promises_of(diagnosis):
    """The figures of conformal prediction."""
    if diagnosis.diagnostic("conformal").lacks(diagnosis.run) is not None:
        return {}
    promises, figures = diagnosis["conformal"], {}
    for name in set(conformal.__all__) - {"coverage_by_alpha"}:
        figures[name] = getattr(conformal, name)(promises)
    for name in promises.coverages:
        figures[f"coverage_by_alpha {name}"] = conformal.coverage_by_alpha(promises, name)
    return figures


def verdicts_of(diagnosis):
    """The figures of validation."""
    if diagnosis.diagnostic("validation").lacks(diagnosis.run) is not None:
        return {}
    checked, now = diagnosis["validation"], datetime(2026, 11, 23, tzinfo=UTC)
    names = set(validation.__all__) - {"pass_rate_by_day"}
    days = validation.pass_rate_by_day(daily(checked.observations(now), now, 7))
    return {name: getattr(validation, name)(checked) for name in names} | {"pass_rate_by_day": days}


@cache
def drawn_of(name):
    """A run with telling ids and its figures."""
    diagnosis = Diagnosis(with_telling_ids(RUNS[name]()), SETTINGS.get(name))
    return diagnosis, figures_of(diagnosis)


@pytest.fixture(params=list(RUNS), scope="module")
def drawn(request):
    return drawn_of(request.param)


def doors_of(figure):
    """Door and hover text of every mark that leads somewhere."""
    if not has_doors(figure):
        return []
    marks = [data for trace in figure.data for data in (() if trace.customdata is None else trace.customdata)]
    return [(str(data[0]), str(data[1])) for data in marks if len(data) == 2 and data[0]]


def test_every_figure_is_drawn_here():
    packages = (confidence, conformal, influence, claims, uncertainty, signals, validation)
    own = {name for package in packages for name in package.__all__} | {"retrieval_quality_chart"}
    found = [
        (name.partition(" ")[0], figure)
        for run in ("worked", "simulated", "calibrated", "stopped")
        for name, figure in drawn_of(run)[1].items()
    ]
    assert own <= {name for name, _ in found}
    drawn = {name for name, figure in found if figure.data}
    assert drawn - {name for name, figure in found if doors_of(figure)} <= {
        "verdict_changes", "correlation_heatmap", "set_size",
        "waterfall",
        "pass_rate_by_day",
    }  # fmt: skip


def test_every_door_opens_and_its_mark_says_how_many_questions_are_behind_it(drawn):
    diagnosis, figures = drawn
    known, findings = set(diagnosis.run.queries["query_id"]), {key_of(one) for one in diagnosis.findings()}
    for name, figure in figures.items():
        for door, hover in doors_of(figure):
            ((kind, value),) = parse_qsl(door, strict_parsing=True)
            if kind == "question":
                assert value in known, name
            elif kind == "finding":
                assert value in findings, name
            else:
                n = len(matching(diagnosis, value))
                said = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", hover)}
                assert n and (n in said or name in UNCOUNTED), (name, n, hover, value)


def test_conditions_of_doors_are_words(drawn):
    diagnosis, figures = drawn
    for name, figure in figures.items():
        for value in {parse_qsl(door)[0][1] for door, _ in doors_of(figure) if door.startswith("where=")}:
            # The kind of a question is a text of its data set.
            said = re.sub(r"kind: \w+", "", describe(diagnosis, value))
            assert not re.search(r"_|\b(True|False|n|[A-Z]{2,})\b|%|\d{6}", said.replace("F1", "")), (
                name,
                said,
            )


def test_no_figure_shows_an_id_where_there_is_a_title(drawn):
    diagnosis, figures = drawn
    titles = diagnosis.run.passages["title"]
    hidden = ID if titles.notna().all() and (titles.str.strip() != "").all() else ID + "query"
    for name, figure in figures.items():
        for key, text in shown_strings(figure):
            if not re.match("(question|where|finding)=", text):
                assert hidden not in html.unescape(text), (name, key, text)


def test_every_figure_says_in_a_sentence_what_it_shows_and_of_how_many(drawn):
    _, figures = drawn
    for name, figure in figures.items():
        said = alt_text(figure)
        assert re.match("[A-Z]|nDCG|[0-9]", said) and said.endswith(".") and len(said) > 30, (name, said)
        assert not re.search(r"_|\bnan\b|None|<[^ ]", said), (name, said)
        if figure.data:
            assert re.search(r"[\d,]+ (question|passage|claim|answer|case|sample)|of [\d,]+", said), (
                name,
                said,
            )
