"""The four measures of influence, from the setting to the export: expected values by hand."""

import csv
import io
import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from core.charts.influence import influence_by_rank, rank_slope
from core.cli import main
from core.diagnosis import Diagnosis
from core.influence import analyse
from core.influence.definitions import REASONS
from core.influence.diagnostic import MEASURE, influence_csv
from core.influence.measures import MEASURES
from core.run import Run
from core.worklist import worklist
from tests.core.influence.subset_runs import additive, any_of_three, noise, subsets_run
from tests.core.influence.test_analysis import make

# Of any one of three, a random half of the others needs a passage in 1 of 4 cases, a random order in 1 of 3.
BY_HAND = {"surrogate": [0.75, 0.75, 0.75, 2.0], "shapley": [1.0, 1.0, 1.0, 2.0]}
SIGNED = (2.0, -1.0, 1.0, 0.5)


def of(run, measure):
    return Diagnosis(run, {"influence": measure})


def values(found, query_id):
    return found.passages.loc[found.passages["query_id"] == query_id, "influence"].to_numpy()


def exported(diagnosis):
    return list(csv.DictReader(io.StringIO(influence_csv(diagnosis).decode("utf-8-sig"))))


@pytest.mark.parametrize("measure", BY_HAND)
def test_influence_is_the_score_of_the_diagnostic_attribution(measure):
    diagnosis = of(subsets_run(additive(*SIGNED), any_of_three()), measure)
    found = diagnosis["influence"]
    assert found.measure.name == measure and found.measure.unit == "nats"
    assert values(found, "q1") == pytest.approx(SIGNED) and values(found, "q2") == pytest.approx(
        BY_HAND[measure]
    )
    # Every subset was measured: nothing is left to chance.
    for end in ("influence_low", "influence_high"):
        assert found.passages[end].to_numpy() == pytest.approx(found.passages["influence"].to_numpy())
    q = found.queries.set_index("query_id").loc["q1"]
    assert found.passages["influence_rank"].tolist()[:4] == [1, 4, 2, 3]
    # Rank differences 0, 2, 1, 1; what is below 0 has no share of 3.5 nats.
    assert math.isclose(q["rho"], 1 - 6 * 6 / (4 * 15)) and math.isclose(q["dominance"], 2 / 3.5)
    assert found.queries["noise_quantile"].isna().all() and found.passages["above_noise"].isna().all()
    summary = diagnosis.summary()
    assert summary["influence"] == measure and summary["n_defined"] == 2


@pytest.mark.parametrize("measure", BY_HAND)
def test_export_and_figures_name_the_measure(measure):
    diagnosis = of(subsets_run(additive(*SIGNED), additive(*SIGNED)), measure)
    rows = exported(diagnosis)
    assert [float(row[measure]) for row in rows[:4]] == pytest.approx(SIGNED)
    assert [float(row[f"{measure}_high"]) for row in rows[:4]] == pytest.approx(SIGNED)
    assert not {"rouge_l", "influence_score", "logprob_drop"} & {*rows[0]}
    noun = MEASURES[measure].noun
    figure = influence_by_rank(diagnosis["influence"])
    assert figure.layout.yaxis.title.text == f"Mean {noun} (nats)"
    slope = json.loads(rank_slope(diagnosis["influence"], "q1").to_json())
    assert f"{noun[0].upper()}{noun[1:]} −1.00 nats" in str(slope)


def test_the_same_run_by_words_and_by_subsets():
    """Settings of one run share nothing of the measure, and labels move with the threshold by each."""
    run = subsets_run(any_of_three())
    passages = run.passages.assign(ablated_answer=["Bea", "Ada", "Ada", "Ada"], ablated_status="answered")
    diagnosis = Diagnosis(Run.create(run.manifest, **{**run.tables, "passages": passages}))
    by_words = diagnosis["influence"]
    other = diagnosis.at({"influence": "shapley", "influence_threshold": -1.0})["influence"]
    assert values(by_words, "q1").tolist() == [1, 0, 0, 0] and other.threshold == -1.0
    assert values(other, "q1") == pytest.approx(BY_HAND["shapley"])
    assert other.queries["label"].tolist() == ["Aligned"]
    again = diagnosis.at({"influence": "shapley", "influence_threshold": 0.5})["influence"]
    assert again.queries["label"].tolist() == ["Divergent"] and again.random_rhos is other.random_rhos
    # Three tie, so that no order reaches more than 3 / √15.
    assert math.isclose(again.queries["attainable_rho"][0], 3 / math.sqrt(15))


def test_of_generated_answers_values_are_in_the_unit_of_their_words():
    stays = [float(kept) for kept in additive(1, 0, 0, 0)]
    found = of(subsets_run(stays, answers=True), "surrogate")["influence"]
    assert found.measure.unit == "ROUGE-L F1" and values(found, "q1") == pytest.approx([1, 0, 0, 0])
    assert influence_by_rank(found).layout.yaxis.title.text == "Mean surrogate score (ROUGE-L F1)"


def test_what_was_not_measured_says_which_step_to_run():
    bare, half = subsets_run(None, None), subsets_run(any_of_three(), None, shapley=False)
    for run, measure, reasons in (
        (bare, "rouge", ["no_ablations"] * 2),
        (bare, "logprob", ["not_scored"] * 2),
        (bare, "surrogate", ["no_subsets"] * 2),
        (bare, "shapley", ["no_shapley"] * 2),
        (half, "surrogate", [None, "no_subsets"]),
        (half, "shapley", ["no_shapley"] * 2),
    ):
        found = of(run, measure)["influence"]
        assert [None if pd.isna(one) else one for one in found.queries["reason"]] == reasons
    assert "run the step attribution." in REASONS["no_subsets"].meaning
    assert "step attribution with --shapley" in REASONS["no_shapley"].meaning
    diagnosis = of(half, "shapley")
    (finding,) = [one for one in diagnosis.findings_of("influence") if one.name == "no_shapley"]
    assert (finding.n, finding.of) == (2, 2) and "--steps attribution --shapley" in finding.advice
    assert finding.clause.endswith("no Shapley values were measured")
    assert "--shapley" in influence_by_rank(diagnosis["influence"]).layout.annotations[0].text
    assert [row["shapley"] for row in exported(diagnosis)] == [""] * 8


def test_other_diagnostics_pass_the_reason_on():
    run = subsets_run(any_of_three(), None, n_gold=1)
    passages = run.passages.assign(is_gold=[True, False, False, False] * 2)
    run = Run.create(run.manifest, **{**run.tables, "passages": passages})
    q = of(run, "surrogate")["retrieval_quality"].queries
    assert pd.isna(q["influence_reason"][0]) and q["influence_reason"][1] == "no_subsets"
    assert q["gold_influence_rank"][0] == 3  # the mean of 2, 3 and 4


def test_where_no_subset_matters_nothing_is_said_of_single_removals():
    """Inert and redundant are about leaving out one passage; random subsets say more than that."""
    run = subsets_run(additive(0, 0, 0, 0), closed_book_answer="Bea")
    found = of(run, "surrogate")["influence"]
    assert found.queries["reason"][0] == "inert"
    assert not found.queries[["inert", "redundant"]].to_numpy().any()
    assert found.testable["inert"] == found.testable["redundant"] == 0
    scored = Run.create(run.manifest, **{**run.tables, "passages": run.passages.assign(logprob_drop=0.0)})
    assert of(scored, "logprob")["influence"].queries[["inert", "redundant"]].to_numpy().all()


def test_an_empty_answer_has_no_influence_by_any_measure():
    run = subsets_run(any_of_three())
    empty = run.queries.assign(answer="", answer_status="empty")
    run = Run.create(run.manifest, **{**run.tables, "queries": empty})
    for measure in MEASURES:
        assert of(run, measure)["influence"].queries["reason"][0] == "empty_baseline"


def test_the_worklist_follows_the_measure():
    """Twelve questions whose most used passage comes last, by subsets only: an order of use that is late."""
    run = subsets_run(*[additive(0.1, 0.2, 0.3, 5.0)] * 12)
    by = {measure: of(run, measure) for measure in ("rouge", "surrogate")}
    assert {one.name for one in by["rouge"].findings_of("influence")} == {"no_ablations"}
    late = next(one for one in by["surrogate"].findings_of("influence") if one.name == "influence_ndcg")
    assert "retrieved last" in late.sentence and late.p_adjusted < 0.05
    assert len(worklist(by["surrogate"])) == 12


def test_noise_stays_noise():
    """What no passage explains is ranked, and attribution says that the ranks are not to be read."""
    diagnosis = of(subsets_run(noise()), "surrogate")
    assert not diagnosis["attribution"].queries["readable"][0]
    assert np.isfinite(values(diagnosis["influence"], "q1")).all()


def test_every_measure_says_what_it_answers():
    assert MEASURE.choices == tuple(MEASURES) and len(set(MEASURE.titles)) == len(MEASURES)
    for one in MEASURES.values():
        assert f"{one.title} ({one.name}): {one.asks}." in MEASURE.help
        assert one.reason == REASONS[one.reason.name] and one.reason.advice and one.gap
        assert one.is_signed == bool(one.noise)


@pytest.mark.parametrize(
    ("measure", "bounds", "one_by_one", "reads_attribution", "is_predicted"),
    [
        ("rouge", (0, 1), True, False, False),
        ("logprob", (-math.inf, math.inf), True, False, False),
        ("surrogate", (-math.inf, math.inf), False, True, True),
        ("shapley", (-math.inf, math.inf), False, True, False),
    ],
)
def test_what_kind_of_measure_it_is(measure, bounds, one_by_one, reads_attribution, is_predicted):
    found = MEASURES[measure]
    assert found.bounds == bounds and found.is_signed == (bounds[0] < 0)
    assert (found.one_by_one, found.reads_attribution) == (one_by_one, reads_attribution)
    assert found.is_predicted == is_predicted and found.heading == found.noun.capitalize()


@pytest.mark.parametrize(("more", "ranks"), [(4e-9, [2, 1, 3]), (4e-10, [1.5, 1.5, 3])])
def test_sums_that_differ_in_the_tenth_place_are_equal(more, ranks):
    run = make([[0, 0, 0]])
    scores = run.passages[["query_id", "passage_id"]].assign(score=[0.5, 0.5 + more, 0.1], low=0.0, high=1.0)
    by = SimpleNamespace(unit="nats", passages=scores)
    found = analyse(run, measure="surrogate", attribution=by)
    assert found.passages["influence_rank"].to_list() == ranks


@pytest.mark.parametrize("measure", BY_HAND)
def test_on_the_command_line(measure, tmp_path, capsys):
    subsets_run(additive(*SIGNED)).save(tmp_path / "run")
    assert main(["summary", str(tmp_path / "run"), "--influence", measure, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["influence"] == measure and math.isclose(found["mean_rho"], 0.4)
