"""The headline numbers, the tests of the promises and what a simulation recovers, by hand."""

import math

import pandas as pd
import pytest

from core.analyses import RECOVERED
from core.conformal.definitions import METRICS
from core.conformal.diagnostic import CONFORMAL
from core.conformal.findings import findings, recover
from core.conformal.step import ConformalStep
from core.diagnosis import Diagnosis
from core.pipeline import fill
from core.run import Run
from core.signals import signals_of
from core.stats import wilson_interval
from tests.core.conformal.conformal_runs import against_store, planted
from tests.core.conformal.test_conformal_analysis import nine


def numbers(run, **settings):
    return {one.key: one for one in Diagnosis(run, settings).numbers("conformal")}


def test_the_headline_numbers_by_hand():
    found = numbers(nine(), alpha=0.2)
    # The eighth of nine scores, 0.8, and of the eleven of all correct answers the tenth, 0.9.
    expected = {
        "coverage_correct": (0, None, 2),
        "coverage_sets": (0, None, 3),
        "coverage_distance": (2, None, 3),
        "coverage_score": (1, None, 4),
        "conformal_threshold": (0.8, 9, None),
        "n_flagged": (3, None, 4),
        "mean_set_size": (pytest.approx(1 / 3), 3, None),
        "distance_threshold": (0, 9, None),
        "final_threshold": (0.9, None, None),
        "certified_threshold": (None, 12, None),
        "certified_by_half": (None, 9, None),
        "certified_risk": (None, None, 0),
        "n_claims_kept": (None, None, 0),
        "drift_factor": (None, 0, None),
        "drift_alarm": (None, None, None),
        "conformal_undefined_reasons": ({}, None, None),
        "n_calibration": (9, None, None),
        "calibration_origin": ("this run", None, None),
        "conformal_score": ("Word overlap with the samples", None, None),
        "conformal_alpha": (0.2, None, None),
        "conformal_delta": (0.1, None, None),
    }
    assert {key: (found[key].value, found[key].n, found[key].of) for key in expected} == expected
    # Two of the ten places among nine labels are beyond the eighth, for each of four.
    assert found["n_flagged"].chance == pytest.approx(0.8)
    # Among 10 · 11 · 12 · 13 orders none is covered in 2 · 3 · 4 · 5, 0.7 %, and one in 4 · 8 · 2 · 3 · 4, 4.5 %.
    assert found["coverage_score"].note == "promised 80 %; 25 % to 100 % expected of 4"
    notes = {
        found[key].note for key in ("n_flagged", "conformal_threshold", "certified_risk", "drift_factor")
    }
    assert notes == {""}
    assert found["drift_factor"].chance is None


def test_the_numbers_of_the_certificate_are_from_all_labels_and_from_the_half():
    same, correct = [10] * 60 + [3] * 40, [True] * 58 + [False] * 42
    run = planted(same * 2, [True] * 60 + [False] * 40 + correct, [True] * 100 + [False] * 100)
    found = numbers(run)
    of_all, of_half, risk = (found[f"certified_{one}"] for one in ("threshold", "by_half", "risk"))
    assert (of_all.value, of_all.n) == (pytest.approx(0.35), 200)
    assert (of_half.value, of_half.n) == (pytest.approx(0.35), 100)
    # Two of the 60 sure ones that test are wrong: Wilson's interval of 3 % is 0.9 to 11.4 %.
    assert (risk.value, risk.of, risk.note) == (2, 60, "95 % interval of the share 1 to 11 %")
    assert found["certified_labels_needed"].value == 0


@pytest.mark.parametrize(("same", "alarm"), [([0] * 40, True), ([9, 8, 7, 6] * 10, False)])
def test_the_numbers_against_a_store(same, alarm):
    found = numbers(against_store(planted(same, [True] * 40, [False] * 40), [9, 8, 7, 6] * 10))
    factor = found["drift_factor"]
    assert (factor.n, factor.chance, factor.note) == (40, 1.0, "alarm from 20 on")
    assert found["drift_alarm"].value is alarm and (factor.value > 20) is alarm
    assert found["calibration_origin"].value == "s.db"
    # The store has no distances, and one certificate; none of the run's questions calibrates.
    assert (found["distance_threshold"].value, found["distance_threshold"].n) == (None, 0)
    assert (found["coverage_distance"].value, found["coverage_distance"].of) == (None, 0)
    assert (found["certified_by_half"].value, found["certified_by_half"].n) == (None, None)
    assert (found["certified_threshold"].n, found["n_calibration"].value) == (40, None)


def test_where_all_labels_calibrate_the_half_is_all_of_them():
    found = numbers(planted([10] * 30, [True] * 30, [True] * 30))
    assert (found["certified_threshold"].value, found["certified_threshold"].n) == (0, 30)
    assert (found["certified_by_half"].value, found["certified_by_half"].n) == (0, 30)


def test_the_numbers_say_why_nothing_is_certified_unless_nothing_calibrates():
    same, correct = [10] * 18, [False] * 18
    found = numbers(planted(same, correct, [True] * 9 + [False] * 9))
    assert found["certified_threshold"].note == "too many are wrong to say how many labels it would take"
    assert found["conformal_threshold"].note.startswith("0 correct answers cannot certify α = 0.1")
    bare = numbers(planted(same, correct, [None] * 18))
    assert bare["conformal_score"].value is bare["conformal_undefined_reasons"].value is None
    assert {one.note for one in bare.values()} == {""}


def test_the_numbers_say_why_there_is_no_verdict():
    samples = [["alpha"] * 10] * 10 + [[]]
    run = planted([9] * 11, [True] * 11, [True] * 9 + [False] * 2, samples=samples)
    assert numbers(run)["conformal_undefined_reasons"].value == {"no_score": 1}
    few = numbers(run, alpha=0.05)
    assert few["conformal_undefined_reasons"].value == {"few_labels": 1, "no_score": 1}
    assert few["n_flagged"].note == "9 correct answers cannot certify α = 0.05; you need at least 19"


def test_the_number_flagged_is_that_over_random_halves():
    run = fill(planted([9] * 40, [True] * 40, [None] * 40), ConformalStep())
    assert numbers(run)["n_flagged"].note == (
        "over 41 random halves of the labels it is 0 to 0 of 20, with a median of 0"
    )


def test_a_single_answer_looks_less_typical_and_none_needs_no_advice():
    def flagged(last):
        run = planted([9] * 10 + [last], [True] * 11, [True] * 9 + [False] * 2)
        return next(one for one in findings(Diagnosis(run)["conformal"]) if one.name == "answers_flagged")

    one, none = flagged(0), flagged(9)
    assert one.sentence == (
        "1 of 2 answers looks less typical than 90 % of the correct answers; fewer than 1 would even if all "
        "were correct."
    )
    assert one.advice == "Withhold these answers or send them to a person." and one.otherwise.n == 1
    assert (none.n, none.advice, none.otherwise) == (0, "", None)


CORRECT = "Correct answers kept"
OTHERS = ["Usual scores", "Distance to the truth", "Sets that hold a correct answer"]


@pytest.mark.parametrize(
    ("columns", "titles", "title", "p_value"),
    [
        # None is covered where the 37 lowest of 80 all calibrate, ...
        ({}, [CORRECT, *OTHERS], CORRECT, math.comb(43, 3) / math.comb(80, 40)),
        # ... in a group the 19 lowest of 40; of two groups either may be the worst.
        (
            {"kind": (["a"] * 20 + ["b"] * 20) * 2},
            [*OTHERS, f"{CORRECT} in a"],
            f"{CORRECT} in a",
            2 * math.comb(21, 1) / math.comb(40, 20),
        ),
    ],
    ids=["all together", "by group"],
)
def test_each_promise_is_tested_once(columns, titles, title, p_value):
    run = planted([9] * 40 + [0] * 40, [True] * 80, [True] * 40 + [False] * 40, **columns)
    short = [one for one in findings(Diagnosis(run)["conformal"]) if one.name == "coverage_short"]
    found = {one.sentence.partition(":")[0]: one for one in short}
    assert [*found] == titles and len(short) == len(found)
    assert found[title].p_value == pytest.approx(p_value)


def test_each_promise_is_recovered_as_the_share_that_kept_it():
    found = recover(Diagnosis(nine(), {"alpha": 0.2}))
    assert [*found] == [*RECOVERED]
    assert found[["check", "planted", "recovered", "n"]].to_numpy().tolist() == [
        ["Correct answers kept", 0.8, 0, 2],
        ["Usual scores", 0.8, 0.25, 4],
        ["Distance to the truth", 0.8, pytest.approx(2 / 3), 3],
        ["Sets that hold a correct answer", 0.8, 0, 3],
    ]
    # Wilson's interval of 1 of 4.
    assert found.loc[1, ["low", "high"]].to_list() == pytest.approx([0.0456, 0.6994], abs=1e-4)
    assert found["meaning"].str.startswith("At least the planted share is promised. ").all()


def test_what_promises_or_tests_nothing_recovers_nothing():
    # Nine labels are too few; all nine calibrate.
    for run, alpha in [(nine(), 0.05), (planted([9] * 9, [True] * 9, [True] * 9), 0.2)]:
        found = recover(Diagnosis(run, {"alpha": alpha}))
        assert found.empty and [*found] == [*RECOVERED]


def test_what_follows_from_the_score_is_no_signal_beside_it():
    diagnosis = Diagnosis(nine())
    assert signals_of(diagnosis, [CONFORMAL]) == ()
    found = signals_of(diagnosis, [CONFORMAL], secondary=True)
    assert [(one.title, one.bounds, one.higher_is) for one in found] == [
        ("Conformal p", (0, 1), "more confident"),
        ("Answers in the set", None, "more uncertain"),
    ]


def test_a_calibration_without_a_score_names_none():
    found = numbers(nine(), weights="nobody.knows", alpha=0.2)
    assert found["conformal_score"].value is None and found["conformal_alpha"].value == 0.2


def test_definitions_say_with_which_probability():
    assert "at most α of the answers are wrong, with probability 90% over" in METRICS["certified"].meaning
    assert "gains 20 times its stake with probability at most 5% if they do" in METRICS["drift"].meaning


def said(run, **settings):
    return {one.name: one for one in Diagnosis(run, settings).findings_of("conformal")}


def test_an_alarm_names_the_question_and_those_from_there_on():
    run = against_store(planted([9] * 5 + [0] * 35, [True] * 40, [False] * 40), [9, 8, 7, 6] * 10)
    drift = Diagnosis(run)["conformal"].drift
    found = said(run)["score_drift"]
    assert 5 < drift.alarm < 40
    assert found.sentence.endswith(f": alarm at question {drift.alarm + 1} of 40.")
    assert (found.n, found.of) == (40 - drift.alarm, 40)
    assert sorted(found.query_ids) == [f"q{i:03}" for i in range(drift.alarm, 40)]
    assert found.p_value == pytest.approx(math.exp(-drift.log_martingale.max()))


def test_a_certificate_counts_whom_it_lets_through_from_the_threshold_itself_on():
    # Right from 0.5 on, wrong just below: 0.5 is certified, and reached by 30 of 40 that test or are new.
    queries = pd.DataFrame({"query_id": [f"q{i:03}" for i in range(140)], "question": "?", "answer": "x"})
    queries["reference_answers"] = [["x"]] * 60 + [["y"]] * 40 + [["x"]] * 20 + [None] * 20
    queries["calibrates"] = [True] * 100 + [False] * 40
    similar = [0.5] * 60 + [0.49] * 40 + [0.5] * 15 + [0.49] * 5 + [0.5] * 15 + [0.49] * 5
    signals = pd.DataFrame({"query_id": queries["query_id"], "similarity": similar})
    found = said(Run.create({"source": "upload"}, queries=queries, signals=signals))["certificate"]
    assert found.sentence == (
        "Answering only from a confidence of 0.50 on keeps 30 of 40 answers, at most 10 % wrong with "
        "probability 90 % over the 120 labels."
    )
    assert (found.n, found.of, len(found.query_ids)) == (30, 40, 30)
    assert found.interval == wilson_interval(0.75, 40)
    # Where all calibrate there is nobody else to answer.
    alone = said(planted([10] * 60, [True] * 60, [True] * 60))["certificate"]
    assert (alone.n, alone.of, alone.interval) == (0, 0, None)


def test_a_group_that_nobody_tests_tests_no_promise():
    kind = ["a"] * 20 + ["b"] * 20 + ["b"] * 20
    run = planted([9] * 40 + [0] * 20, [True] * 60, [True] * 40 + [False] * 20, kind=kind)
    short = [one for one in findings(Diagnosis(run)["conformal"]) if one.name == "coverage_short"]
    assert short[-1].sentence.startswith(
        "Correct answers kept in b: 0 of 20 tested (0 %), where 90 % is promised and "
    )
    assert short[-1].clause == "a promise of 90 % holds for none of 20 only"
