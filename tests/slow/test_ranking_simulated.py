"""Few correct or few incorrect answers: intervals of an AUROC hold, and nothing is told apart by chance."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from core.stats import FEWEST_OF_EACH, auroc_interval, auroc_p_value
from core.uncertainty import comparisons, leaderboard, risk_coverage_band

pytestmark = pytest.mark.slow
RUNS, N = 500, 60


def drawn(rng, wrong, area, spread=1.0):
    """Uncertainties whose AUROC at finding the first answers, the wrong ones, is known: two normal curves."""
    shift = norm.ppf(area) * np.sqrt(1 + spread**2)
    return np.r_[rng.normal(shift, spread, wrong), rng.normal(0, 1, N - wrong)]


@pytest.mark.parametrize("wrong", [3, 6, 15])
@pytest.mark.parametrize("area", [0.5, 0.7, 0.9])
def test_the_interval_of_an_auroc_covers(wrong, area):
    """Reproduction: the bootstrap said 1.00 (1.00 to 1.00) of 3 wrong of 60, and covered 24 to 77 %.

    Measured here: 95 to 98 %; 87 % at worst, of 3 wrong answers whose uncertainty spreads twice as much.
    """
    rng = np.random.default_rng(wrong)
    label = np.arange(N) < wrong
    for spread, least in ((1.0, 0.93), (2.0, 0.85)):
        found = [auroc_interval(label, drawn(rng, wrong, area, spread))[1:] for _ in range(RUNS)]
        covered = np.mean([low <= area <= high for low, high in found])
        assert covered >= least, (spread, covered)
        assert all(high - low > 0.02 for low, high in found), "no interval of width 0"


@pytest.mark.parametrize("wrong", [3, 6, 15, 30])
def test_nine_useless_estimators_are_not_told_apart(wrong):
    """Reproduction: with 3, 6 and 15 wrong of 60 a pair differed in 74, 29 and 10 % of runs."""
    rng, runs, hits = np.random.default_rng(100 + wrong), 200 if wrong >= FEWEST_OF_EACH else 20, 0
    correct = (np.arange(N) >= wrong).astype(float)
    for _ in range(runs):
        scores = {str(i): rng.normal(size=N) for i in range(9)}
        scores["8"] = np.round(scores["8"])  # one with ties, as counts of meanings have
        hits += any(pair.distinguishable for pair in comparisons(scores, correct))
    assert hits <= 0.05 * runs


def test_pairs_that_differ_are_told_apart_where_there_are_enough():
    rng, found = np.random.default_rng(1), 0
    for _ in range(100):
        scores = {"good": drawn(rng, 20, 0.9), "useless": rng.normal(size=N)}
        (pair,) = comparisons(scores, (np.arange(N) >= 20).astype(float))
        found += pair.distinguishable and pair.first == "good"
    assert found >= 90


@pytest.mark.parametrize("wrong", [3, 15, 30])
def test_a_useless_estimator_is_beyond_chance_as_often_as_promised(wrong):
    rng, runs = np.random.default_rng(2), 200
    correct = (np.arange(N) >= wrong).astype(float)
    every = [np.floor(3 * rng.normal(size=N)) for _ in range(runs)]
    p = np.array([auroc_p_value(1 - correct, one) for one in every])
    for level in (0.05, 0.2):
        assert np.count_nonzero(p <= level) <= binom.ppf(0.9999, runs, level)
    boards = [leaderboard({str(i): every[9 * run + i] for i in range(9)}, correct) for run in range(22)]
    assert sum(board[0].p_value <= 0.05 for board in boards) <= binom.ppf(0.9999, 22, 0.05)


def test_the_band_of_the_error_rate_holds_where_no_error_was_seen():
    """Reproduction: where the surest answers have no error the bootstrap band had the width 0."""
    rng, hits = np.random.default_rng(3), []
    for _ in range(300):
        uncertainty = rng.random(N)
        # Wrong with this probability: the surest share c is wrong in 0.1 · c of cases.
        correct = rng.random(N) >= 0.2 * uncertainty
        coverage, _, low, high = risk_coverage_band(uncertainty, correct)
        hits.append((low <= 0.1 * coverage) & (0.1 * coverage <= high))
    # A share of few cases is covered now more, now less often (counts are whole numbers), 95 % on average.
    assert np.mean(hits) >= 0.92 and np.mean(hits, axis=0).min() >= 0.8
