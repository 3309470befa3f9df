"""Calibration figures by hand, by published vectors and against scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from core.stats import (
    auroc,
    aurocs,
    bootstrap_interval,
    bootstrap_intervals,
    brier_parts,
    brier_score,
    expected_calibration_error,
    isotonic_fit,
    maximum_calibration_error,
    non_negative_logistic,
    platt_fit,
    reliability_bins,
    wilson_interval,
)

NAN = math.nan
ANSWERS = st.lists(
    st.tuples(st.integers(0, 20).map(lambda i: i / 20), st.integers(0, 1)), min_size=1, max_size=40
)


def test_published_vectors(vectors):
    cases = vectors("calibration")
    assert len(cases) == 12
    for case in cases:
        rows = case["confidence"], case["correct"], case["n_bins"]
        found = [[one.number, one.n, one.confidence, one.accuracy] for one in reliability_bins(*rows)]
        assert np.array(found) == pytest.approx(np.array(case["bins"]), abs=1e-6)
        assert expected_calibration_error(*rows) == pytest.approx(case["ece"], abs=1e-6)
        assert maximum_calibration_error(*rows) == pytest.approx(case["mce"], abs=1e-6)
        assert brier_score(*rows[:2]) == pytest.approx(case["brier"], abs=1e-6)


def test_bins_by_hand():
    # (0, ½] holds 0, 0.2 and 0.5, of which one is correct; (½, 1] holds 0.7 and 1, both correct.
    first, second = reliability_bins([0, 0.2, 0.5, 0.7, 1, NAN, 0.9], [0, 1, 0, 1, 1, 1, NAN], 2)
    assert (first.number, first.low, first.high, first.n) == (0, 0, 0.5, 3)
    assert (first.confidence, first.accuracy) == pytest.approx((0.7 / 3, 1 / 3))
    assert (first.accuracy_low, first.accuracy_high) == wilson_interval(1 / 3, 3)
    assert (second.number, second.low, second.high, second.n) == (1, 0.5, 1, 2)
    assert (second.confidence, second.accuracy) == pytest.approx((0.85, 1))
    rows = [0, 0.2, 0.5, 0.7, 1], [0, 1, 0, 1, 1], 2
    assert expected_calibration_error(*rows) == pytest.approx(3 / 5 * 0.1 + 2 / 5 * 0.15)
    assert maximum_calibration_error(*rows) == pytest.approx(0.15)
    assert brier_score(*rows[:2]) == pytest.approx((0 + 0.64 + 0.25 + 0.09 + 0) / 5)


@pytest.mark.parametrize("n_bins", [1, 3, 7, 10, 15, 49])
def test_an_edge_belongs_to_the_bin_below_it(n_bins):
    # Also where its float is a little above or below that of the edge, as 0.1 · 3 is above 0.3.
    for i in range(1, n_bins + 1):
        for edge in {i / n_bins, 1 / n_bins * i, 1 - (n_bins - i) / n_bins} - {1.0000000000000002}:
            (found,) = reliability_bins([edge], [1], n_bins)
            assert found.number == i - 1


def test_parts_of_the_brier_score_by_hand():
    # Confidences 0.2 (one of four correct) and 0.8 (three of four): each bin is 0.05 off.
    confidence, correct = [0.2] * 4 + [0.8] * 4, [1, 0, 0, 0, 1, 1, 1, 0]
    found = brier_parts(confidence, correct, 10)
    assert found == pytest.approx((0.05**2, 0.25**2, 0.25, 0))
    assert brier_score(confidence, correct) == pytest.approx(0.05**2 - 0.25**2 + 0.25)
    # One bin: 0 and 1, both right; all is told within it. Variance ¼, covariance ¼: ¼ − ½.
    assert brier_parts([0, 1], [0, 1], 1) == pytest.approx((0, 0, 0.25, -0.25))


@given(ANSWERS, st.integers(1, 20))
def test_the_parts_make_up_the_score(rows, n_bins):
    confidence, correct = zip(*rows, strict=True)
    reliability, resolution, uncertainty, within = brier_parts(confidence, correct, n_bins)
    assert reliability - resolution + uncertainty + within == pytest.approx(brier_score(confidence, correct))
    assert min(reliability, resolution, uncertainty) >= 0


@given(ANSWERS, st.integers(1, 20), st.randoms(use_true_random=False))
def test_scores_are_bounded_and_do_not_depend_on_the_order(rows, n_bins, random):
    shuffled = random.sample(rows, len(rows))
    confidence, correct = zip(*rows, strict=True)
    other = tuple(zip(*shuffled, strict=True))
    ece, mce = (
        f(confidence, correct, n_bins) for f in (expected_calibration_error, maximum_calibration_error)
    )
    assert 0 <= ece <= mce + 1e-12 and mce <= 1
    assert expected_calibration_error(*other, n_bins) == pytest.approx(ece)
    assert maximum_calibration_error(*other, n_bins) == pytest.approx(mce)
    assert brier_score(confidence, correct) == pytest.approx(
        brier_score_loss(correct, confidence, labels=[0, 1])
    )


def test_without_data_all_is_undefined():
    assert reliability_bins([], []) == () and reliability_bins([NAN, 0.5], [1, NAN]) == ()
    found = (expected_calibration_error([], []), maximum_calibration_error([], []), brier_score([], []))
    assert all(map(math.isnan, (*found, *brier_parts([], []))))


@pytest.mark.parametrize(
    ("confidence", "correct"), [([1.01], [1]), ([-0.01], [1]), ([0.5], [0.5]), ([0.5], [2])]
)
def test_what_is_no_confidence_or_no_label_is_refused(confidence, correct):
    for function in (brier_score, reliability_bins, brier_parts, platt_fit, isotonic_fit):
        with pytest.raises(ValueError, match="must"):
            function(confidence, correct)


def test_no_bins_are_refused():
    with pytest.raises(ValueError, match="n_bins"):
        reliability_bins([0.5], [1], 0)


def test_platt_by_hand():
    # Two confidences: the model has as many parameters and goes through the mean target of each.
    # 3 of 4 and 1 of 4 correct: targets are 5/6 and 1/6, so the means are (3·5/6 + 1/6)/4 = 2/3 and 1/3.
    slope, intercept = platt_fit([1] * 4 + [0] * 4, [1, 1, 1, 0, 1, 0, 0, 0])
    assert intercept == pytest.approx(math.log(0.5), abs=1e-5)
    assert slope == pytest.approx(2 * math.log(2), abs=1e-5)
    # A perfect separation has a finite slope: targets 3/4 and 1/4.
    slope, intercept = platt_fit([0, 0, 1, 1], [0, 0, 1, 1])
    assert (slope, intercept) == pytest.approx((2 * math.log(3), -math.log(3)), abs=1e-5)
    assert platt_fit([0, 0, 1, 1], [1, 1, 0, 0])[0] == pytest.approx(-2 * math.log(3), abs=1e-5)


def test_isotonic_by_hand():
    # 0.2 → 0, then 1 and 0 are pooled to ½, then 1.
    x, y = isotonic_fit([0.8, 0.2, 0.4, 0.6], [1, 0, 1, 0])
    assert x.tolist() == [0.2, 0.4, 0.6, 0.8] and y.tolist() == [0, 0.5, 0.5, 1]


@given(ANSWERS)
def test_isotonic_knots_are_a_rising_function_with_the_values_of_scikit_learn(rows):
    confidence, correct = (np.array(one) for one in zip(*rows, strict=True))
    x, y = isotonic_fit(confidence, correct)
    if correct.all() or not correct.any():
        assert not x.size and not y.size and np.isnan(platt_fit(confidence, correct)).all()
        return
    assert (np.diff(x) > 0).all() and (np.diff(y) >= 0).all()
    there = IsotonicRegression(out_of_bounds="clip").fit(confidence, correct).predict(confidence)
    assert np.interp(confidence, x, y) == pytest.approx(there)


def test_logistic_regression_is_that_of_scikit_learn_where_no_bound_is_active():
    rng = np.random.default_rng(3)
    x = rng.random((300, 3))
    y = rng.random(300) < 1 / (1 + np.exp(-(x @ [3, 2, 1] - 3)))
    found, intercept = non_negative_logistic(x, y)
    expected = LogisticRegression(C=100, tol=1e-10, max_iter=10_000).fit(x, y)
    assert found == pytest.approx(expected.coef_[0], abs=1e-3)
    assert intercept == pytest.approx(expected.intercept_[0], abs=1e-3)


def test_a_signal_that_points_the_wrong_way_has_the_coefficient_0():
    rng = np.random.default_rng(4)
    x = rng.random((300, 2))
    y = rng.random(300) < 1 / (1 + np.exp(-(x @ [4, -3])))
    found, intercept = non_negative_logistic(x, y)
    alone = LogisticRegression(C=100, tol=1e-10, max_iter=10_000).fit(x[:, :1], y)
    assert found[1] == 0 and found[0] == pytest.approx(alone.coef_[0, 0], abs=1e-3)
    assert intercept == pytest.approx(alone.intercept_[0], abs=1e-3)


def test_logistic_regression_of_one_class_is_undefined_and_of_separated_ones_finite():
    assert np.isnan(non_negative_logistic(np.ones((3, 2)), [1, 1, 1])[0]).tolist() == [True, True]
    found, _ = non_negative_logistic([[0.0], [0.1], [0.9], [1.0]], [0, 0, 1, 1])
    assert 5 < found[0] < 100


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=20))
def test_many_aurocs_are_those_of_each(rows):
    a, b, label = zip(*rows, strict=True)
    assert aurocs(label, [a, b]) == pytest.approx([auroc(label, a), auroc(label, b)], nan_ok=True)


def test_intervals_of_several_statistics_are_those_of_each():
    rng = np.random.default_rng(5)
    x, groups = rng.random(30), np.repeat(np.arange(10), 3)
    for given_groups in (None, groups):
        both = bootstrap_intervals(x, lambda v: np.array([v.mean(), v.max()]), 2, 200, groups=given_groups)
        alone = [bootstrap_interval(x, f, 200, groups=given_groups) for f in (np.mean, np.max)]
        assert both == alone
    assert np.isnan(bootstrap_intervals([1.0], lambda v: np.array([v.mean(), v.max()]), 2, 200)).all()
