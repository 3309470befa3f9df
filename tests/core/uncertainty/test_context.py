"""The context test: changes worked out by hand, and a run in which one estimator fails."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.run import Run
from core.uncertainty import measure
from core.uncertainty.conditions import ADDED, UNCHANGED, WITHOUT
from core.uncertainty.context import changes, context_test, judged
from core.uncertainty.definitions import COMPARED, FAILS, PASSES, UNTOLD
from core.uncertainty.diagnostic import numbers
from core.uncertainty.estimators import TEXT_ONLY
from core.uncertainty.findings import findings

NAN = math.nan


def test_changes_worked_out_by_hand():
    before = {"up": [1, 2, 3, 4, 5, 6, NAN, 1], "mixed": [0, 0, 0, 0, 0, 0, 0, 0]}
    after = {"up": [2, 4, 6, 8, 10, 12, 1, NAN], "mixed": [1, -1, 0, 0, 0, 0, 0, 0]}
    up, mixed = changes(WITHOUT, before, after)
    # 1 to 6 more: mean 3.5, sd √3.5 = 1.871, t(5) 2.571 · 1.871 / √6 = 1.963.
    assert (up.n, up.n_rising, up.n_falling, up.n_same) == (6, 6, 0, 0)
    assert (up.mean, round(up.low, 2), round(up.high, 2)) == (3.5, 1.54, 5.46)
    # 2 of the 64 ways to exchange are as extreme; two estimators are tested.
    assert up.p_value == 2 * 2 / 64 and up.outcome == UNTOLD
    assert (mixed.n, mixed.n_rising, mixed.n_falling, mixed.n_same, mixed.mean) == (8, 1, 1, 6, 0.0)
    assert mixed.p_value == 1.0 and mixed.outcome == UNTOLD and mixed.needed is None
    alone = changes(WITHOUT, {"up": before["up"]}, {"up": after["up"]})[0]
    assert alone.p_value == 2 / 64 and alone.outcome == PASSES and alone.needed is None
    assert changes(ADDED, {"up": before["up"]}, {"up": after["up"]})[0].outcome == PASSES


@pytest.mark.parametrize("condition", [WITHOUT, ADDED])
def test_a_clear_fall_fails_under_either_condition(condition):
    found = changes(
        condition,
        {"a": np.arange(6) + 5},
        {"a": np.arange(6) * 0.5},
    )[0]
    assert found.outcome == FAILS and found.n_falling == 6 and found.mean == -6.25


def test_unrelated_passages_pass_where_a_fall_beyond_the_margin_is_excluded():
    # The values spread by sd 1.87; the margin is 0.37. Six times -0.1 is less: 2 of 64 exchanges.
    before = np.arange(1.0, 7)
    small, large = before - 0.1, before + np.array([0.1, -1, 1, -1, 1, 0.2])
    assert changes(ADDED, {"a": before}, {"a": before})[0].outcome == PASSES
    assert changes(WITHOUT, {"a": before}, {"a": before})[0].outcome == UNTOLD
    # A fall that is small but clear is a fall.
    assert changes(ADDED, {"a": before}, {"a": small})[0].outcome == FAILS
    wide = changes(ADDED, {"a": before}, {"a": large})[0]
    # Mean 0.05, sd 0.898; above -0.374 by 0.424: (2.802 · 0.898 / 0.424)² = 35.2.
    assert wide.outcome == UNTOLD and wide.needed == 36
    # Two estimators: twice 2 / 64 is more than 5 %.
    both = {"a": before, "b": before}
    assert [one.outcome for one in changes(ADDED, both, both)] == [UNTOLD, UNTOLD]
    # Where an estimator says the same of every question, no fall is small.
    assert changes(ADDED, {"a": np.ones(9)}, {"a": np.ones(9)})[0].outcome == UNTOLD


def test_how_many_questions_would_tell():
    # Mean 0.1, sd 0.183: (2.802 · 0.183 / 0.1)² = 26.2.
    found = changes(WITHOUT, {"a": np.zeros(4)}, {"a": [0.3, -0.1, 0.2, 0.0]})[0]
    assert found.outcome == UNTOLD and found.needed == 27


def test_fewer_questions_than_the_test_takes_are_never_enough():
    # A change as clear as can be: alone 6 questions tell (2 / 64), of nine estimators 9 (9 · 2 / 512).
    clear = [1.0, 1.1]
    assert changes(WITHOUT, {"a": [0, 0]}, {"a": clear})[0].needed == 6
    nine = [f"e{i}" for i in range(9)]
    found = changes(WITHOUT, {name: [0, 0] for name in nine}, dict.fromkeys(nine, clear))
    assert {one.needed for one in found} == {9}


def test_rounding_is_no_change():
    found = changes(ADDED, {"a": [0.3, 1, 2, 3, 4, 5]}, {"a": [0.1 + 0.2, 1, 2, 3, 4, 5]})[0]
    assert (found.n_same, found.n_rising, found.p_value) == (6, 0, 1.0)


def test_nothing_to_compare_cannot_be_told():
    found = changes(WITHOUT, {"a": [NAN, 1]}, {"a": [1, NAN]})[0]
    assert found.n == 0 and math.isnan(found.mean) and math.isnan(found.p_value)
    assert found.outcome == UNTOLD and found.needed is None


@pytest.mark.parametrize(
    ("condition", "mean", "p_value", "holds", "outcome"),
    [
        (WITHOUT, 1, 0.05, False, PASSES), (WITHOUT, -1, 0.05, False, FAILS),
        (WITHOUT, 1, 0.051, True, UNTOLD), (WITHOUT, NAN, NAN, False, UNTOLD),
        (ADDED, 1, 0.05, False, PASSES), (ADDED, -1, 0.05, True, FAILS),
        (ADDED, -1, 0.051, True, PASSES), (ADDED, -1, 0.051, False, UNTOLD),
    ],
)  # fmt: skip
def test_the_rule(condition, mean, p_value, holds, outcome):
    assert judged(condition, mean, p_value, holds) == outcome


values = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=8)


@given(values, st.sampled_from([WITHOUT, ADDED]))
def test_exchanging_before_and_after_turns_the_sign(pairs, condition):
    first, second = map(list, zip(*pairs, strict=True))
    one = changes(condition, {"a": first}, {"a": second})[0]
    other = changes(condition, {"a": second}, {"a": first})[0]
    assert (one.n_rising, one.n_falling, one.n_same) == (other.n_falling, other.n_rising, other.n_same)
    assert one.mean == -other.mean and one.p_value == other.p_value
    np.testing.assert_allclose([one.low, one.high], [-other.high, -other.low])
    if one.outcome == FAILS:
        assert other.outcome == PASSES


def run_with_test(n=8, without=("a", "b", "c"), added=("x", "x", "x"), original=("x", "x", "y"), **more):
    """Return a run of n questions with samples: the same in all of them."""
    ids = [f"q{i}" for i in range(n)]
    rows = [("samples", None, original)] + [
        ("context_samples", c, t) for c, t in ((WITHOUT, without), (ADDED, added))
    ]
    tables = {"samples": [], "context_samples": []}
    for query_id in ids:
        for table, condition, texts in rows:
            for i, text in enumerate(texts, start=1):
                row = {"query_id": query_id, "sample_id": f"s{i}", "answer": text}
                tables[table].append(row | ({"condition": condition} if condition else {}))
        tables["context_samples"] += [
            {"query_id": query_id, "sample_id": "baseline", "answer": "x", "condition": condition}
            for condition in (UNCHANGED, WITHOUT, ADDED)
        ]
    queries = pd.DataFrame({"query_id": ids, "question": "Q?", "answer": "another model's"})
    return Run.create(
        {"source": "live", **more}, queries=queries, **{k: pd.DataFrame(v) for k, v in tables.items()}
    )


def outcome(test, condition, name):
    rows = test.to_frame()
    return rows[(rows["condition"] == condition) & (rows["name"] == name)].iloc[0]


def test_a_model_that_loses_its_support_and_gains_noise():
    test = context_test(run_with_test(n=12))
    assert test.query_ids == tuple(f"q{i}" for i in range(12))
    distinct = outcome(test, WITHOUT, "distinct_answers")
    # Two different answers become three in every question, and one.
    assert (distinct["n"], distinct["n_rising"], distinct["mean"], distinct["outcome"]) == (
        12,
        12,
        1.0,
        PASSES,
    )
    assert math.isnan(distinct["low"])
    distinct = outcome(test, ADDED, "distinct_answers")
    assert (distinct["n_falling"], distinct["mean"], distinct["outcome"]) == (12, -1.0, FAILS)
    # The answer is that of the model itself, not the run's: x agrees with two of three samples, then with all.
    agreement = outcome(test, ADDED, "agreement_jaccard")
    assert agreement["mean"] == pytest.approx(-1 / 3)
    assert outcome(test, ADDED, "answer_length")["n_same"] == 12
    frame = test.to_frame()
    assert len(frame) == 2 * len(TEXT_ONLY) and set(frame["name"]) == set(TEXT_ONLY)
    assert frame["condition"].tolist() == [WITHOUT] * len(TEXT_ONLY) + [ADDED] * len(TEXT_ONLY)
    assert test.compared["name"].tolist() == 2 * [name for name in COMPARED if name in TEXT_ONLY]
    # 2 / 4096 for each of nine but the length of the answer, which does not change.
    assert outcome(test, ADDED, "agreement_text")["p_value"] == pytest.approx(9 * 2 / 2**12)


def test_only_samples_that_both_have_are_compared():
    # The tenth sample would make a tenth answer.
    test = context_test(run_with_test(original=("x", "x", "x", "y"), added=("x", "x", "x")))
    assert outcome(test, ADDED, "distinct_answers")["n_same"] == 8
    assert all(len(one.sampled) == 3 for side in (test.before, test.after) for one in side[ADDED])


def test_refusals_and_missing_answers_are_left_out_and_counted():
    test = context_test(run_with_test(without=("I don't know.",) * 3, added=("x",)))
    assert outcome(test, WITHOUT, "semantic_entropy_content")["n"] == 0
    assert (test.declined(WITHOUT), test.lost(WITHOUT)) == (8, 0)
    assert (test.declined(ADDED), test.lost(ADDED)) == (0, 8)
    assert outcome(test, ADDED, "semantic_entropy_content")["n"] == 0
    empty = context_test(run_with_test(without=("", "", "")))
    assert empty.declined(WITHOUT) == 8


def test_a_failing_estimator_is_a_finding_with_the_questions_that_show_it():
    found = measure(run_with_test(n=12)).labelled()
    (finding,) = [one for one in findings(found) if one.name == "surer_with_unrelated"]
    assert (finding.n, finding.of, finding.expected_by_chance) == (12, 12, 6.0)
    assert finding.sentence.startswith(
        "With unrelated passages added, reported uncertainty falls in 12 of 12 questions ("
    )
    assert "mean change −" in finding.sentence and finding.sentence.endswith("more estimators do the same.")
    assert finding.p_value <= 0.05 and len(finding.query_ids) == 12
    assert not [one for one in findings(found) if one.name == "surer_without_support"]
    other = measure(run_with_test(n=12, without=("x", "x", "x"), added=("x", "y", "x"))).labelled()
    names = [one.name for one in findings(other)]
    assert "surer_without_support" in names and "surer_with_unrelated" not in names


def test_a_run_without_the_test_has_none():
    run = run_with_test()
    test = context_test(run.derive(context_samples=run["context_samples"].iloc[:0]))
    assert not test.query_ids and test.to_frame().empty and not test.passed_over


def test_the_reasons_of_questions_passed_over_come_from_the_run():
    facts = {"options": {}, "context_passed_over": {"no_support": 3}}
    assert context_test(run_with_test(steps={"uncertainty": facts})).passed_over == {"no_support": 3}


def test_the_number_of_failures_says_what_it_rests_on():
    def failures(run):
        shown = numbers(measure(run).labelled())
        return next(one for one in shown if one.key == "context_failures")

    found = failures(run_with_test(n=12))
    # All but the length of the answer fall with unrelated passages, and rise without support.
    tests = context_test(run_with_test(n=12)).compared
    n_tests = 2 * len([name for name in COMPARED if name in TEXT_ONLY])
    assert found.of == n_tests == len(tests) and found.value == (tests["outcome"] == FAILS).sum() > 0
    assert found.note.startswith("12 questions; ") and "at most 1 time in 10" in found.note
    run = run_with_test()
    without = failures(run.derive(context_samples=run["context_samples"].iloc[:0]))
    assert (without.value, without.of, without.text, without.note) == (0, 0, "—", "")
