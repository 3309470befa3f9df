"""Findings and headline numbers of a confidence; figures by hand, exact probabilities by scipy."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, hypergeom

from core.confidence.diagnostic import CONFIDENCE
from core.confidence.findings import findings, numbers
from core.socket import BAD, GOOD, UNCLEAR
from core.stats import auroc_interval
from tests.core.confidence.confidence_runs import analysis_of, judged, signal_run, used_by

NAN = math.nan


def named(analysis):
    return {one.name: one for one in findings(analysis)}


# Too high, too low


def test_too_high_and_the_most_confident_incorrect_answers_first():
    values = [0.6, 0.9, 0.7, 0.4, 0.8, 0.5, 0.95]
    found = named(judged(values, [False] * 6 + [True]))["overconfident"]
    assert found.sentence == ("The confidence is too high: 0.69 on average, where 1 of 7 answers is correct.")
    assert found.clause == "the confidence is too high: 0.69 on average, where 1 of 7 answers is correct"
    assert found.query_ids == ("q01", "q04", "q02", "q00", "q05")
    assert found.reads == "with an incorrect answer and a confidence of 0.5 or more"
    assert (found.n, found.of, found.expected_by_chance) == (1, 7, pytest.approx(4.85))


def test_too_low_and_the_least_confident_correct_answers_first():
    found = named(judged([0.4, 0.1, 0.3, 0.6, 0.2, 0.5], [True] * 6))["underconfident"]
    assert found.sentence == "The confidence is too low: 0.35 on average, where all 6 answers are correct."
    assert found.query_ids == ("q01", "q04", "q02", "q00")
    assert found.reads == "with a correct answer and a confidence below 0.5"
    assert (found.n, found.of, found.expected_by_chance) == (6, 6, pytest.approx(2.1))
    # All six of them: 0.4 · 0.1 · 0.3 · 0.6 · 0.2 · 0.5, twice.
    assert found.p_value == pytest.approx(2 * 0.00072)


def test_the_gap_has_an_exact_p_value():
    # Four of eight are correct at 0.9 each: at least four wrong ones at 0.1, twice.
    found = named(judged([0.9] * 8, [True, False] * 4))["overconfident"]
    assert found.p_value == pytest.approx(2 * binom.sf(3, 8, 0.1))
    found = named(judged([0.2] * 8, [True, False] * 4))["underconfident"]
    assert found.p_value == pytest.approx(2 * binom.sf(3, 8, 0.2))
    # One of two at ½: as likely as can be.
    assert named(judged([0.5] * 2, [True, False]))["underconfident"].p_value == 1


@pytest.mark.parametrize(
    ("value", "n_right", "n", "name", "severity"),
    [
        # Wilson's intervals: 1 of 2 is 0.09 to 0.91, 2 of 4 is 0.15 to 0.85, 0 of 4 is 0 to 0.49, 3 of 4 from 0.30.
        (1.0, 1, 2, "overconfident", "low"),
        (1.0, 2, 4, "overconfident", "medium"),
        (1.0, 0, 4, "overconfident", "high"),
        (0.0, 2, 4, "underconfident", "low"),
        (0.0, 3, 4, "underconfident", "medium"),
        (0.2, 3, 4, "underconfident", "low"),
    ],
)
def test_how_grave_a_gap_is_by_what_surely_goes_wrong(value, n_right, n, name, severity):
    found = findings(judged([value] * n, [True] * n_right + [False] * (n - n_right)))[0]
    assert (found.name, found.severity) == (name, severity)


# Correct answers first


def test_correct_answers_have_the_higher_confidence():
    # Of 12 pairs 11 are in order: 0.3 is below 0.6.
    values, right = [0.9, 0.8, 0.7, 0.3, 0.6, 0.2, 0.1], [True] * 4 + [False] * 3
    _, low, high = auroc_interval(right, values)
    shown = f"AUROC 0.92 (95 % interval {low:.2f} to {high:.2f}; 4 correct and 3 incorrect; 0.5 by chance)"
    found = named(judged(values, right))["confidence_ranks"]
    assert found.sentence == f"Correct answers have the higher confidence: {shown}."
    assert found.clause == "the confidence is higher for correct answers (AUROC 0.92)"
    # Of 35 ways to deal the labels two are as extreme at each end: all in order, and all but one.
    assert (found.tone, found.n, found.of, found.p_value) == (GOOD, 3, 7, pytest.approx(4 / 35))
    blind = found.otherwise
    assert blind.sentence == f"Whether correct answers have the higher confidence is unclear: {shown}."
    assert (blind.name, blind.tone, blind.n, blind.of, blind.p_value) == (
        "confidence_blind",
        UNCLEAR,
        3,
        7,
        None,
    )


def test_incorrect_answers_have_the_higher_confidence():
    found = named(judged([0.2, 0.3, 0.8], [True, True, False]))["confidence_backwards"]
    assert found.sentence.startswith(
        "Incorrect answers have the higher confidence: AUROC 0.00 (95 % interval 0.00"
    )
    assert found.sentence.endswith("; 2 correct and 1 incorrect; 0.5 by chance).")
    assert (found.tone, found.severity, found.n, found.of) == (BAD, "high", 1, 3)
    assert found.otherwise.name == "confidence_blind"


def test_an_auroc_of_one_half_is_no_test():
    found = named(judged([0.9, 0.1, 0.5], [True, True, False]))
    blind = found["confidence_blind"]
    assert (blind.p_value, blind.otherwise, blind.n, blind.of) == (None, None, 1, 3)
    assert not {"confidence_ranks", "confidence_backwards"} & set(found)


@pytest.mark.parametrize(("more", "area", "p_value"), [(4e-9, 1, 2 / 70), (4e-10, 0.5, 1)])
def test_what_differs_in_the_ninth_place_is_in_order_and_in_the_tenth_is_equal(more, area, p_value):
    found = judged([0.5 + more] * 4 + [0.5] * 4, [True] * 4 + [False] * 4)
    # Of 70 ways to deal the labels two are as extreme.
    assert (found.auroc[0], found.auroc_p_value) == (area, pytest.approx(p_value))


def test_of_one_kind_of_answer_there_is_no_order():
    assert not {"confidence_blind", "confidence_ranks", "confidence_backwards"} & set(
        named(judged([0.9, 0.1], [True, True]))
    )


# What passes


def test_incorrect_answers_that_pass_the_most_confident_first():
    # Of ten answers five pass; of the four incorrect ones three.
    values = [0.7, 0.9, 0.8, 0.1, 0.65, 0.95, 0.2, 0.3, 0.4, 0.5]
    found = named(judged(values, [False] * 4 + [True] * 6))["wrong_answers_pass"]
    assert found.sentence == (
        "3 of 4 incorrect answers pass the threshold 0.6; about 2 would if confidence were unrelated to correctness."
    )
    # Wilson's interval of 3 of 4 is 0.30 to 0.95; 5 of 10 pass.
    assert found.clause == "3 of 4 incorrect answers pass the confidence threshold (30–95 %; 50 % by chance)"
    assert found.query_ids == ("q01", "q02", "q00")
    assert (found.n, found.of, found.expected_by_chance, found.severity) == (3, 4, 2, "high")
    assert found.interval == pytest.approx((0.3006, 0.9544), abs=1e-4)
    assert found.p_value == pytest.approx(2 * hypergeom(10, 4, 5).sf(2))
    unclear = found.otherwise
    assert (unclear.name, unclear.tone, unclear.p_value, unclear.fix) == (
        "wrong_answers_pass", UNCLEAR, None, "labels:more",
    )  # fmt: skip
    assert (unclear.sentence, unclear.query_ids) == (found.sentence, found.query_ids)


def test_incorrect_answers_are_stopped():
    # Six of twelve pass, one of them incorrect, of six.
    values = [0.9] * 6 + [0.1] * 6
    found = named(judged(values, [True] * 5 + [False] * 6 + [True]))["wrong_answers_stopped"]
    assert found.sentence == (
        "1 of 6 incorrect answers passes the threshold 0.6; about 3 would if confidence were unrelated to correctness."
    )
    assert (found.tone, found.query_ids) == (GOOD, ("q05",)) and found.otherwise.tone == UNCLEAR
    assert found.p_value == pytest.approx(2 * hypergeom(12, 6, 6).cdf(1))
    # Where none passes nothing remains to be told if chance explains it.
    none = named(judged([0.9, 0.1, 0.1, 0.1], [True, False, False, True]))["wrong_answers_stopped"]
    assert (none.n, none.of, none.otherwise, none.query_ids) == (0, 2, None, ())
    assert none.sentence.startswith("0 of 2 incorrect answers pass the threshold 0.6; fewer than 1 would if")
    one = named(judged([0.9, 0.1, 0.1, 0.1], [True, False, True, True]))["wrong_answers_stopped"]
    assert one.p_value == 1, "of one that might pass none does in three of four cases"
    assert one.sentence.startswith("0 of 1 incorrect answer passes the threshold 0.6; fewer than 1 would if")


def test_as_many_as_by_chance_is_unclear_without_a_test():
    found = named(judged([0.9, 0.1, 0.9, 0.1], [True, True, False, False]))["wrong_answers_pass"]
    assert (found.tone, found.p_value, found.otherwise, found.expected_by_chance) == (UNCLEAR, None, None, 1)
    assert found.advice == "Label more answers before you rely on this threshold."


@pytest.mark.parametrize(
    ("right", "sentence", "severity"),
    [
        ([False], "The threshold 0.6 stops none of 1 labelled answer: the incorrect answer passes.", "medium"),
        ([False, True], "The threshold 0.6 stops none of 2 labelled answers: the incorrect answer passes.", "low"),
        ([False, True, False], "The threshold 0.6 stops none of 3 labelled answers: all 2 incorrect answers pass.", "medium"),
    ],
)  # fmt: skip
def test_a_threshold_that_stops_nothing(right, sentence, severity):
    # Wilson's intervals begin at 0.21 for 1 of 1 and 2 of 3, at 0.09 for 1 of 2.
    found = named(judged([0.9] * len(right), right))["threshold_stops_nothing"]
    assert (found.sentence, found.severity) == (sentence, severity)
    assert found.clause == "no labelled answer is below the threshold 0.6" and found.p_value is None


def test_nothing_is_said_of_a_threshold_without_incorrect_answers_or_answers_that_pass():
    for values, right in (([0.9, 0.1], [True, True]), ([0.1, 0.1], [True, False])):
        assert not {one for one in named(judged(values, right)) if "pass" in one or "stop" in one}


def test_five_equal_values_are_no_coincidence():
    found = named(judged([0.5] * 5, [None] * 5))["constant_signal"]
    assert found.sentence == "Similarity is the same for all 5 answers: it separates none of them."
    assert (found.n, found.of, found.severity) == (5, 5, "medium")
    assert named(judged([0.5] * 4, [None] * 4)) == {} == named(judged([0.5] * 4 + [0.6], [None] * 5))
    # What has no value is no other value.
    assert named(judged([0.5] * 5 + [NAN], [None] * 6))["constant_signal"].of == 5


# Numbers

VALUES = [0.9, 0.8, 0.4, 0.2, 0.7, 0.6, NAN]
RIGHT = [True, False, False, False, None, True, True]


def told():
    """Seven answers: four are judged, one has no label, one taught the weights, one has no confidence."""
    run = signal_run(VALUES, correct=RIGHT)
    rows = [
        {"query_id": one, "passage_id": p, "text": "x", "retrieval_rank": 1.0, "retrieval_score": 3.0}
        for one in ("q00", "q01")
        for p in ("a", "b")
    ]
    run = type(run).create(run.manifest, **{**run.tables, "passages": pd.DataFrame(rows)})
    return analysis_of(
        run, RIGHT,
        weights={"similarity": 1.0, "llm": 0.0}, taught=[5],
        sampling=[0.9, 0.5, 0.8, NAN, NAN, NAN, NAN],
        variance=[0.2, 0.4, NAN, NAN, NAN, NAN, NAN],
        conformal=[0.7, 0.25, 0.5, NAN, NAN, NAN, NAN],
        verdict=[True, True, True, None, None, None, None],
    )  # fmt: skip


def test_the_table_by_hand():
    found = told()
    q = found.queries
    assert [*q] == [
        "query_id", "question", "confidence", "raw_confidence", "judged_confidence", "similarity", "lexical", "llm_score",
        "band", "passes", "retrieval_uncertainty", "sampling_uncertainty", "conformal_uncertainty",
        "combined_uncertainty", "combined_confidence", "mc_confidence", "conformal_reliable", "is_reliable",
        "is_reliable_strict", "correct", "reason",
    ]  # fmt: skip
    assert q["confidence"].to_list()[:6] == VALUES[:6] and q["reason"].to_list()[6] == "no_signal"
    np.testing.assert_array_equal(q["judged_confidence"], [0.9, 0.8, 0.4, 0.2, 0.7, NAN, NAN])
    assert q["band"].to_list() == ["high", "high", "medium", "low", "high", "medium", "undefined"]
    assert q["passes"].to_list() == [True, True, False, False, True, True, pd.NA]
    # A weight of 0 adds nothing, also where the signal is missing.
    np.testing.assert_array_equal(found.contributions[:, 1], np.zeros(7))
    np.testing.assert_array_equal(found.contributions[:, 0], VALUES)
    np.testing.assert_allclose(q["retrieval_uncertainty"], [1, 1] + [NAN] * 5)
    np.testing.assert_allclose(q["sampling_uncertainty"][:3], [0.1, 0.5, 0.2])
    np.testing.assert_allclose(q["conformal_uncertainty"][:3], [0.3, 0.75, 0.5])
    # 0.2 · 1 + 0.4 · 0.1 + 0.4 · 0.3, and 0.2 · 1 + 0.4 · 0.5 + 0.4 · 0.75.
    np.testing.assert_allclose(q["combined_uncertainty"], [0.36, 0.7] + [NAN] * 5)
    np.testing.assert_allclose(q["combined_confidence"][:3], [0.8, 0.375, 0.65])
    np.testing.assert_allclose(q["mc_confidence"][:3], [0.8, 0.6, NAN])
    assert q["is_reliable"].to_list()[:3] == [True, False, pd.NA]
    assert q["is_reliable_strict"].to_list()[:3] == [True, False, True]
    assert found.n_taught == 1


def test_answers_without_a_confidence_say_why():
    run = signal_run([0.9, 0.8, NAN], answer_status=["answered", "abstained", "answered"])
    found = analysis_of(run).queries
    assert found["reason"].fillna("").to_list() == ["", "no_answer", "no_signal"]
    np.testing.assert_array_equal(found["confidence"], [0.9, NAN, NAN])
    unusable = analysis_of(run, reason="Weights must sum to 1.").queries
    assert unusable["reason"].to_list() == ["no_weights", "no_answer", "no_weights"]
    assert unusable["confidence"].isna().all()


def test_signals_of_other_weights_have_the_range_0_to_1_unless_one_is_declared():
    found = told().other({"lexical": 3, "own": 1}, 0.4)
    assert found.ranges["own"] == (0, 1) and found.ranges["lexical"] == (0, 100)
    assert (found.weights, found.threshold) == ({"lexical": 0.75, "own": 0.25}, 0.4)


def test_numbers_by_hand():
    analysis = told()
    said = {one.key: one for one in numbers(analysis)}
    n, value = {key: one.n for key, one in said.items()}, {key: one.value for key, one in said.items()}
    assert value["mean_confidence"] == pytest.approx(0.6) and n["mean_confidence"] == 6
    low, high = said["mean_confidence"].interval
    # The standard deviation is √(0.34 / 5), Student's t with 5 degrees of freedom 2.5706.
    assert high - 0.6 == pytest.approx(0.6 - low) == pytest.approx(2.5706 * math.sqrt(0.34 / 30), abs=1e-4)
    assert (value["n_passing"], said["n_passing"].of, said["n_passing"].note) == (4, 6, "threshold 0.6")
    assert value["confidence_bands"] == {"high": 3, "medium": 2, "low": 1}
    passing, below = said["n_correct_passing"], said["n_correct_below"]
    assert (passing.value, passing.of, passing.chance) == (1, 2, 0.5)
    assert (below.value, below.of, below.chance) == (0, 2, 0.5)
    assert passing.title == "Correct, of answers that pass"
    assert below.title == "Correct, of answers that do not pass"
    # Wilson's intervals of 1 of 2 and 0 of 2.
    assert passing.note == "95 % interval of the share 9 to 91 %"
    assert below.note == "95 % interval of the share 0 to 66 %"
    gap = said["confidence_gap"]
    assert (gap.value, gap.n, gap.chance) == (pytest.approx(0.325), 4, 0)
    # Gaps of −0.1, 0.8, 0.4 and 0.2: squares about 0.325 sum to 0.4275; t with 3 degrees of freedom is 3.1824.
    assert gap.interval[1] - 0.325 == pytest.approx(3.1824 * math.sqrt(0.4275 / 12), abs=1e-4)
    # Each answer is alone in its bin.
    ece = said["confidence_ece"]
    assert (ece.value, ece.n) == (pytest.approx(0.375), 4)
    mean, most = analysis.ece_by_chance
    assert ece.chance == mean and ece.note == (
        f"at most {most:.2f} in 95 % of such runs; Weights and map were learned from 1 labelled answer of this run. "
        "They do not judge it."
    )
    assert (value["confidence_mce"], n["confidence_mce"]) == (pytest.approx(0.8), 4)
    brier = said["confidence_brier"]
    assert (brier.value, brier.n, brier.chance) == (pytest.approx(0.2125), 4, pytest.approx(0.1875))
    assert brier.note == "reliability 0.21 − resolution 0.19 + uncertainty 0.19 + within 0.00"
    auroc = said["confidence_auroc"]
    assert (auroc.value, auroc.n, auroc.chance) == (1, 4, 0.5)
    assert auroc.interval == auroc_interval([1, 0, 0, 0], [0.9, 0.8, 0.4, 0.2])[1:]
    # Errors of the first 1, 2, 3 and 4: 0, 1, 2 and 3.
    aurc = said["confidence_aurc"]
    assert (aurc.value, aurc.n, aurc.chance) == (pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 4), 4, 0.75)
    combined = said["mean_combined_uncertainty"]
    assert (combined.value, combined.n, combined.interval) == (pytest.approx(0.53), 2, (0, 1))
    assert (value["n_reliable"], said["n_reliable"].of) == (1, 2)
    assert (value["n_reliable_strict"], said["n_reliable_strict"].of) == (2, 3)
    assert value["confidence_undefined_reasons"] == {"no_signal": 1}
    assert value["confidence_weights"] == "similarity 1, llm 0"
    assert [value[f"confidence_{one}"] for one in ("threshold_used", "origin", "map")] == [
        0.6,
        "setting",
        "none",
    ]
    assert value["n_taught"] == 1


def test_an_answer_with_a_label_passes_as_it_is_shown():
    found = judged([0.595, 0.6, 0.5949], [True, True, False])
    assert found.labelled["passes"].to_list() == [True, True, False]
    assert found.bands()["n_correct"].to_list() == [0, 2, 0]
    assert judged([0.695, 0.395, 0.3949], [True] * 3).bands()["n_correct"].to_list() == [1, 1, 1]


def test_numbers_without_labels():
    said = {one.key: one for one in numbers(analysis_of(signal_run([0.9, 0.2])))}
    known = {"mean_confidence", "n_passing", "confidence_bands", "confidence_undefined_reasons",
             "confidence_weights", "confidence_threshold_used", "confidence_origin", "confidence_map"}  # fmt: skip
    assert {key for key, one in said.items() if one.value is not None} == known
    assert said["confidence_undefined_reasons"].value == {}
    assert all(one.chance is None for one in said.values())
    assert [key for key, one in said.items() if one.note] == ["n_passing"]
    assert [key for key, one in said.items() if one.interval] == ["mean_confidence"]


def test_numbers_without_signals():
    for one in numbers(analysis_of(signal_run([NAN, NAN]))):
        assert (one.value, one.chance, one.interval, one.note) == (None, None, None, "")
        assert not one.n and not one.of


# The diagnostic


def test_columns_of_a_question(given):
    assert {one.name for one in CONFIDENCE.columns} < {*CONFIDENCE.analyse(given(0.6)).queries}
    assert [
        (one.name, one.bounds, one.higher_is, one.by_passages, one.needs_labels, one.is_secondary)
        for one in CONFIDENCE.columns
    ] == [
        ("confidence", (0, 1), "more confident", False, False, False),
        ("similarity", (0, 1), "more confident", False, False, False),
        ("lexical", (0, 100), "more confident", False, False, False),
        ("llm_score", (0, 1), "more confident", False, False, False),
        ("combined_uncertainty", (0, 1), "more uncertain", False, False, True),
    ]


class Given(dict):
    """What other diagnostics found, by hand."""

    def __init__(self, run, settings, **found):
        super().__init__({name: SimpleNamespace(queries=pd.DataFrame(rows)) for name, rows in found.items()})
        self.run, self.settings = run, settings


@pytest.fixture
def given(monkeypatch):
    run = signal_run([0.9, 0.8, 0.4, 0.2])
    monkeypatch.setattr("core.confidence.diagnostic.in_use", lambda diagnosis: used_by(run))

    def by(threshold):
        return Given(
            run, {"confidence_threshold": threshold},
            conformal={"verdict": ["In line", "Flagged", None, "In line"], "confidence": [0.75, 1.5, None, -0.5]},
            uncertainty={
                "agreement": [0.5, 1 + 1e-9, None, -1e-9],
                "embedding_variance": [0.25, -1e-9, None, 1.5],
            },
        )  # fmt: skip

    return by


def test_what_other_diagnostics_found_joins_as_a_confidence_in_0_to_1(given):
    q = CONFIDENCE.analyse(given(0.7)).queries
    # What rounding leaves outside [0, 1] counts as its end.
    np.testing.assert_array_equal(q["mc_confidence"], [0.75, 1, NAN, 0])
    np.testing.assert_array_equal(q["sampling_uncertainty"], [0.5, 0, NAN, 1])
    np.testing.assert_array_equal(q["conformal_uncertainty"], [0.25, 0, NAN, 1])
    np.testing.assert_array_equal(q["combined_confidence"], [0.625, 1, NAN, 0])
    assert q["conformal_reliable"].to_list() == [True, False, pd.NA, True]
    assert q["is_reliable"].to_list() == [True, False, pd.NA, False]
    assert q["is_reliable_strict"].to_list() == [False, False, pd.NA, False]
    assert q["passes"].to_list() == [True, True, False, False]


def test_a_threshold_that_cannot_be_used_is_a_reason(given):
    found = CONFIDENCE.analyse(given(2))
    assert found.used.reason == "The threshold must lie in [0, 1], got 2.0."
    assert found.weighting.threshold == 0.6 and found.queries["confidence"].isna().all()
