"""Random splits: the number covered is beta-binomial, sets grow with the promise, +inf is never covered."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import betabinom, chisquare

from core.conformal import conformal_threshold, coverage_band, threshold_rank
from core.conformal.promises import ALPHAS, Splits, repeated_splits


def test_halves_and_thresholds_by_hand():
    # Two calibrate, two test.
    found = repeated_splits([1, 2, 3, 4], alphas=[0.4], n_splits=300, seed=1)
    assert (found.n_calibration, found.n_test, found.coverage.shape) == (2, 2, (300, 1))
    # Each of the six halves is as likely as the others.
    halves = list(combinations([1, 2, 3, 4], 2))
    limits = [conformal_threshold(half, 0.4) for half in halves]
    covered = [
        np.mean([one <= limit for one in {1, 2, 3, 4} - {*half}])
        for half, limit in zip(halves, limits, strict=True)
    ]
    for value in (0.0, 0.5, 1.0):
        assert np.mean(found.coverage == value) == pytest.approx(covered.count(value) / 6, abs=0.09)
    assert found.finite.all() == all(limit < math.inf for limit in limits)


def test_with_too_few_labels_everything_is_covered_but_nothing_promised():
    found = repeated_splits(range(10), alphas=[0.1, 0.4])
    finite = [conformal_threshold(range(5), alpha) < math.inf for alpha in (0.1, 0.4)]
    assert (found.coverage[:, ~found.finite.any(axis=0)] == 1).all()
    frame = found.to_frame()
    assert frame["finite"].to_list() == finite and finite[1]
    assert frame.loc[0, ["low", "high"]].to_list() == [*coverage_band(5, 0.1, n_test=5)]


def test_a_case_that_nothing_covers_is_never_covered():
    found = repeated_splits([math.inf] * 6, alphas=[0.5])
    assert (found.coverage == 0).all() and not found.finite.any()


def test_missing_scores_are_left_out_and_one_case_cannot_be_split():
    found = repeated_splits([math.nan, 1, math.nan, 2, 3], alphas=[0.5])
    assert (found.n_calibration, found.n_test) == (1, 2)
    assert repeated_splits([math.nan, 1]) is None and repeated_splits([]) is None


def test_many_cases_are_drawn_from():
    found = repeated_splits(np.arange(5_000), alphas=[0.1], n_splits=3)
    assert (found.n_calibration, found.n_test) == (500, 500)


def test_the_number_covered_is_beta_binomial():
    found = repeated_splits(np.random.default_rng(0).random(40), alphas=[0.2], n_splits=4_000, seed=5)
    k = threshold_rank(20, 0.2)
    seen = np.bincount((found.coverage[:, 0] * 20).round().astype(int), minlength=21)
    expected = 4_000 * betabinom.pmf(np.arange(21), 20, k, 21 - k)
    common = expected > 20
    seen, expected = (
        np.append(seen[common], seen[~common].sum()),
        np.append(expected[common], expected[~common].sum()),
    )
    assert chisquare(seen, expected).pvalue > 1e-4
    low, high = found.to_frame().loc[0, ["low", "high"]]
    assert np.mean((found.coverage >= low) & (found.coverage <= high)) > 0.94


def test_the_size_of_a_set_counts_groups_up_to_the_threshold():
    # Every case has groups at 0.1, 0.5 and 0.9; the correct one scores 0.5, so every threshold is 0.5.
    found = repeated_splits([0.5] * 20, [[0.9, 0.1, 0.5]] * 20, alphas=[0.05, 0.3])
    # Without a finite one a set holds everything.
    held = [2 if conformal_threshold([0.5] * 10, alpha) == 0.5 else 3 for alpha in (0.05, 0.3)]
    assert (found.size == held).all() and (found.coverage == 1).all() and held[1] == 2
    assert found.largest == 3
    frame = found.to_frame()
    assert frame[["size", "size_low", "size_high"]].to_numpy().tolist() == [[n] * 3 for n in held]
    assert repeated_splits([0.5] * 4).to_frame()["size"].isna().all()


def test_same_seed_same_splits():
    scores = np.random.default_rng(0).random(30)
    one, same, other = (repeated_splits(scores, n_splits=20, seed=seed) for seed in (1, 1, 2))
    assert (one.coverage == same.coverage).all() and (one.coverage != other.coverage).any()
    assert one.alphas == ALPHAS == tuple(sorted(ALPHAS))


def test_what_is_split_unless_told_otherwise():
    scores = np.random.default_rng(0).random(12)
    found = repeated_splits(scores)
    assert found.coverage.shape == (200, 25) and (found.alphas[0], found.alphas[-1]) == (0.02, 0.5)
    assert (found.coverage == repeated_splits(scores, seed=0).coverage).all()
    assert (repeated_splits([1, 2]).n_calibration, repeated_splits([1, 2]).n_test) == (1, 1)


@pytest.mark.parametrize(("n", "used"), [(999, 999), (1_000, 1_000), (1_001, 1_000)])
def test_a_thousand_cases_are_split_at_most(n, used):
    found = repeated_splits(np.arange(n), alphas=[0.1], n_splits=2)
    assert (found.n_calibration, found.n_test) == (used // 2, used - used // 2)


def test_a_frame_has_the_mean_and_the_middle_of_the_splits():
    coverage = np.arange(41.0)[:, None] / 40
    row = Splits(9, 4, (0.2,), coverage, coverage > 0.5).to_frame().iloc[0]
    # Of 41 values the middle 95 % are the second to the last but one.
    assert row[["mean", "mean_low", "mean_high"]].to_list() == pytest.approx([0.5, 1 / 40, 39 / 40])
    assert row["finite"] == pytest.approx(20 / 41) and (row["low"], row["high"]) == (0.25, 1)
