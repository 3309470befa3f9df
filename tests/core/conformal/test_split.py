"""Thresholds and p-values by hand, against published vectors and numpy, and by their properties."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from core.conformal import (
    conformal_threshold,
    coverage_band,
    group_p_values,
    group_thresholds,
    label_shortage,
    labels_needed,
    p_values,
    threshold_rank,
)
from core.conformal.split import covered_by_chance, shortfall
from core.errors import InputError

NAN, INF = math.nan, math.inf
VECTORS = json.loads((Path(__file__).parents[2] / "data/conformal.json").read_text())["cases"]
SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.35, 0.5, 0.8, 1.0, -2.0]), max_size=30)
ALPHAS = st.integers(1, 99).map(lambda percent: percent / 100)


@pytest.mark.parametrize("case", VECTORS)
def test_published_vectors(case):
    expected = INF if case["threshold"] is None else case["threshold"]
    assert threshold_rank(len(case["calibration"]), case["alpha"]) == case["k"]
    threshold = conformal_threshold(case["calibration"], case["alpha"])
    assert threshold == pytest.approx(expected, abs=1e-6)
    p = p_values(case["calibration"], case["test_scores"])
    assert p == pytest.approx(np.array(case["p_values"]), abs=1e-6)
    assert (p > case["alpha"]).tolist() == case["accepted_p_gt_alpha"]
    assert (np.array(case["test_scores"]) <= threshold).tolist() == case["accepted_p_gt_alpha"]


def test_the_vectors_are_all_there():
    assert len(VECTORS) == 15 and any(case["threshold"] is None for case in VECTORS)


@pytest.mark.parametrize(
    ("n", "alpha", "expected"),
    [
        (9, 0.7, 3),  # in floats 10 · (1 − 0.7) is 3.0000000000000004, whose ceiling is 4
        (9, 0.1, 9),
        (19, 0.05, 19),
        (8, 0.1, INF),
        (18, 0.05, INF),
        (4, 0.5, 3),  # ⌈2.5⌉
        (0, 0.9, INF),
        (1, 0.5, 1),
    ],
)
def test_the_rank_of_the_threshold(n, alpha, expected):
    assert conformal_threshold(np.arange(n, 0, -1), alpha) == expected


@given(SCORES.filter(len), ALPHAS)
def test_the_threshold_is_numpys_quantile_by_the_inverted_distribution(scores, alpha):
    n = len(scores)
    k = -((n + 1) * (round(alpha * 100) - 100) // 100)
    # Half a rank lower, so that numpy's own arithmetic cannot slip to the next one.
    expected = np.quantile(scores, (k - 0.5) / n, method="inverted_cdf") if k <= n else INF
    assert conformal_threshold(scores, alpha) == expected


@given(SCORES, ALPHAS, ALPHAS, st.randoms())
def test_lower_alpha_accepts_more_and_the_order_of_cases_is_nothing(scores, one, other, random):
    low, high = sorted([one, other])
    assert conformal_threshold(scores, low) >= conformal_threshold(scores, high)
    mixed = random.sample(scores, len(scores))
    assert conformal_threshold(mixed, one) == conformal_threshold(scores, one)
    assert p_values(mixed, [0.2]) == p_values(scores, [0.2])


@given(SCORES, ALPHAS, st.sampled_from([0.1, 0.3, 1.0, 7.7, 1e-300, 5e-324, 1e300]))
def test_equal_weights_are_none(scores, alpha, weight):
    weights = [weight] * len(scores)
    assert conformal_threshold(scores, alpha, weights, weight) == conformal_threshold(scores, alpha)
    new = [-3.0, 0.2, 0.3, 1.0, 2.0]
    assert p_values(scores, new, weights, [weight] * 5).tolist() == p_values(scores, new).tolist()
    assert p_values(scores, new, weights, [weight] * 5, seed=3) == pytest.approx(
        p_values(scores, new, seed=3)
    )


@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.4, 0.7]), st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.5]))),
    ALPHAS,
)
def test_rejected_is_above_the_threshold(cases, alpha):
    scores, weights = [score for score, _ in cases], [weight for _, weight in cases]
    new = np.array([0.0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8])
    assert ((p_values(scores, new) <= alpha) == (new > conformal_threshold(scores, alpha))).all()
    p = p_values(scores, new, weights, np.full(9, 0.3))
    assert ((p <= alpha) == (new > conformal_threshold(scores, alpha, weights, 0.3))).all()


def test_weights_by_hand():
    # Weights 1, 2, 3 and 4 for the new case: from 0.1 on 10, above 0.1 nine, above 0.2 seven, above 0.3 four tenths.
    scores, weights = [0.3, 0.1, 0.2], [3, 1, 2]
    assert p_values(scores, [0.05, 0.1, 0.2, 0.3, 0.35], weights, [4] * 5).tolist() == [1, 1, 0.9, 0.7, 0.4]
    assert conformal_threshold(scores, 0.4, weights, 4) == 0.3
    assert conformal_threshold(scores, 0.7, weights, 4) == 0.2
    assert conformal_threshold(scores, 0.39, weights, 4) == INF
    # A weightless case might as well not be there; a heavier new case is harder to refuse.
    assert conformal_threshold([*scores, 99], 0.4, [*weights, 0], 4) == 0.3
    assert conformal_threshold(scores, 0.4, weights, 4.1) == INF


def test_ties_are_counted_as_at_least():
    assert p_values([0.5, 0.5, 0.5], [0.5, 0.6]).tolist() == [1, 0.25]
    assert conformal_threshold([0.5, 0.5, 0.5], 0.25) == 0.5


def test_randomised_p_values_lie_within_the_tie():
    # Of 4 scores 1 is above and 2 equal: between 1/5 and 4/5.
    drawn = p_values([0.1, 0.2, 0.2, 0.4], np.full(2_000, 0.2), seed=1)
    assert 0.2 < drawn.min() < 0.21 and 0.79 < drawn.max() <= 0.8
    assert drawn.mean() == pytest.approx(0.5, abs=0.02)
    assert (p_values([0.1, 0.2, 0.2, 0.4], np.full(2_000, 0.2), seed=1) == drawn).all()
    heavy = p_values([0.1, 0.3], np.full(2_000, 0.3), [1, 2], np.full(2_000, 5), seed=1)
    assert 0 < heavy.min() < 0.01 and 0.865 < heavy.max() <= 7 / 8


def test_undefined_and_infinite_scores():
    assert conformal_threshold([0.3, NAN, 0.1, 0.2], 0.25) == 0.3
    assert conformal_threshold([0.3, NAN, 0.1, 0.2], 0.25, [1, 99, 1, 1], 1) == 0.3
    assert p_values([0.3, NAN], [NAN, 0.2, INF]).tolist()[1:] == [1, 0.5]
    assert math.isnan(p_values([0.3, NAN], [NAN, 0.2])[0])
    assert math.isnan(p_values([0.3], [NAN], [1], [1])[0])
    assert conformal_threshold([-INF, -INF, INF], 0.5) == -INF
    assert p_values([], [0.3]).tolist() == [1]
    assert p_values([0.3], []).size == 0


@pytest.mark.parametrize(
    ("alpha", "n"), [(0.1, 9), (0.05, 19), (0.2, 4), (0.3, 3), (0.7, 1), (0.01, 99), (0.001, 999)]
)
def test_labels_needed_is_the_smallest_number_with_a_threshold(alpha, n):
    assert labels_needed(alpha) == n
    assert conformal_threshold(np.zeros(n), alpha) == 0 and conformal_threshold(np.zeros(n - 1), alpha) == INF
    assert label_shortage(n, alpha) == "" and f"at least {n}" in label_shortage(n - 1, alpha)


def test_the_shortage_in_words():
    assert label_shortage(1, 0.05) == "1 label cannot certify α = 0.05; you need at least 19."
    assert label_shortage(1200, 0.0001) == "1,200 labels cannot certify α = 0.0001; you need at least 9,999."


def test_the_band_by_hand():
    # One label, α = 0.5: the coverage is that label's own rank, uniform.
    assert coverage_band(1, 0.5, 0.9) == pytest.approx((0.05, 0.95))
    # Of 10 test cases any number 0, ... 10 is then equally likely: below 1 is 1/11 > 5 %, up to 9 is 10/11 < 95 %.
    assert coverage_band(1, 0.5, 0.9, n_test=10) == (0, 1)
    assert coverage_band(1, 0.5, 0.8, n_test=10) == pytest.approx((0.1, 0.9))
    assert coverage_band(8, 0.1) == (1, 1) and coverage_band(0, 0.1, n_test=3) == (1, 1)


@pytest.mark.parametrize(("n", "alpha", "k"), [(9, 0.1, 9), (50, 0.2, 41), (500, 0.05, 476)])
def test_the_band_is_scipys(n, alpha, k):
    assert coverage_band(n, alpha) == pytest.approx(beta.interval(0.95, k, n + 1 - k))
    # Counted from the distribution: P(count) is the mean of the binomial over the beta.
    m = 40
    chance = [
        beta.expect(lambda c, x=x: math.comb(m, x) * c**x * (1 - c) ** (m - x), (k, n + 1 - k))
        for x in range(m + 1)
    ]
    below = np.cumsum(chance)
    low, high = coverage_band(n, alpha, n_test=m)
    low, high = round(low * m), round(high * m)
    assert below[low] >= 0.025 > (below[low - 1] if low else 0)
    assert below[high] >= 0.975 > below[high - 1]


def test_the_shortfall_by_hand():
    # Ten or more of 20 lie beyond the largest of 9 where the ten strangest of all 29 are new: C(19, 9) / C(29, 9).
    assert shortfall(10, [(9, 20)], 0.1) == pytest.approx(92_378 / 10_015_005)

    # Of two thresholds each covers its case with 0.9: none in 0.1 · 0.1, one in 2 · 0.1 · 0.9, and then both.
    assert covered_by_chance([(9, 1), (9, 1)], 0.1) == pytest.approx([0.01, 0.18, 0.81])
    assert shortfall(1, [(9, 1), (9, 1)], 0.1) == pytest.approx(0.19)


def test_groups_by_hand():
    scores, groups = [3, 1, 2, 9, 7, NAN], ["a", "a", "a", "b", "b", "c"]
    found = group_thresholds(scores, groups, 0.25, ["a", "d"])
    assert list(found) == ["a", "b", "c", "d"]
    assert found["a"] == (3, 3.0, "")
    assert found["b"] == (2, INF, "2 labels cannot certify α = 0.25; you need at least 3.")
    for unknown in "cd":
        n, threshold, reason = found[unknown]
        assert n == 0 and math.isnan(threshold) and reason == "No calibration label belongs to this group."
    p = group_p_values(scores, groups, [2.5, 8, 1, 8, 0], ["a", "b", "d", "a", "c"])
    assert p[[0, 1, 3]] == pytest.approx([2 / 4, 2 / 3, 1 / 4])
    assert np.isnan(p[[2, 4]]).all()


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, NAN, INF, None, "much", True])
def test_alpha_outside_its_range(alpha):
    with pytest.raises(InputError, match=r"^alpha must lie between 0 and 1, both excluded; got "):
        conformal_threshold([0.1], alpha)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conformal_threshold([[0.1]], 0.1), r"scores must have one dimension, got the shape \(1, 1\)"),
        (lambda: conformal_threshold(["high"], 0.1), "scores must be numbers: .*high"),
        (lambda: conformal_threshold([0.1], 0.1, [1]), "weights and new_weight must be given together"),
        (lambda: conformal_threshold([0.1], 0.1, new_weight=1), "weights and new_weight must be given together"),
        (lambda: conformal_threshold([0.1], 0.1, [1, 2], 1), "scores and weights must be of equal length, got 1 and 2"),
        (lambda: conformal_threshold([0.1], 0.1, [-1], 1), "weights must be finite and at least 0"),
        (lambda: conformal_threshold([0.1], 0.1, [INF], 1), "weights must be finite and at least 0"),
        (lambda: conformal_threshold([0.1], 0.1, [1], 0), "new_weight must be finite and above 0"),
        (lambda: p_values([0.1], [0.1], [1]), "weights and new_weights must be given together"),
        (lambda: p_values([0.1], [0.1], [1], [1, 2]), "new and new_weights must be of equal length, got 1 and 2"),
        (lambda: coverage_band(9, 0.1, 1.0), "level must lie between 0 and 1"),
        (lambda: coverage_band(-1, 0.1), "n must be at least 0 and n_test at least 1, got -1 and None"),
        (lambda: coverage_band(9, 0.1, n_test=0), "n must be at least 0 and n_test at least 1, got 9 and 0"),
        (lambda: group_thresholds([1, 2], ["a"], 0.1), "of equal length, got 2 and 1"),
        (lambda: group_p_values([1], ["a"], [1, 2], ["a"]), "of equal length, got 2 and 1"),
    ],
)  # fmt: skip
def test_messages_name_what_is_wrong(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_any_decimal_is_read_as_written():
    # Every α of three decimals and every n that makes the rank a whole number: floats slip in many of them.
    for thousandths in range(1, 1000):
        n = 1000 // math.gcd(thousandths, 1000) - 1
        expected = (n + 1) - Fraction(thousandths * (n + 1), 1000)
        assert threshold_rank(n, thousandths / 1000) == expected
