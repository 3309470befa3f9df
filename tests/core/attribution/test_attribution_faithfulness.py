"""How far an attribution can be believed."""

import math

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr
from scipy.stats import t as student

from core.attribution.faithfulness import Faithfulness, judged, left_out_one_by_one
from core.stats.designs import all_masks


def test_the_lds_by_hand():
    # Eight masks; the prediction exchanges the last two: 1 - 6 * (1 + 1) / (8 * 63), and 27 of 28 pairs are right.
    found = judged(np.array([0.0, 1, 2, 3, 4, 5, 7, 6]), np.arange(8.0) ** 2)
    assert found.lds == pytest.approx(1 - 12 / 504) and found.concordance == pytest.approx(27 / 28)
    assert (found.n, found.reason, found.readable) == (8, None, True)
    assert math.isnan(found.ceiling) and not found.drops


@pytest.mark.parametrize("seed", range(5))
def test_the_lds_is_that_of_scipy_with_ties(seed):
    rng = np.random.default_rng(seed)
    predicted, values = rng.integers(0, 5, 30).astype(float), rng.integers(0, 4, 30).astype(float)
    found = judged(predicted, values)
    rho = spearmanr(predicted, values).statistic
    assert found.lds == pytest.approx(rho, abs=1e-9)
    width = student.ppf(0.975, 27) * math.sqrt((1 + rho**2 / 2) / 27)
    assert math.atanh(found.low) == pytest.approx(math.atanh(rho) - width)
    assert math.atanh(found.high) == pytest.approx(math.atanh(rho) + width)


def test_the_concordance_is_kendalls_without_ties_and_half_for_a_predicted_tie():
    rng = np.random.default_rng(1)
    predicted, values = rng.normal(size=20), rng.normal(size=20)
    tau = kendalltau(predicted, values).statistic
    assert judged(predicted, values).concordance == pytest.approx((1 + tau) / 2)
    tied = np.array([0.0, 1, 2, 3, 4, 5, 6, 6])
    assert judged(tied, np.arange(8.0)).concordance == pytest.approx(27.5 / 28)
    # Predictions that differ by a rounding error are tied, and by more they are not.
    for gap, concordance in ((4e-10, 27.5 / 28), (6e-10, 1)):
        near = np.array([0.0, gap, 2, 3, 4, 5, 6, 7])
        assert judged(near, np.arange(8.0)).concordance == pytest.approx(concordance)
        # A measured difference of that size is none either: one pair less is in question.
        assert judged(np.arange(8.0)[[1, 0, *range(2, 8)]], near).concordance == pytest.approx(
            1 if gap < 5e-10 else 27 / 28
        )
    # Equal measured scores are not in question.
    assert judged(np.arange(8.0), tied).concordance == 1


def test_a_perfect_prediction_has_an_interval():
    found = judged(np.arange(9.0), np.arange(9.0))
    assert found.lds == 1 and 0.99 < found.low < found.high <= 1
    worst = judged(-np.arange(9.0), np.arange(9.0))
    assert worst.lds == -1 and worst.concordance == 0 and worst.readable is False


@pytest.mark.parametrize(
    ("predicted", "values", "reason"),
    [
        (np.arange(7.0), np.arange(7.0), "too_few_masks"),
        (np.empty(0), np.empty(0), "too_few_masks"),
        (np.arange(8.0), np.full(8, 2.0), "constant"),
        (np.full(8, 2.0), np.arange(8.0), "all_equal"),
        (np.array([np.nan, *range(7)]), np.arange(8.0), "all_equal"),
    ],
)
def test_undefined_with_a_reason(predicted, values, reason):
    found = judged(predicted, values, drops={1: (2.0, 1.0)})
    assert found.reason == reason and found.readable is None and math.isnan(found.lds)
    assert found.drops == {1: (2.0, 1.0)} and found.n == len(values)
    assert math.isnan(found.low) and math.isnan(found.concordance)


def test_the_ceiling_is_what_measuring_again_reaches():
    values, again = np.arange(10.0), np.array([1.0, 0, 3, 2, 4, 5, 7, 6, 8, 9])
    rho = spearmanr(values, again).statistic
    assert judged(values, values, again).ceiling == pytest.approx(rho)
    some = again.copy()
    some[:2] = np.nan  # eight are left
    assert judged(values, values, some).ceiling == pytest.approx(spearmanr(values[2:], again[2:]).statistic)
    some[:3] = np.nan
    assert math.isnan(judged(values, values, some).ceiling)
    assert math.isnan(judged(values, values, np.full(10, 3.0)).ceiling)
    # It is known where the prediction says nothing.
    assert judged(np.zeros(10), values, again).ceiling == pytest.approx(rho)


def test_readable_means_an_interval_above_0():
    assert Faithfulness(lds=0.3, low=0.01, high=0.6).readable is True
    assert Faithfulness(lds=0.3, low=0.0, high=0.6, n=16).readable is False
    assert Faithfulness(lds=0.3, low=0.0, high=0.6, n=15).readable is None  # too few to show it
    assert Faithfulness().readable is None and Faithfulness().n == 0
    # Of fewer, too, an interval below 0 shows that the scores do not predict; one that ends at 0 does not.
    assert Faithfulness(lds=-0.6, low=-0.9, high=-0.1, n=8).readable is False
    assert Faithfulness(lds=-0.6, low=-0.9, high=0.0, n=8).readable is None


@pytest.mark.parametrize(("k", "pairs"), [(2, ()), (3, ()), (5, ()), (3, ((0, 2),)), (5, ((0, 1), (3, 4)))])
def test_each_mask_is_predicted_by_a_fit_without_it(k, pairs):
    masks, values = all_masks(k), np.random.default_rng(k).normal(size=2**k)
    both = [masks[:, [i, j]].all(axis=1) for i, j in pairs]
    x = np.column_stack([np.ones(2**k), masks, *both]).astype(float)
    wanted = []
    for i in range(2**k):
        others = np.arange(2**k) != i
        wanted.append(x[i] @ np.linalg.lstsq(x[others], values[others], rcond=None)[0])
    np.testing.assert_allclose(left_out_one_by_one(masks, values, pairs), wanted)


def test_of_two_masks_neither_predicts_the_other():
    assert np.isnan(left_out_one_by_one(all_masks(1), np.array([0.0, 1.0]))).all()
