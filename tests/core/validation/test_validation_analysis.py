"""Counts of verdicts by hand, what chance gives, and what is said of a run."""

import math
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact

from core.diagnosis import Diagnosis
from core.pipeline import fill
from core.socket import BAD, GOOD, REASON, UNCLEAR
from core.validation.analysis import (
    NO_ANSWER,
    NO_TEXTS,
    NOT_VALIDATED,
    VALIDATOR_FAILED,
    analyse_validation,
)
from core.validation.definitions import CODES, DEFINITIONS
from core.validation.diagnostic import VALIDATION, findings, numbers
from core.validation.fallback import verdicts_of
from core.validation.metrics import flags_of
from core.validation.step import ValidationStep
from core.validation.types import Code, Severity
from tests.core.validation.validation_runs import run_of


@pytest.fixture(scope="module")
def validated():
    return fill(run_of(), ValidationStep(evidence_threshold=0.01))


@pytest.fixture
def seven(validated):
    return Diagnosis(validated)


def finding(diagnosis, name):
    (found,) = [one for one in diagnosis.findings_of("validation") if one.name == name]
    return found


def test_the_questions_by_hand(seven):
    q = seven["validation"].queries.set_index("query_id")
    assert q["passed"].to_list() == [True, False, False, pd.NA, False, False, pd.NA]
    assert q["critical"].to_list() == [False, True, True, pd.NA, False, True, pd.NA]
    assert q["fallback"].to_list() == q["critical"].to_list()
    assert q["n_failed"].to_list() == [0, 2, 1, pd.NA, 1, 3, pd.NA]
    assert q["reasons"].fillna("").to_list() == [
        "", "missing_citation, overconfident", "empty_answer", "", "missing_citation",
        "low_overlap, unsupported_number, missing_uncertainty", "",
    ]  # fmt: skip
    scores = q["context_score"]
    assert scores.dropna().to_dict() == {"fine": 0.9, "sure": 0.1, "empty": 0.1, "bare": 0.6, "lost": 0.1}
    assert q["band"].to_list() == ["high", "low", "low", "undefined", "medium", "low", "undefined"]
    assert q["reason"].dropna().to_dict() == {"error": "answer_missing", "dark": "passages_without_text"}
    assert q["correct"].to_list() == [True, False, pd.NA, pd.NA, True, False, True]
    assert q["overlap"].dropna().to_dict() == {"fine": 1, "bare": 1, "lost": 0}


def test_the_verdicts_of_an_answer_by_hand(seven):
    frame = seven["validation"].verdicts
    own = frame[frame["query_id"] == "lost"].drop(columns="query_id").fillna({"objection": ""})
    assert list(own.itertuples(index=False, name=None)) == [
        ("CitationRequired", "passed", False, "", False),
        ("EvidenceOverlap", "warning", True, "low_overlap", False),
        ("NumericUnits", "warning", True, "unsupported_number", False),
        ("ConfidenceValidator", "critical", True, "missing_uncertainty", False),
        ("EthicsAdapter", "not applied", False, "", False),
    ]


def test_each_validator_against_chance_by_hand(seven):
    frame = seven["validation"].validators.set_index("validator")
    counts = frame[["n", "n_applied", "n_passed", "n_warning", "n_critical"]]
    # Of the five; the empty answer has no statement to cite for, and nothing to compare.
    assert counts.loc["CitationRequired"].to_list() == [5, 4, 2, 1, 1]
    assert counts.loc["EvidenceOverlap"].to_list() == [5, 3, 2, 1, 0]
    assert counts.loc["NumericUnits"].to_list() == [5, 1, 0, 1, 0]
    assert counts.loc["ConfidenceValidator"].to_list() == [5, 5, 2, 0, 3]
    assert counts.loc["EthicsAdapter"].to_list() == [5, 0, 0, 0, 0]
    # Four labelled: "sure" and "lost" are wrong, "fine" and "bare" are right.
    assert frame["n_wrong"].to_list() == frame["n_right"].to_list() == [2] * 5
    assert frame["wrong_flagged"].to_list() == [1, 1, 1, 2, 0]
    assert frame["right_flagged"].to_list() == [1, 0, 0, 0, 0]
    assert frame["wrong_by_chance"].to_list() == [1, 0.5, 0.5, 1, 0]
    # Of the six pairs of four answers one has both wrong ones, and one none: as far from chance.
    assert frame["p_value"].to_list() == pytest.approx([1, 1, 1, 2 / 6, math.nan], nan_ok=True)
    assert frame["recall"].to_list() == [0.5, 0.5, 0.5, 1, 0]
    assert frame["precision"].to_list()[:4] == [0.5, 1, 1, 1] and math.isnan(frame["precision"].iloc[4])


def test_reasons_metrics_and_stops_by_hand(seven):
    found = seven["validation"]
    # Two of the four labelled answers are wrong: two flags meet none with p = 1/6, one flag with p = 1/2.
    # Those as frequent are in the order in which the run has them; the empty answer has no label.
    assert list(found.reasons.itertuples(index=False, name=None)) == [
        ("CitationRequired", "missing_citation", 2, 5, 1, 1, 1, 0, 2),
        ("ConfidenceValidator", "overconfident", 1, 5, 1, 0, 0.5, 0, 1),
        ("ConfidenceValidator", "empty_answer", 1, 5, 0, 0, 0, 0, 0),
        ("EvidenceOverlap", "low_overlap", 1, 5, 1, 0, 0.5, 0, 1),
        ("NumericUnits", "unsupported_number", 1, 5, 1, 0, 0.5, 0, 1),
        ("ConfidenceValidator", "missing_uncertainty", 1, 5, 1, 0, 0.5, 0, 1),
    ]
    assert (found.metrics.passed.count, found.metrics.passed.n) == (1, 5)
    assert (found.metrics.fallback.count, found.metrics.prevented.count) == (3, 3)
    assert found.metrics.confidence.mean == pytest.approx(1.8 / 5)
    assert found.metrics.overlap.mean == pytest.approx(2 / 3)  # 1, 1 and 0
    assert (found.stopped.off.count, found.stopped.on.count, found.stopped.n) == (2, 0, 4)
    assert (found.stopped.wrong.rate, found.stopped.right.rate) == (1, 0)


def test_numbers_say_what_chance_gives(seven):
    said = {one.key: one for one in seven.numbers("validation")}
    assert said["n_passed"].text == "1 of 5" and said["n_stopped"].text == "3 of 5"
    assert (said["incorrect_stopped"].text, said["incorrect_stopped"].context) == (
        "2 of 2", "1.0 by chance; p = 0.33",
    )  # fmt: skip
    one = said["flagged_by_CitationRequired"]
    assert (one.text, one.context) == ("1 of 2", "1.0 by chance; 1 of 2 correct ones; p = 1")
    assert said["flagged_by_EthicsAdapter"].text == "—", "it applied to no answer"
    assert said["context_bands"].value == {"low": 3, "medium": 1, "high": 1}
    assert said["validation_undefined_reasons"].value == {"answer_missing": 1, "passages_without_text": 1}
    # 0.8 of two passages twice, and 0.2 of none, or of no ground, three times; 0.36 was "0.44 of it" for these.
    score = said["mean_context_score"]
    assert (score.text, score.place) == ("0.36", "row"), "no headline"
    assert score.note == "0.44 for the number of passages, −0.08 for validation"


def test_without_labels_or_verdicts_nothing_is_compared():
    unlabelled = Diagnosis(fill(run_of(references=()), ValidationStep()))
    found = unlabelled["validation"]
    assert not found.stopped.n and math.isnan(found.stopped.expected) and found.n == 5
    assert {one.name for one in unlabelled.findings_of("validation")} == {
        "answers_stopped",
        "answers_objected",
    }
    said = {one.key: one for one in unlabelled.numbers("validation")}
    assert said["incorrect_stopped"].text == "—" and said["n_stopped"].text == "3 of 5"
    empty = Diagnosis(run_of())
    assert empty["validation"].queries["reason"].value_counts().to_dict() == {
        "not_validated": 5, "answer_missing": 1, "passages_without_text": 1,
    }  # fmt: skip
    assert empty.findings_of("validation") == ()
    assert empty.diagnostic("validation").lacks(empty.run).startswith("Not validated")


def labelled(flags, wrong):
    """A run whose answers one validator flags as said: of the first ``wrong`` ones, which are incorrect, and so on."""
    cases = {f"q{i:02}": ("Brunel" if i < wrong else "Ada Unwin", ()) for i in range(len(flags))}
    rows = [
        {"query_id": name, "validator": "NumericUnits", "passed": not flag, "reason": "unsupported_number"}
        for name, flag in zip(cases, flags, strict=True)
    ]
    return Diagnosis(run_of(cases, verdicts=rows))


def test_a_validator_that_separates_is_in_order():
    diagnosis = labelled([True] * 8 + [False] * 2 + [True] + [False] * 9, 10)
    one = finding(diagnosis, "reliable_objection")
    oracle = fisher_exact([[8, 2], [1, 9]]).pvalue
    assert (one.n, one.of, one.tone, one.expected_by_chance) == (8, 10, GOOD, 4.5)
    assert one.p_value == pytest.approx(oracle) and oracle < 0.01
    assert (
        one.sentence
        == "NumericUnits objects to 8 of 10 incorrect answers (80 %) and to 1 of 10 correct ones (10 %)."
    )
    assert one.query_ids[0] == "q00" and one.query_ids[-1] == "q10"


def test_a_validator_that_objects_to_correct_answers_instead_is_broken():
    one = finding(labelled([True] + [False] * 9 + [True] * 8 + [False] * 2, 10), "unreliable_objection")
    assert (one.tone, one.severity, one.n, one.expected_by_chance) == (BAD, "high", 1, 4.5)
    assert one.p_value == pytest.approx(fisher_exact([[1, 9], [8, 2]]).pvalue)
    assert one.query_ids[0] == "q10", "the correct answers that it flags come first"


def test_a_validator_that_objects_to_all_raises_false_alarms():
    every = finding(labelled([True] * 20, 10), "unreliable_objection")
    # Surely more than a quarter of the correct answers: Wilson's interval of 10 of 10 begins at 0.72.
    assert (every.tone, every.severity, every.p_value) == (BAD, "medium", None)


@pytest.mark.parametrize("flags", [[True] * 3 + [False] * 7, [True, True] + [False] * 8])
def test_what_chance_explains_is_no_finding(flags):
    """Each validator corrected for itself, and one that may be chance was said all the same."""
    names = {one.name for one in labelled([*flags, True, *[False] * 9], 10).findings_of("validation")}
    assert not {"reliable_objection", "unreliable_objection"} & names


# --- validation as a gate


def gated(stopped_wrong, wrong, stopped_right, right):
    """A run with so many incorrect answers of which so many are stopped, and likewise correct ones."""
    stops = [i < stopped_wrong for i in range(wrong)] + [i < stopped_right for i in range(right)]
    cases = {f"q{i:03}": ("Brunel" if i < wrong else "Ada Unwin", ()) for i in range(len(stops))}
    rows = [
        {
            "query_id": name, "validator": "ConfidenceValidator", "passed": not stop,
            "reason": "missing_uncertainty", "severity": "critical" if stop else "none",
        }
        for name, stop in zip(cases, stops, strict=True)
    ]  # fmt: skip
    return Diagnosis(run_of(cases, verdicts=rows))


def test_a_gate_that_stops_no_incorrect_answer_is_a_high_finding():
    """57 incorrect answers, none stopped, and nothing was said of it."""
    diagnosis = gated(0, 57, 0, 6)
    one = finding(diagnosis, "gate_fails")
    assert (one.tone, one.severity, one.fix, one.p_value) == (BAD, "high", "gate:replace", None)
    assert one.sentence == "Validation stops none of 57 incorrect answers."
    assert one.advice == "Do not use these validators as a gate here."
    assert len(one.query_ids) == 57 and {one.n, one.of} == {0, 57}
    assert diagnosis.findings()[0].severity == "high"


def test_a_gate_that_stops_no_more_than_chance_would_is_the_same_finding():
    """28 of 100 incorrect and 27 of 90 correct answers stopped: Newcombe's interval is −15 to 11 points."""
    one = finding(gated(28, 100, 27, 90), "gate_fails")
    assert (one.tone, one.severity, one.fix) == (BAD, "high", "gate:replace")
    assert one.p_value == pytest.approx(fisher_exact([[28, 72], [27, 63]]).pvalue) and one.p_value > 0.7
    assert "as many stops at random would meet 28.9 incorrect ones" in one.sentence


def test_with_few_labels_a_gate_is_unclear():
    for few in (gated(0, 5, 0, 5), gated(2, 6, 1, 6), gated(0, 1, 0, 0)):
        one = finding(few, "gate_unclear")
        assert (one.tone, one.severity, one.fix) == (UNCLEAR, "low", "labels:more")
    assert one.sentence == "Validation does not stop the only incorrect answer."


def test_a_gate_that_works_is_in_order_and_one_that_works_the_wrong_way_is_not():
    works = finding(gated(40, 57, 1, 30), "stops_incorrect")
    assert (works.tone, works.severity, works.fix) == (GOOD, "low", "")
    assert works.p_value == pytest.approx(fisher_exact([[40, 17], [1, 29]]).pvalue)
    wrong_way = finding(gated(1, 57, 20, 30), "gate_fails")
    assert (wrong_way.tone, wrong_way.severity) == (BAD, "high") and wrong_way.p_adjusted < 0.001
    assert "they stop correct answers instead" in wrong_way.advice


def judged(wrong=(), right=(), unknown=()):
    """The analysis of answers that are known to be incorrect or correct, or not known.

    Each is stopped (True), passes (False) or was not validated (None).
    """
    groups = {"wrong": (wrong, 0.0), "right": (right, 1.0), "unknown": (unknown, math.nan)}
    cases = {
        f"{name}{i}": (stop, value) for name, (stops, value) in groups.items() for i, stop in enumerate(stops)
    }
    rows = [
        {
            "query_id": name, "validator": "ConfidenceValidator", "passed": not stop,
            "reason": "missing_uncertainty" if stop else "fine", "severity": "critical" if stop else "none",
        }
        for name, (stop, _) in cases.items()
        if stop is not None
    ]  # fmt: skip
    run = run_of(dict.fromkeys(cases, ("Brunel", ())), verdicts=rows)
    return analyse_validation(run, np.array([value for _, value in cases.values()]))


def said_of(analysis, *names):
    (found,) = [one for one in findings(analysis) if one.name in names]
    return found


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ([False], [False], "does not stop the only incorrect answer"),
        ([False], [True], "does not stop the only incorrect answer but stops 1 of 1 correct one; "
                          "as many stops at random would meet 0.5 incorrect ones"),
        ([True], [False] * 4, "stops 1 of 1 incorrect answer and none of 4 correct ones; "
                              "as many stops at random would meet 0.2 incorrect ones"),
        ([False] * 2, [True, False, False], "stops none of 2 incorrect answers and 1 of 3 correct ones; "
                                            "as many stops at random would meet 0.4 incorrect ones"),
    ],
)  # fmt: skip
def test_the_sentence_of_a_gate(wrong, right, said):
    one = said_of(judged(wrong, right), "gate_fails", "gate_unclear", "stops_incorrect")
    assert one.sentence == f"Validation {said}."


def test_only_what_is_labelled_and_validated_belongs_to_a_gate():
    analysis = judged([True] * 9 + [False, None], [True] + [False] * 9, [True, False, None])
    one = said_of(analysis, "stops_incorrect")
    assert one.sentence == (
        "Validation stops 9 of 10 incorrect answers and 1 of 10 correct ones; as many stops at random would "
        "meet 5.0 incorrect ones."
    )
    assert one.query_ids == tuple(f"wrong{i}" for i in range(9))
    assert one.otherwise.query_ids == ("wrong9",)
    stopped = said_of(analysis, "answers_stopped")
    assert stopped.sentence == "11 of 22 answers are stopped: missing uncertainty 11."
    # Wilson's interval of 11 of 22 is 0.307 to 0.693.
    assert stopped.clause == "validation stops 50 % of 22 answers (31–69 %)" and stopped.severity == "high"
    objected = said_of(analysis, "answers_objected")
    assert objected.sentence == "11 of 22 answers have an objection: missing uncertainty 11."


def test_one_answer_is_spoken_of_as_one():
    analysis = judged(right=[True, False])
    stopped, objected = said_of(analysis, "answers_stopped"), said_of(analysis, "answers_objected")
    assert stopped.sentence == "1 of 2 answers is stopped: missing uncertainty 1."
    # Wilson's interval of 1 of 2 is 0.0945 to 0.9055, and only its lower end counts.
    assert stopped.clause == "validation stops 1 of 2 answers (9–91 %)" and stopped.severity == "low"
    assert objected.sentence == "1 of 2 answers has an objection: missing uncertainty 1."


def test_what_there_is_none_of_is_no_number():
    said = {one.key: one for one in numbers(judged(right=[True, False]))}
    flagged, overlap = said["flagged_by_ConfidenceValidator"], said["mean_overlap"]
    assert (flagged.value, flagged.of, flagged.context) == (None, 0, "")
    assert (said["incorrect_stopped"].value, said["correct_stopped"].text) == (None, "1 of 2")
    assert (overlap.value, overlap.n, overlap.interval) == (None, 0, None)
    # Without passages: 0.1 for the one that is stopped, and 0.2 + 0.1 for the other.
    assert said["mean_context_score"].value == pytest.approx(0.2)


def test_the_columns_of_a_question_and_their_ranges():
    assert [(one.name, one.pattern, one.bounds, one.higher_is) for one in VALIDATION.columns] == [
        ("passed", "bool", None, "more confident"),
        ("context_score", "{:.2f}", (0, 1), "more confident"),
    ]


def test_without_incorrect_answers_nothing_is_said_of_the_gate():
    names = {one.name for one in gated(0, 0, 2, 9).findings_of("validation")}
    assert not {"gate_fails", "gate_unclear", "stops_incorrect"} & names


def test_the_difference_of_shares_has_newcombes_interval():
    # His example of 56 of 70 and 48 of 80 (1998, table II): 0.0524 to 0.3339.
    flags = flags_of([True] * 56 + [False] * 14 + [True] * 48 + [False] * 32, [True] * 70 + [False] * 80)
    assert flags.advantage == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_what_is_stopped_against_chance(seven):
    one = finding(seven, "gate_unclear")
    assert (one.n, one.of, one.expected_by_chance, one.tone) == (2, 2, 1, UNCLEAR)
    assert one.p_value == pytest.approx(2 / 6)
    stopped = finding(seven, "answers_stopped")
    assert (stopped.n, stopped.of) == (3, 5) and stopped.query_ids == ("lost", "sure", "empty")
    assert (
        stopped.sentence.startswith("3 of 5 answers are stopped: ") and "overconfident 1" in stopped.sentence
    )
    objected = finding(seven, "answers_objected")
    assert objected.n == 4 and "missing citation 2" in objected.sentence


def test_a_validator_that_broke_is_said():
    rows = [{"query_id": "fine", "validator": "NumericUnits", "reason": "failed", "detail": "It broke."}]
    diagnosis = Diagnosis(run_of(verdicts=rows))
    one = finding(diagnosis, "validation_incomplete")
    assert (one.n, one.of, one.query_ids) == (1, 1, ("fine",))
    assert one.sentence == "1 of 1 answer could not be validated."
    q = diagnosis["validation"].queries.set_index("query_id")
    assert q.loc["fine", "reason"] == "validator_failed" and pd.isna(q.loc["fine", "passed"])


HOSTILE = {"query_id": "fine", "validator": "=cmd|' /C calc'!A0", "passed": False, "severity": "??", "reason": "fine",
           "spans": ["9:3", "²:5", "7", "-1:4", "99999999999:2", "2:4"]}  # fmt: skip


def test_rows_of_a_file_may_hold_anything():
    diagnosis = Diagnosis(run_of(verdicts=[HOSTILE, {**HOSTILE, "validator": "x" * 500, "reason": None}]))
    (verdict, other) = verdicts_of(diagnosis.run["verdicts"].to_dict("records"))
    assert (verdict.reason.code, verdict.severity, verdict.reason.value) == (
        Code.OTHER,
        Severity.WARNING,
        None,
    )
    assert verdict.spans == ((9, 3), (2, 4)) and other.sentence == ""
    assert "other 1" in finding(diagnosis, "answers_objected").sentence
    for export in diagnosis.diagnostic("validation").exports:
        content = export.write(diagnosis).decode("utf-8-sig")
        assert "'=cmd|" in content and ",=cmd|" not in content


def test_observations_of_a_run_have_no_text_and_one_key_each(seven):
    at = datetime(2026, 11, 23, tzinfo=UTC)
    seen = seven["validation"].observations(at)
    assert [one.critical for one in seen] == [False, True, True, False, True]
    assert len({one.key for one in seen}) == 5 and {one.at for one in seen} == {at}


def test_flags_by_hand_and_without_anything_to_compare():
    found = flags_of([True, False, True, False], [True, True, False, False])
    assert (found.wrong.rate, found.right.rate, found.precision.rate, found.expected) == (0.5, 0.5, 0.5, 1)
    assert math.isnan(flags_of([True, True], [True, False]).p_value), "all are flagged"
    assert math.isnan(flags_of([True, False], [True, True]).p_value), "all are wrong"
    assert math.isnan(flags_of([], []).expected)
    assert all(map(math.isnan, flags_of([], []).expected_interval))


def test_what_as_many_flags_at_random_hit_by_hand():
    # Of 10 flags on 20 answers, 10 of them wrong, C(10, k)² of the C(20, 10) = 184,756 draws hit k: with up to
    # two that is 1.2 %, with up to three 8.9 %, and likewise from above.
    found = flags_of([True] * 10 + [False] * 10, [True, False] * 10)
    assert (found.expected, found.expected_interval) == (5, (3, 7))


def test_without_correct_answers_none_of_them_is_taken_to_be_flagged():
    # Wilson's interval of 1 of 2.
    assert flags_of([True, False], [True, True]).advantage == pytest.approx((0.0945, 0.9055), abs=5e-5)
    assert all(map(math.isnan, flags_of([True, False], [False, False]).advantage))


def test_every_reason_of_a_failure_is_defined():
    defined = {one.name for one in DEFINITIONS if one.kind == CODES}
    assert defined == {*Code} - {Code.FINE, Code.NOT_APPLICABLE, Code.UNCERTAINTY_EXPRESSED}


def test_every_reason_that_is_given_is_defined_here():
    """The page showed the words of the first diagnostic that has a reason of this name."""
    reasons = {one.name for one in DEFINITIONS if one.kind == REASON}
    assert reasons == {NOT_VALIDATED, VALIDATOR_FAILED, NO_ANSWER, NO_TEXTS}
    broken = [{"query_id": "fine", "validator": "NumericUnits", "reason": "failed"}]
    for run in (run_of(), run_of(verdicts=broken), fill(run_of(), ValidationStep())):
        assert set(Diagnosis(run)["validation"].queries["reason"].dropna()) <= reasons
