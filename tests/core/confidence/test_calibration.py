"""Learned weights, maps and comparisons."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from core.confidence import (
    ConfidenceMap,
    Weighting,
    calibrate_map,
    calibrate_weights,
    compare_confidences,
    configured,
    fit_map,
    quality,
)
from core.confidence.weights import _folds, grid_weights, logistic_weights, simplex
from core.errors import InputError
from core.stats import brier_score
from tests.core.confidence.confidence_rows import made, planted, reordered

NAN = math.nan
DEFAULT = np.array([0.45, 0.35, 0.20])
QUICK = {"n_resamples": 200, "n_refits": 20}


# Weights


def test_the_grid_is_the_simplex():
    found = simplex(3)
    assert len(found) == len(np.unique(found, axis=0)) == 21 * 22 // 2
    assert found.min() == 0 and found.sum(axis=1) == pytest.approx(np.ones(231))
    assert found * 20 == pytest.approx(np.round(found * 20)) and simplex(1).tolist() == [[1.0]]
    assert simplex(2, 4).tolist() == [[0, 1], [0.25, 0.75], [0.5, 0.5], [0.75, 0.25], [1, 0]]


def test_the_grid_finds_the_best_weights_and_the_nearest_among_equals():
    rng = np.random.default_rng(1)
    unit, correct = rng.random((40, 3)), rng.random(40) < 0.5
    found = grid_weights(unit, correct, DEFAULT)
    best = max(roc_auc_score(correct, np.round(unit @ one, 9)) for one in simplex(3))
    assert roc_auc_score(correct, np.round(unit @ found, 9)) == pytest.approx(best)
    # The second signal tells all, whatever the others add up to 0.65: the default itself is on the grid.
    told = np.array([[0.5, 0, 0.5], [0.5, 1, 0.5]])
    assert grid_weights(told, np.array([False, True]), DEFAULT).tolist() == DEFAULT.tolist()
    # Off the grid: 0.02² + 0.02² away.
    assert grid_weights(told, np.array([False, True]), np.array([0.42, 0.33, 0.25])).tolist() == [
        0.4,
        0.35,
        0.25,
    ]
    undefined = grid_weights(told, np.array([True, True]), DEFAULT)
    assert undefined.shape == (3,) and np.isnan(undefined).all()


def test_sums_that_differ_in_the_ninth_place_are_told_apart_and_in_the_tenth_are_not():
    default, correct = np.array([0, 0.5, 0.5]), np.array([False, True])
    apart, equal = (
        grid_weights(np.array([[0.5, 0.5, 0.5], [0.5 + more, 0.5, 0.5]]), correct, default)
        for more in (4e-9, 4e-10)
    )
    # 0.15 · 4e-9 is seen, 0.1 · 4e-9 is rounded away.
    assert (apart[0], equal.tolist()) == (0.15, [0, 0.5, 0.5])


def test_coefficients_below_1_are_shares_too_and_without_two_classes_there_are_none():
    # Three of five are correct where the first signal is 1, two of five where it is 0: a coefficient of log 2.25.
    first, second = np.repeat([1.0, 0.0], 5), np.full(10, 0.5)
    correct = np.array([1, 1, 1, 0, 0, 1, 1, 0, 0, 0], dtype=bool)
    unit, half = np.column_stack([first, second]), np.array([0.5, 0.5])
    assert logistic_weights(unit, correct, half) == pytest.approx([1, 0], abs=1e-6)
    assert np.isnan(logistic_weights(unit, np.ones(10, dtype=bool), half)).all()


def test_logistic_weights_are_shares_and_never_negative():
    rows = planted(2, 2_000, (0.6, 0.4, 0.0))
    unit = np.column_stack([*rows.signals.values()]) / [1, 100, 1]
    found = logistic_weights(unit, rows.correct == 1, DEFAULT)
    assert found.sum() == pytest.approx(1) and found.min() >= 0
    assert found == pytest.approx([0.6, 0.4, 0.0], abs=0.06)
    # Every signal points the wrong way: nothing is learned.
    assert logistic_weights(1 - unit, rows.correct == 1, DEFAULT).tolist() == DEFAULT.tolist()


def test_planted_weights_beat_the_default():
    found = calibrate_weights(planted(3, 300, (0.0, 0.1, 0.9)), Weighting(), n_resamples=300, n_refits=60)
    assert found.best in found.learned and found.reason == ""
    assert [one.method for one in found.learned] == ["grid", "logistic"]
    for one in found.learned:
        low, high = one.gain_interval
        assert 0 < low < one.gain < high
        assert one.gain == pytest.approx(one.auroc - found.default_auroc)
        assert sum(one.weights.values()) == pytest.approx(1)
        for name, true in zip(one.weights, (0.0, 0.1, 0.9), strict=True):
            low, high = one.intervals[name]
            assert 0 <= low <= true + 1e-12 and true - 1e-12 <= high <= 1
    assert found.best.auroc == max(one.auroc for one in found.learned)


def test_figures_of_the_default_by_hand():
    rows = planted(4, 60)
    found = calibrate_weights(rows, Weighting(), **QUICK)
    confidence = (
        0.45 * rows.signals["similarity"] + 0.0035 * rows.signals["lexical"] + 0.2 * rows.signals["llm"]
    )
    assert found.default_auroc == pytest.approx(roc_auc_score(rows.correct, confidence))
    assert (found.n, found.n_correct, found.n_questions) == (60, rows.correct.sum(), 60)


def test_a_weighted_sum_is_1_at_most():
    # Weights may sum to 1 but for a millionth: both sums are above 1, and equal.
    weighting = configured({"similarity": 0.45 + 9e-7, "lexical": 0.35, "llm": 0.2})
    assert calibrate_weights(made([[1, 1, 1], [1 - 1e-6, 1, 1]], [1, 0]), weighting).default_auroc == 0.5


def test_weights_are_tested_on_questions_they_were_not_learned_from():
    # Every question comes four times with the same signals and label, and labels are chance: who tests on a
    # question that was learned from finds a gain.
    rng = np.random.default_rng(5)
    signals, correct = np.repeat(rng.random((30, 3)), 4, axis=0), np.repeat(rng.random(30) < 0.5, 4)
    together = made(signals, correct, [f"q{i // 4}" for i in range(120)])
    apart = made(signals, correct)
    gains = [
        max(one.gain for one in calibrate_weights(rows, Weighting(), **QUICK).learned)
        for rows in (together, apart)
    ]
    assert gains[0] < gains[1]
    widths = [
        np.ptp(calibrate_weights(rows, Weighting(), **QUICK).learned[1].gain_interval)
        for rows in (together, apart)
    ]
    # 30 questions tell less than 120.
    assert widths[0] > 1.3 * widths[1]


def test_folds_keep_questions_together_and_share_out_the_correct_ones():
    # Ten questions with one correct answer, ten with two wrong ones.
    question = np.r_[np.arange(10), np.repeat(np.arange(10, 20), 2)]
    fold = _folds(question, question < 10, seed=0)
    assert fold[10::2].tolist() == fold[11::2].tolist()
    assert np.bincount(fold[:10]).tolist() == np.bincount(fold[10::2]).tolist() == [2] * 5
    assert _folds(question, question < 10, seed=1).tolist() != fold.tolist()


def test_a_higher_level_is_a_wider_interval():
    rows = planted(11, 60)
    wide, narrow = (
        calibrate_weights(rows, Weighting(), **QUICK, level=level).learned for level in (0.95, 0.5)
    )
    for outer, inner in zip(wide, narrow, strict=True):
        assert (
            outer.gain_interval[0] < inner.gain_interval[0] < inner.gain_interval[1] < outer.gain_interval[1]
        )
        assert outer.intervals["llm"][0] <= inner.intervals["llm"][0] < inner.intervals["llm"][1]


@pytest.mark.parametrize(
    ("given", "shared", "each"), [({}, 0.975, 0.95), ({"level": 0.9, "seed": 3}, 0.95, 0.9)]
)
def test_how_the_intervals_are_drawn_and_widened(given, shared, each, monkeypatch):
    drawn = []

    def once(sample, statistic, n_resamples, seed, level, groups):
        drawn.append((seed, level))
        return (0.0, 0.5)

    def all_of(sample, statistic, n_values, n_refits, seed, level, groups):
        drawn.append((seed, level))
        return [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)]

    monkeypatch.setattr("core.confidence.weights.bootstrap_interval", once)
    monkeypatch.setattr("core.confidence.weights.bootstrap_intervals", all_of)
    found = calibrate_weights(planted(4, 40), Weighting(), **given)
    # Two methods share the error of the gain; a weight has all of it.
    seed = given.get("seed", 0)
    assert drawn == [(seed, pytest.approx(level)) for level in (each, shared, each, shared)]
    grid, logistic = (list(one.intervals.values()) for one in found.learned)
    # Half a step further out, and never outside [0, 1].
    assert grid == [pytest.approx(ends) for ends in ((0, 0.025), (0.475, 0.525), (0.975, 1))]
    assert logistic == [(0, 0), (0.5, 0.5), (1, 1)]
    # A gain that may be none is not kept.
    assert (found.best, found.reason) == (None, "the gain over the default is not significant")
    assert "confidences" not in repr(found.learned[0]), "a number for each answer"


def test_the_grid_tells_half_a_step_apart_at_most():
    # With 3,000 answers nearly every resample has the same weights: the interval is at least a step wide, and
    # not wider than two steps.
    rows = planted(12, 3_000, (0.3, 0.3, 0.4), slope=60.0)
    found = calibrate_weights(rows, Weighting(), n_resamples=20, n_refits=20).learned[0]
    widths = [high - low for low, high in found.intervals.values()]
    assert all(0.05 - 1e-9 <= width <= 0.1 + 1e-9 for width in widths)


@given(st.integers(0, 3), st.randoms(use_true_random=False))
@settings(max_examples=4, deadline=None)
def test_the_order_of_the_rows_does_not_matter(seed, random):
    rows = planted(seed, 50, per_question=2)
    order = random.sample(range(rows.n), rows.n)
    assert calibrate_weights(rows, Weighting(), **QUICK) == calibrate_weights(
        reordered(rows, order), Weighting(), **QUICK
    )


@pytest.mark.parametrize(("n_right", "n_wrong"), [(0, 0), (30, 0), (0, 30), (30, 9), (9, 30)])
def test_too_few_labels_keep_the_default(n_right, n_wrong):
    signals = np.random.default_rng(6).random((n_right + n_wrong, 3))
    found = calibrate_weights(made(signals, [1] * n_right + [0] * n_wrong), Weighting(), **QUICK)
    assert found.best is None and found.learned == ()
    n = n_right + n_wrong
    assert (found.n, found.n_correct, found.n_questions) == (n, n_right, n)
    assert found.reason == (
        f"too few labels: {n_right} questions with a correct and {n_wrong} with a wrong answer, "
        "at least 10 of each are needed"
    )


def test_the_level_and_the_signals_are_checked():
    rows = planted(7, 40)
    for level in (0, 1, NAN):
        with pytest.raises(InputError, match="level"):
            calibrate_weights(rows, Weighting(), level=level)
    with pytest.raises(InputError, match="no signal agreement"):
        calibrate_weights(rows, configured({"agreement": 1}, {"agreement": (0, 1)}))


def test_ten_questions_of_each_are_enough():
    signals = np.random.default_rng(6).random((20, 3))
    assert calibrate_weights(made(signals, [1] * 10 + [0] * 10), Weighting(), **QUICK).learned


# Maps


def test_quality_is_that_of_its_parts():
    confidence, correct = [0.1, 0.9, 0.8, 0.4, NAN], [0, 1, 0, 1, 1]
    found = quality(confidence, correct)
    assert found.n == 4
    assert found.brier == pytest.approx((0.01 + 0.01 + 0.64 + 0.36) / 4)
    # Each is alone in its bin.
    assert (found.ece, found.mce) == pytest.approx(((0.1 + 0.1 + 0.8 + 0.6) / 4, 0.8))
    # Correct over wrong: 0.9 over both, 0.4 over one. Errors of the first 1, 2, 3, 4: 0, 1, 1, 2.
    assert (found.auroc, found.aurc) == pytest.approx((3 / 4, (0 + 1 / 2 + 1 / 3 + 1 / 2) / 4))


def test_maps_by_hand():
    confidence, correct = [1] * 4 + [0] * 4, [1, 1, 1, 0, 1, 0, 0, 0]
    platt = fit_map(confidence, correct, "platt")
    # Slope 2 log 2 and intercept −log 2, see the test of platt_fit: at ½ they give ½.
    assert platt([0, 0.5, 1, NAN]) == pytest.approx([1 / 3, 1 / 2, 2 / 3, NAN], abs=1e-5, nan_ok=True)
    isotonic = fit_map(confidence, correct, "isotonic")
    assert isotonic([0, 0.5, 1, NAN]) == pytest.approx([1 / 4, 1 / 2, 3 / 4, NAN], nan_ok=True)
    assert fit_map(confidence, correct, "none")([0.3]).tolist() == [0.3]
    assert fit_map([0.5, 0.6], [1, 1], "platt") == fit_map([0.5, 0.6], [1, 1], "isotonic") == ConfidenceMap()
    with pytest.raises(InputError, match="no map 'beta'"):
        fit_map(confidence, correct, "beta")


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_a_map_mends_a_confidence_that_is_too_high(kind):
    rng = np.random.default_rng(8)
    confidence = rng.random(800)
    correct = rng.random(800) < confidence / 2
    found = calibrate_map(confidence, correct, kind)
    assert found.map.kind == kind and found.reason == ""
    assert found.after.n == found.before.n == 800
    assert found.before.ece > 0.2 and found.after.ece < 0.06
    assert found.after.brier < found.before.brier - 0.05
    assert found.map([0.2, 0.8]) == pytest.approx([0.1, 0.4], abs=0.08)
    order = rng.permutation(800)
    assert calibrate_map(confidence[order], correct[order], kind) == found


def test_a_map_is_tested_on_answers_it_was_not_fitted_to():
    # Labels are chance and no confidence comes twice: on its own answers an isotonic map is far better than ¼.
    rng = np.random.default_rng(9)
    confidence, correct = rng.random(40), np.repeat([0, 1], 20)
    found = calibrate_map(confidence, correct, "isotonic")
    assert brier_score(found.map(confidence), correct) < 0.25 < found.after.brier


def test_too_few_labels_give_no_map():
    found = calibrate_map([0.5] * 19, [1] * 10 + [0] * 9, "platt")
    assert found.map == ConfidenceMap() and found.before.n == 19 and found.after.n == 0
    assert found.reason == "too few labels: 10 correct and 9 wrong, at least 10 of each are needed"
    assert math.isnan(found.after.ece)
    assert calibrate_map([0.5] * 20, [1] * 10 + [0] * 10, "platt").reason == ""


# Two confidences


def test_a_comparison_by_hand():
    # Of ten answers, five correct. One confidence is 0.7 for all; the other 0.9 for the correct, 0.2 for others.
    one, other = np.full(10, 0.7), np.array([0.9] * 5 + [0.2] * 5)
    right = np.array([1.0] * 5 + [0.0] * 5)
    accuracy, brier, ranking = compare_confidences(one, other, right, (0.6, 0.6))
    assert [one.measure for one in (accuracy, brier, ranking)] == ["accuracy", "brier", "auroc"]
    assert (accuracy.n, accuracy.a, accuracy.b, accuracy.difference) == (10, 0.5, 1, 0.5)
    # Sign test: all five that change do so for the better, 2 / 2⁵.
    assert accuracy.p_value == pytest.approx(1 / 16)
    # Of shares, with one change more in either direction: 5/12 ± 1.96 · √((7/12 − (5/12)²) / 12).
    assert (accuracy.low, accuracy.high) == pytest.approx((0.0545, 0.7788), abs=1e-4)
    # Student's t with 9 degrees of freedom: −0.265 ± 2.2622 · 0.1950 / √10.
    assert (brier.low, brier.high) == pytest.approx((-0.4045, -0.1255), abs=1e-4)
    # The means of 0.09 and 0.49, and of 0.01 and 0.04.
    assert (brier.a, brier.b, brier.difference) == pytest.approx((0.29, 0.025, -0.265))
    # All differences have one sign: only the flips of all 10 and of none are as extreme, 2 of 2¹⁰.
    assert brier.p_value == pytest.approx(2 / 1024)
    assert (ranking.a, ranking.b, ranking.difference) == (0.5, 1, 0.5)
    # Holm: three times the smallest, then twice; where AUROC has no p there are two tests.
    assert math.isnan(ranking.p_value) and math.isnan(ranking.p_adjusted)
    assert (brier.p_adjusted, accuracy.p_adjusted) == pytest.approx((4 / 1024, 1 / 16))


def test_each_confidence_has_a_threshold_of_its_own():
    same = np.array([0.7, 0.595, 0.5])
    accuracy, brier, ranking = compare_confidences(same, same, np.array([1.0, 1, 0]), (0.6, 0.65))
    # 0.595 is 0.60 and passes; from 0.65 on that correct answer fails.
    assert (accuracy.a, accuracy.b) == pytest.approx((1, 2 / 3))
    accuracy, *_ = compare_confidences(same, same, np.array([1.0, 1, 0]), (0.65, 0.6))
    assert (accuracy.a, accuracy.b) == pytest.approx((2 / 3, 1))
    assert (brier.difference, brier.p_value, ranking.difference) == (0, 1, 0)


def test_what_differs_in_the_ninth_place_is_told_apart_and_in_the_tenth_is_not():
    right = np.array([0.0, 0, 1, 1])
    apart, equal = (np.array([0.5, 0.5, 0.5 + more, 0.5 + more]) for more in (4e-9, 4e-10))
    for one, other in ((apart, equal), (equal, apart)):
        ranking = compare_confidences(one, other, right, (0.6, 0.6))[2]
        assert (ranking.a, ranking.b) == ((1, 0.5) if one is apart else (0.5, 1))


def test_the_same_confidence_twice_and_no_answers():
    rng = np.random.default_rng(10)
    same, right = rng.random(30), (rng.random(30) < 0.5).astype(float)
    for one in compare_confidences(same, same, right, (0.6, 0.6)):
        assert one.a == one.b and (one.difference, one.p_value, one.p_adjusted) == (0, 1, 1)
    for one in compare_confidences(np.empty(0), np.empty(0), np.empty(0), (0.6, 0.6)):
        assert one.n == 0 and all(map(math.isnan, one[2:]))
