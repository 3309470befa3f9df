"""What the confidence says of runs whose truth is known: no leak, no finding by chance, and what means cover."""

import numpy as np
import pytest
from scipy.stats import binom

from core.confidence import calibrate_map, quality
from core.confidence.analysis import ece_by_chance
from core.confidence.findings import findings
from core.socket import BAD, GOOD
from core.stats import holm, mean_interval, reliability_bins
from tests.core.charts.chart_confidence import scored

pytestmark = pytest.mark.slow


def test_labels_that_a_map_was_learned_from_do_not_flatter_it():
    """Reproduction: an isotonic map applied to its own 60 labels has ECE 0.00; on new labels it has 0.15 to 0.19."""
    rng, own, shown, truth = np.random.default_rng(0), [], [], []
    for _ in range(60):
        p = rng.random(60)
        right, again = (rng.random((2, 60)) < p).astype(float)
        found = calibrate_map(p, right, "isotonic")
        own.append(quality(found.map(p), right).ece)
        shown.append(found.after.ece)
        truth.append(quality(found.map(p), again).ece)
    assert np.mean(own) < 0.02
    # Cross-fitted is learned from four fifths, so a little worse than on new labels, never better.
    assert np.mean(truth) - 0.01 < np.mean(shown) < np.mean(truth) + 0.05


def test_a_confidence_that_is_unrelated_to_correctness_makes_no_finding_beyond_chance():
    """Reproduction: wrong_answers_pass was bad in 249 of 250 random runs, by the p-value of the wrong tail."""
    rng, n, runs, hits = np.random.default_rng(2), 40, 250, 0
    for _ in range(runs):
        values = rng.beta(3, 2, n)
        # Right on average, and unrelated to the single answer.
        correct = (rng.random(n) < rng.permutation(values)).astype(float)
        rows = zip(values, np.full(n, np.nan), correct, strict=True)
        analysis = scored([*rows], weights={"similarity": 1.0})
        tested = [one for one in findings(analysis) if one.tone in (BAD, GOOD)]
        hits += bool(
            (holm([1.0, *(np.nan if one.p_value is None else one.p_value for one in tested)]) <= 0.05).any()
        )
    assert hits <= binom.ppf(0.999, runs, 0.05)


def test_the_95_percent_point_of_the_calibration_error_by_chance():
    rng, over = np.random.default_rng(3), 0
    for _ in range(400):
        p = rng.random(80)
        right = rng.random(80) < p
        bins = reliability_bins(p, right)
        ece = sum(one.n * abs(one.confidence - one.accuracy) for one in bins) / 80
        over += ece > ece_by_chance(bins)[1]
    # The bins keep their mean confidence, so that the variance within them is left out: never more than 5 %.
    assert over <= binom.ppf(0.9999, 400, 0.05)


def test_how_often_the_t_interval_covers_a_skewed_mean_of_20():
    """It says 95 % and covers less: `core.stats.mean_interval` says how much."""
    rng, runs = np.random.default_rng(4), 3_000
    for drawn, truth, low, high in (
        (rng.normal(size=(runs, 20)), 0.0, 0.93, 0.97),
        (rng.exponential(size=(runs, 20)), 1.0, 0.88, 0.94),
        (rng.lognormal(0, 1.2, size=(runs, 20)), np.exp(0.72), 0.78, 0.88),
        (rng.beta(0.1, 0.9, size=(runs, 20)), 0.1, 0.84, 0.91),
    ):
        ends = np.array([mean_interval(one) for one in drawn])
        assert low <= ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean() <= high
