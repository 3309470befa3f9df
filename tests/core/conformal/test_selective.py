"""Certified thresholds by hand and against scipy's binomial test."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest

from core.conformal import certify_threshold
from core.conformal.selective import GRID
from core.errors import InputError

NAN = math.nan


def answers(*groups):
    """(confidence, right, wrong) repeated: the confidences and whether each is correct."""
    confidence = np.concatenate([np.full(right + wrong, c) for c, right, wrong in groups])
    correct = np.concatenate([np.r_[np.ones(right), np.zeros(wrong)] for _, right, wrong in groups])
    return confidence, correct


def test_a_fixed_sequence_by_hand():
    # At α = δ = 0.5 and one start: P(Bin(n, ½) ≤ wrong) of 0 in 2 is ¼, of 1 in 4 is 5/16, of 3 in 6 is 42/64.
    confidence, correct = answers((0.9, 2, 0), (0.7, 1, 1), (0.5, 0, 2))
    found = certify_threshold(confidence, correct, 0.5, 0.5, grid=[0.5, 0.9, 0.7], starts=[0.9])
    assert [row.p_value for row in found.table] == pytest.approx([1 / 4, 5 / 16, 42 / 64])
    assert [row.certified for row in found.table] == [True, True, False]
    assert [row.level for row in found.table] == [0.5, 0.5, 0.5]
    assert (found.threshold, found.n, found.n_answered, found.n_wrong, found.risk) == (0.7, 6, 4, 1, 0.25)
    assert found.labels_needed == 0 and found.answers_needed == 1


def test_budgets_pass_on_after_a_success_and_start_again_after_a_failure():
    # All four share δ = 0.4. p: ½⁴ = 0.0625 passes 0.1; with 0 of 5 1/32 passes 0.2; with 10 wrong it fails;
    # the last begins with its own 0.1 again, and fails.
    confidence, correct = answers((0.9, 4, 0), (0.7, 1, 0), (0.5, 0, 10), (0.3, 5, 0))
    found = certify_threshold(
        confidence, correct, 0.5, 0.4, grid=[0.9, 0.7, 0.5, 0.3], starts=[0.9, 0.7, 0.5, 0.3]
    )
    assert [row.level for row in found.table] == pytest.approx([0.1, 0.2, 0.3, 0.1])
    assert [row.certified for row in found.table] == [True, True, False, False]
    assert found.threshold == 0.7


def test_a_later_start_certifies_what_the_first_could_not():
    # Too few answered at 0.9; from 0.5 on none of 8 is wrong: ½⁸ is below δ/2, and no start is needed at 0.4.
    confidence, correct = answers((0.9, 1, 0), (0.5, 7, 0), (0.4, 1, 1))
    found = certify_threshold(confidence, correct, 0.5, 0.1, grid=[0.9, 0.5, 0.4], starts=[0.9, 0.5])
    assert [row.level for row in found.table] == pytest.approx([0.05, 0.05, 0.05])
    assert [row.certified for row in found.table] == [False, True, True]
    assert found.table[2].p_value == pytest.approx(11 / 1024)
    # Without that start the lower ones have no budget, however good they are.
    first = certify_threshold(confidence, correct, 0.5, 0.1, grid=[0.9, 0.5, 0.4], starts=[0.9])
    assert [row.level for row in first.table] == [0.1, 0, 0]
    assert first.threshold is None


def test_no_budget_certifies_nothing_even_at_a_p_value_of_0():
    # 0.9 to the 10,000th is no float any more.
    found = certify_threshold(*answers((0.5, 10_000, 0)), 0.1, 0.1, grid=[0.9, 0.5], starts=[0.9])
    assert (found.table[1].p_value, found.table[1].level, found.threshold) == (0, 0, None)


def test_the_starts_are_numbers_of_surest_answers_chosen_without_the_labels():
    """By scipy's binomial: a third of α passes in 9 of 10 calibrations with 61 answers at 0.09, not with fewer."""
    rng = np.random.default_rng(0)
    confidence = rng.random(400)
    tables = [certify_threshold(confidence, right, 0.15, 0.1).table for right in rng.random((2, 400)) < 0.8]
    for table in tables:
        # 61 labels above the 62nd, and 200 above the 201st, with 0.9 and 0.1 of δ.
        starts = [row for row in table if row.threshold not in GRID]
        assert [row.n_answered for row in starts] == [61, 200]
        assert [row.level for row in starts] == pytest.approx([0.09, 0.01])
        assert [(confidence >= row.threshold).sum() for row in starts] == [61, 200]

    def power(m):
        allowed = max((k for k in range(m) if binom.cdf(k, m, 0.15) <= 0.09), default=-1)
        return binom.cdf(allowed, m, 0.05)

    assert power(61) >= 0.9 and max(map(power, range(1, 61))) < 0.9


def test_a_start_within_a_tie_is_no_threshold():
    # 22 of 30 with the same confidence are the fewest that pass; the grid goes on from there with all 30.
    found = certify_threshold(*answers((0.9, 30, 0)), 0.1, 0.1)
    [start] = [row for row in found.table if math.isnan(row.threshold)]
    assert (start.n_answered, start.n_wrong, start.certified) == (22, 0, True)
    assert [row.n_answered for row in found.table if row.certified] == [22] + [30] * 19
    assert found.threshold == 0
    # A threshold that no label ties with is one: from just above the next label on.
    confidence = np.arange(30) / 30
    [start] = [
        row for row in certify_threshold(confidence, np.ones(30), 0.1, 0.1).table if row.threshold not in GRID
    ]
    assert start.threshold == np.nextafter(7 / 30, 1) and start.n_answered == 22


@given(
    st.lists(st.tuples(st.integers(0, 10), st.booleans()), max_size=60),
    st.sampled_from([0.05, 0.1, 0.3, 0.5]),
)
def test_each_row_is_scipys_binomial_test(cases, alpha):
    confidence, correct = np.array([c / 10 for c, _ in cases]), np.array([float(y) for _, y in cases])
    found = certify_threshold(confidence, correct, alpha, 0.2)
    before = None
    for row in found.table:
        kept = correct[confidence >= row.threshold]
        if not math.isnan(row.threshold):
            assert (row.n_answered, row.n_wrong) == (kept.size, (kept == 0).sum())
        if row.n_answered:
            test = binomtest(row.n_wrong, row.n_answered, alpha, alternative="less")
            assert row.p_value == pytest.approx(test.pvalue) and row.risk == row.n_wrong / row.n_answered
        else:
            assert row.p_value == 1 and math.isnan(row.risk)
        assert row.certified == (row.p_value <= row.level)
        assert before is None or row.level >= (before.level if before.certified else 0)
        before = row
    certified = [row.threshold for row in found.table if row.certified and not math.isnan(row.threshold)]
    assert found.threshold == (min(certified) if certified else None)


@pytest.mark.parametrize(
    ("alpha", "delta", "n"),
    [(0.1, 0.1, 22), (0.1, 0.05, 29), (0.05, 0.1, 45), (0.05, 0.05, 59), (0.5, 0.25, 2)],
)
def test_the_fewest_answers_that_certify_anything(alpha, delta, n):
    # The published numbers for one start; α = ½ and δ = ¼ are met by 2 exactly.
    enough = certify_threshold(np.ones(n), np.ones(n), alpha, delta, starts=[0.95])
    assert enough.answers_needed == n and enough.threshold == 0 and enough.labels_needed == 0
    short = certify_threshold(np.ones(n - 1), np.ones(n - 1), alpha, delta, starts=[0.95])
    assert short.threshold is None and short.labels_needed == 1 and math.isnan(short.risk)
    assert (short.n, short.n_answered, short.n_wrong) == (n - 1, 0, 0)


def test_labels_still_needed():
    # Half of the questions are answered, none wrong: 22 answers take 44 questions.
    confidence, correct = answers((1.0, 5, 0), (0.0, 0, 5))
    assert certify_threshold(confidence, correct, 0.1, 0.1, [1.0, 0.0], [1.0]).labels_needed == 34
    # One wrong in 20: by scipy, 40 answers with 2 wrong do not reach 10 %, 140 with 7 do.
    found = certify_threshold(*answers((1.0, 19, 1)), 0.1, 0.1, [1.0], [1.0])
    more = found.labels_needed
    assert binom.cdf(2, 40, 0.1) > 0.1 > binom.cdf(7, 140, 0.1) and 40 < 20 + more < 140
    # 5 % wrong on average: at the number named about δ is met.
    total = 20 + more
    assert (
        binom.cdf(math.floor(total / 20), total, 0.1) <= 0.1 <= binom.cdf(math.ceil(total / 20), total, 0.1)
    )


def test_never_at_this_error_rate():
    assert certify_threshold(*answers((0.96, 9, 1)), 0.1, 0.1).labels_needed is None
    assert certify_threshold(*answers((0.96, 0, 3)), 0.1, 0.1).labels_needed is None
    # 9.99 % where 10 % is allowed would take more than a million.
    assert certify_threshold(*answers((0.96, 9001, 999)), 0.1, 0.1).labels_needed is None
    # Nobody labelled anything yet: 0.9²² = 0.098, and one more label says where the 22 end.
    none = certify_threshold([], [], 0.1, 0.1)
    assert (none.threshold, none.n, none.labels_needed, none.answers_needed) == (None, 0, 23, 22)


@pytest.mark.parametrize(
    "cases",
    [((0.95, 20, 0), (0.2, 12, 18)), ((0.9, 33, 1), (0.5, 26, 30)), ((0.9, 15, 0), (0.4, 5, 10))],
)
def test_the_number_of_labels_named_does_it(cases):
    """Where the labels come again in the same shares, so many certify a threshold, and far fewer do not."""
    few = certify_threshold(*answers(*cases), 0.1, 0.1)
    n, more = few.n, few.labels_needed

    def certified(total):
        return certify_threshold(
            *answers(*((c, round(r * total / n), round(w * total / n)) for c, r, w in cases)), 0.1, 0.1
        ).threshold

    assert few.threshold is None and more > 0
    assert certified(1.05 * (n + more)) is not None and certified(0.7 * (n + more)) is None


def test_the_number_of_labels_named_does_it_where_no_two_are_equally_sure():
    """A start is then a threshold itself; the grid has none between the right answers and the wrong ones."""

    def certified(n):
        confidence = np.linspace(0.99, 0.96, n)
        return certify_threshold(confidence, np.arange(n) < 2 * n / 3, 0.1, 0.1)

    few = certified(30)
    assert few.threshold is None and few.labels_needed > 0
    named = 30 + few.labels_needed
    assert certified(round(1.05 * named)).threshold > 0.96 and certified(round(0.7 * named)).threshold is None


def test_missing_confidences_and_labels_are_left_out():
    confidence, correct = answers((1.0, 22, 0))
    found = certify_threshold([*confidence, NAN, 1.0], [*correct, 0, NAN], 0.1, 0.1, [1.0], [1.0])
    assert (found.n, found.n_answered, found.n_wrong, found.threshold) == (22, 22, 0, 1.0)


def test_the_table_as_a_frame():
    frame = certify_threshold([0.5, 0.9], [0, 1], 0.5, 0.5, [0.4, 0.8], [0.8]).to_frame()
    assert list(frame) == ["threshold", "n_answered", "n_wrong", "risk", "p_value", "level", "certified"]
    assert frame["threshold"].tolist() == [0.8, 0.4] and frame["n_wrong"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [2], 0.1, 0.1), r"correct must be 1 \(correct\), 0 \(wrong\) or NaN"),
        (([0.5], [1, 0], 0.1, 0.1), "confidence and correct must be of equal length, got 1 and 2"),
        (([0.5], [1], 0, 0.1), "alpha must lie between 0 and 1"),
        (([0.5], [1], 0.1, 1), "delta must lie between 0 and 1"),
        (([0.5], [1], 0.1, 0.1, []), "grid must hold at least one threshold"),
        (([0.5], [1], 0.1, 0.1, [0.1, NAN]), "grid must hold at least one threshold and no NaN"),
        (([0.5], [1], 0.1, 0.1, [0.1], [0.2]), r"starts must be thresholds of the grid, at least one; got \[0.2\]"),
        (([0.5], [1], 0.1, 0.1, [0.1], []), "starts must be thresholds of the grid, at least one"),
    ],
)  # fmt: skip
def test_messages_name_what_is_wrong(arguments, message):
    with pytest.raises(InputError, match=message):
        certify_threshold(*arguments)


def test_out_of_reach_is_said_only_where_no_number_of_labels_would_do():
    """Twenty sure answers without an error were "too many wrong, more labels would not help", needing 45 more."""
    found = certify_threshold([0.95] * 20 + [0.2] * 30, [1] * 20 + [0] * 18 + [1] * 12, 0.1, 0.1)
    assert not found.out_of_reach and found.labels_needed > 0
    assert found.missing == f"about {found.labels_needed} more labels would certify one"
    # By scipy: the lower end of Clopper and Pearson's one-sided interval for 8 of 40 is 0.104, for 7 0.085.
    assert beta.ppf(0.05, 8, 33) > 0.1 > beta.ppf(0.05, 7, 34)
    assert certify_threshold(*answers((0.96, 32, 8)), 0.1, 0.1).out_of_reach
    assert not certify_threshold(*answers((0.96, 33, 7)), 0.1, 0.1).out_of_reach
    # The sure ones may still do, though all together do not; of 400 that is 20 at least.
    assert not certify_threshold(*answers((0.96, 38, 1), (0.3, 0, 60)), 0.1, 0.1).out_of_reach
    assert not certify_threshold(*answers((0.96, 20, 0), (0.3, 0, 380)), 0.1, 0.1).out_of_reach
    few_sure = certify_threshold(*answers((0.96, 19, 0), (0.3, 0, 381)), 0.1, 0.1)
    # So few may still do: 2,000 labels certify where only the surest hundredth is good, so that much is said.
    assert few_sure.out_of_reach and "at every confidence that 1 answer in 20 reaches" in few_sure.missing
    assert not certify_threshold(*answers((0.96, 60, 0)), 0.1, 0.1).out_of_reach, "certified"
    assert not certify_threshold([], [], 0.1, 0.1).out_of_reach


@pytest.mark.parametrize("n", [1, 3])
def test_a_few_labels_never_say_that_more_would_not_change_it(n):
    """At α = 0.01 a single wrong answer has a risk of at least 5 % at the lower end of its interval."""
    for alpha in (0.01, 0.04, 0.1, 0.2):
        assert not certify_threshold([0.5] * n, [0] * n, alpha, 0.1).out_of_reach


def test_a_single_wrong_answer_is_the_surest_one_in_twenty():
    # Of one answer that is wrong, 0.05 is the lower end of the interval; of more it is above that.
    confidence, wrong = np.arange(20) / 20, np.zeros(20)
    assert certify_threshold(confidence, wrong, 0.04, 0.1).out_of_reach
    assert not certify_threshold(confidence, wrong, 0.06, 0.1).out_of_reach


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=80))
def test_a_more_lenient_alpha_is_never_out_of_reach_where_a_stricter_one_is_not(cases):
    """Of the same labels, 0.2 was out of reach (high) where 0.1 was not (unclear): it took fewer to look at."""
    confidence, correct = [c / 10 for c, _ in cases], [float(y) for _, y in cases]
    found = [certify_threshold(confidence, correct, alpha, 0.1) for alpha in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)]
    said = [one.out_of_reach for one in found]
    assert said == sorted(said, reverse=True)
    first = next((i for i, one in enumerate(found) if one.threshold is not None), len(found))
    assert not any(said[first:])


@pytest.mark.parametrize(
    ("alpha", "n"), [(0.1, 22), (0.1, 23), (0.1, 44), (0.1, 45), (0.1, 120), (0.2, 90), (0.8, 60)]
)
def test_numbers_of_surest_answers_by_scipys_binomial(alpha, n):
    def power(level, m):
        passing = np.flatnonzero(binom.cdf(np.arange(m), m, alpha) <= level)
        return binom.cdf(passing[-1], m, alpha / 3) if passing.size else 0.0

    def needed(level):
        return next(m for m in range(1, 999) if binom.cdf(0, m, alpha) <= level)

    def start(level, most):
        powers = [power(level, m) for m in range(1, most + 1)]
        return 1 + next((i for i, one in enumerate(powers) if one >= 0.9), int(np.argmax(powers)))

    def first(level):
        return start(level, max(n // 3, needed(level)))

    expected = {first(0.1): 0.1} if needed(0.1) < n else {}
    if needed(0.01) < n:
        expected = {first(0.09): 0.09, max(n // 2, start(0.01, n - 1)): 0.01}
    # Where all are wrong none passes its level on.
    table = certify_threshold(np.arange(n) / n, np.zeros(n), alpha, 0.1).table
    assert {row.n_answered: row.level for row in table if row.level} == pytest.approx(expected)


def test_twentieths_are_certified_unless_told_otherwise():
    table = certify_threshold([0.2], [0.0], 0.1, 0.1).table
    assert [row.threshold for row in table] == pytest.approx([step / 20 for step in range(19, -1, -1)])
