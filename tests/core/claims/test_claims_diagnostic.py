"""The diagnostic claims: headline numbers, findings, definitions."""

import json
import math

import pytest
from scipy.stats import binomtest

from core.claims.causal import CAUSAL_LABELS
from core.claims.definitions import CAUSAL, QUADRANT, STATE, VERDICT
from core.claims.diagnostic import CLAIMS, findings
from core.claims.matrix import CLAIM_STATES
from core.claims.quadrants import QUADRANTS, UNDEFINED
from core.claims.rafe import VERDICTS
from core.claims.ragchecker import METRICS as RAGCHECKER
from core.diagnosis import Diagnosis
from core.report.text import summary_text
from core.run import Run
from core.socket import METRIC, REASON
from core.sources.simulation import SimulationOptions, simulate
from tests.core.claims.claim_runs import CANAL, analysed, claims_run, matrix_question

SILENT = {"answer": "", "answer_status": "empty", "passages": [{"passage_id": "p1"}]}


def values(questions, manifest=None):
    return {number.key: number.value for number in CLAIMS.numbers(analysed(questions, manifest)[1])}


def test_numbers_by_hand():
    # 2 of 2; one of three by a pair only, one unscored; nothing said.
    mixed = matrix_question([[0.4, 0.3], [0.1, 0.0], [None, 0.2]], joint=[("a1", "p1", "p2", 0.8)])
    mixed["claims"].append({"text": "I hope this helps!", "claim_id": "a4"})
    numbers = values([CANAL, mixed, SILENT])
    json.dumps(numbers, allow_nan=False)
    assert {k: v for k, v in numbers.items() if k.startswith("n_")} == {
        "n_claims": 6, "n_claims_supported": 3, "n_claims_not_supported": 1, "n_claims_irrelevant": 1,
        "n_claims_unscored": 1, "n_claims_joint": 1, "n_cells_unscored": 1, "n_grounding": 2,
        "n_claim_uncertainty": 2, "n_with_claims": 2, "n_verdicts_changed": 0, "n_verdicts_from_file": 0,
    }  # fmt: skip
    assert numbers["mean_grounding"] == pytest.approx((1 + 1 / 2) / 2)
    assert numbers["grounding_ci"] == [0.0, 1.0]  # two answers say next to nothing
    # Of the canal's claims 1 - 1.2/4 each, or 1 - 0.3; of the others 0.65, 0.95 and 0.8.
    assert numbers["mean_claim_uncertainty"] == pytest.approx(((0.7 + 0.7) / 2 + 0.8) / 2)
    assert numbers["claims_judge"] == "hand" and numbers["support_threshold"] == 0.5
    assert numbers["claims_undefined_reasons"] == {"empty": 1}
    # The passages of the canal, and two whose influence is not known; none of the empty answer.
    assert numbers["quadrants"] == {
        "used evidence": 1, "distractor": 1, "redundant or wasted": 1, "idle": 0, "undefined": 3,
    }  # fmt: skip


def test_a_run_without_claims_has_every_key_and_no_number():
    simulated = simulate(SimulationOptions(queries=10, passages=4))
    run = Run.create({"source": "simulation"}, queries=simulated.queries, passages=simulated.passages)
    numbers = Diagnosis(run).numbers("claims")
    assert [number.key for number in numbers] == list(values([CANAL]))
    assert all(number.value is None for number in numbers)
    assert CLAIMS.lacks(run) and CLAIMS.findings(Diagnosis(run)["claims"]) == ()
    assert CLAIMS.lacks(run) in summary_text(Diagnosis(run))


def test_extracted_and_none_found_is_none_of_these():
    numbers = values([SILENT], {"steps": {"claims": {"n_not_extracted": 0}}})
    assert numbers["n_claims"] == 0 and numbers["mean_grounding"] is None and numbers["grounding_ci"] is None
    assert numbers["mean_claim_uncertainty"] is None and numbers["claims_judge"] is None
    assert sum(numbers["quadrants"].values()) == 0


def test_a_mean_over_one_answer_has_no_interval():
    numbers = values([CANAL])
    assert (numbers["mean_grounding"], numbers["grounding_ci"], numbers["n_grounding"]) == (1, None, 1)


def test_f1_of_each_answer_is_at_the_usual_k():
    # Both claims supported: precision 1, recall 2 of 10.
    _, claims = analysed([CANAL, SILENT])
    assert claims.queries["f1_at_k"].tolist() == pytest.approx([2 * 0.2 / 1.2, math.nan], nan_ok=True)
    shown = {column.name: column.title for column in CLAIMS.columns}
    assert shown["f1_at_k"] == "F1@10" and set(shown) <= set(claims.queries)


def test_who_extracted_and_who_verified_is_part_of_the_set_up():
    step = {"decomposition": "model:small"}
    setup = [
        n for n in CLAIMS.numbers(analysed([CANAL], {"steps": {"claims": step}})[1]) if n.place == "setup"
    ]
    assert [(n.title, n.text) for n in setup] == [
        ("Claims verified by", "hand"),
        ("Claims extracted by", "model:small"),
    ]


def test_the_terminal_shows_what_there_is():
    text = summary_text(Diagnosis(claims_run([CANAL, SILENT])))
    lines = {line.strip().split("  ")[0]: line for line in text.split("\n") if line}
    assert "n = 1 answer" in lines["Claims"]
    assert "2 of 2" in lines["Supported claims"]
    assert "1.00" in lines["Mean grounding"] and "interval" not in lines["Mean grounding"]
    assert "The answer is empty" in lines["Empty"]
    assert "supports a claim" in lines["Used evidence"]
    # Nothing scored: dashes, no 0 and no 1.
    unscored = Diagnosis(claims_run([{"answer": "Paris", "claims": [{"text": "Paris"}]}]))
    counted = [number for number in unscored.numbers("claims") if not isinstance(number.value, dict)]
    shown = {number.title: (number.text, number.basis) for number in counted}
    assert shown["Mean grounding"] == ("—", "n = 0 answers")
    assert shown["Supported claims"] == ("—", "")
    assert shown["Unscored claims"] == ("1 of 1", "")


def test_words_of_the_analysis_are_defined():
    of = {
        kind: [d.name for d in CLAIMS.definitions if d.kind == kind]
        for kind in (STATE, VERDICT, QUADRANT, CAUSAL)
    }
    assert set(of[STATE]) == set(CLAIM_STATES) and set(of[VERDICT]) == set(VERDICTS)
    assert set(of[QUADRANT]) == {*QUADRANTS, UNDEFINED} and set(of[CAUSAL]) == set(CAUSAL_LABELS)
    metrics = {
        "claim_uncertainty",
        "grounding",
        "support_maximum",
        "any_support",
        "passage_importance",
        "f1_at_k",
    }
    assert all(CLAIMS.define(name, METRIC) for name in metrics | set(RAGCHECKER))
    assert all(definition.meaning for definition in CLAIMS.definitions)


def test_every_reason_that_is_given_is_defined_here():
    """The page showed the words of the first diagnostic that has a reason of this name: *error* collides."""
    defined = {definition.name for definition in CLAIMS.definitions if definition.kind == REASON}
    given = set()
    mixed = [CANAL, SILENT, {"answer": "Paris", "claims": [{"text": "Paris"}]}, {"answer": "Paris"}]
    for questions in ([SILENT], mixed, [matrix_question([[None]])]):
        claims = analysed(questions)[1]
        given |= set(claims.queries["reason"].dropna()) | set(claims.ragchecker["reason"].dropna())
    assert {"not_run", "empty", "no_passages", "no_reference"} <= given <= defined


def test_the_support_threshold_moves_verdicts_and_names_itself():
    diagnosis = Diagnosis(claims_run([CANAL]))
    strict = diagnosis.at({"support": 0.95})
    assert strict.summary()["n_claims_supported"] == 0 and strict.summary()["support_threshold"] == 0.95
    assert diagnosis.summary()["n_claims_supported"] == 2
    assert CLAIMS.findings(diagnosis["claims"]) != CLAIMS.findings(strict["claims"])


# --- findings


def found(questions, manifest=None):
    return {finding.name: finding for finding in findings(analysed(questions, manifest)[1])}


def test_unsupported_claims_are_a_finding_with_the_worst_answers_first():
    questions = [
        matrix_question([[0.9, 0.9], [0.0, 0.1]], query_id="one"),
        matrix_question([[0.2, 0.1], [0.1, 0.3]], query_id="both"),
        matrix_question([[0.9, 0.9]], query_id="none"),
    ]
    only = found(questions)
    assert list(only) == ["unsupported"]
    finding = only["unsupported"]
    assert finding.sentence == "3 of 5 claims checked have no supporting passage, in 2 answers."
    assert (finding.n, finding.of, finding.query_ids) == (3, 5, ("both", "one"))
    # Three answers cannot say more: Wilson's interval of 3 of 5 independent claims would be 0.23 to 0.88.
    assert finding.interval[0] < 0.1 and finding.interval[1] > 0.95
    assert finding.expected_by_chance is None and finding.p_value is None
    assert finding.severity == "low" and "offline" not in finding.advice
    assert found([matrix_question([[0.9, 0.9]])]) == {}


def test_findings_are_ordered_as_the_table_without_reading_the_ablated_answers():
    supported, unsupported = [0.9, 0.9], [0.1, 0.1]
    questions = [
        matrix_question([supported, unsupported], query_id="half"),
        matrix_question([supported], query_id="none"),
        matrix_question([unsupported], query_id="all"),
        matrix_question([unsupported, supported], query_id="half again"),
        matrix_question([unsupported, supported, unsupported], query_id="most"),
    ]
    claims = analysed(questions)[1]
    worst = findings(claims)[0].query_ids
    assert worst == ("most", "all", "half", "half again") == tuple(claims.unsupported["query_id"].unique())
    fresh = analysed(questions)[1]
    assert findings(fresh) and "effects" not in vars(fresh.layout)


def test_unsupported_claims_agree_in_number():
    """Said of one claim: "1 of 1 claim have"; of 73: "40 of 73 verified claims in 40 answers have"."""
    one = found([matrix_question([[0.1, 0.1]])])["unsupported"]
    assert one.sentence == "1 of 1 claim checked has no supporting passage, in 1 answer."
    assert one.clause.startswith("1 of 1 claim in the answers has no supporting passage")
    several = [matrix_question([[0.1] if i < 40 else [0.9]], query_id=f"q{i}") for i in range(73)]
    many = found(several)["unsupported"]
    assert many.sentence == "40 of 73 claims checked have no supporting passage, in 40 answers."
    assert "claims in the answers have no supporting passage" in many.clause


@pytest.mark.parametrize(("n", "severity"), [(6, "low"), (12, "medium"), (24, "high"), (54, "high")])
def test_how_severe_unsupported_claims_are(n, severity):
    """Of 60 answers with one claim each, by the lower end: 3 %, 11 %, 28 %, 79 % (exact intervals)."""
    questions = [matrix_question([[0.0] if i < n else [0.9]], query_id=f"q{i}") for i in range(60)]
    finding = found(questions)["unsupported"]
    assert finding.severity == severity
    exact = binomtest(n, 60).proportion_ci()
    # A little wider than that of 60 cases whose variance is known.
    assert exact.low - 0.02 < finding.interval[0] <= exact.low
    assert exact.high <= finding.interval[1] < exact.high + 0.02


def test_claims_of_one_answer_are_not_independent():
    """20 answers with 5 claims, 8 of them wholly unsupported, are 20 cases: Wilson said 31 to 50 %, high."""
    questions = [matrix_question([[0.0 if i < 8 else 0.9]] * 5, query_id=f"q{i}") for i in range(20)]
    finding = found(questions)["unsupported"]
    exact = binomtest(8, 20).proportion_ci()  # 19 to 64 %
    assert finding.interval == pytest.approx((exact.low, exact.high), abs=0.04)
    assert finding.severity == "medium"
    supported = next(n for n in CLAIMS.numbers(analysed(questions)[1]) if n.key == "n_claims_supported")
    low, high = (round(100 * (1 - end)) for end in reversed(finding.interval))
    assert f"95 % interval of the share {low} to {high} %" in supported.note


def test_findings_of_the_offline_verifier_say_how_weak_it_is():
    claim = {"text": "It is old.", "cells": {"p1": {"probability": 0.1, "judge": "offline"}}}
    one = found([{"answer": "It is old.", "passages": [{"passage_id": "p1"}], "claims": [claim]}])
    assert one["unsupported"].sentence.startswith("1 of 1 claim checked has no")
    assert "offline verifier is weak" in one["unsupported"].advice


def test_unscored_cells_are_a_finding_with_their_reason():
    questions = [
        matrix_question([[0.9, 0.9], [0.9, None]], query_id="few"),
        matrix_question([[None, None], [0.9, 0.9]], query_id="many"),
    ]
    facts = {"unscored_reasons": {"The model is busy.": 1, "The server failed.": 2}}
    finding = found(questions, {"steps": {"claims": facts}})["unscored"]
    assert finding.sentence == (
        "3 of 8 pairs of claim and passage have no score. Most often: The server failed."
    )
    assert (finding.n, finding.of, finding.severity) == (3, 8, "low")  # of two answers
    assert finding.query_ids == ("many", "few")
    assert "Most often" not in found(questions)["unscored"].sentence


def test_claims_that_depend_on_one_passage_are_a_finding_where_most_do():
    fragile, strong, alone = [0.9, 0.1], [0.9, 0.9], [0.9]
    finding = found([matrix_question([fragile, strong]), matrix_question([alone])])["fragile"]
    # With a single passage there is nothing else to support a claim.
    assert (finding.n, finding.of, finding.severity, finding.query_ids) == (1, 2, "low", ("q1",))
    assert finding.sentence == "1 of 2 supported claims has only one supporting passage."
    assert found([matrix_question([fragile, strong, strong])]) == {}
    # The answer with most of them first.
    most = found([matrix_question([fragile], query_id="one"), matrix_question([fragile] * 2, query_id="two")])
    assert most["fragile"].query_ids == ("two", "one")
