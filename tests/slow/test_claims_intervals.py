"""The interval of the unsupported claims covers the truth although the claims of an answer go together."""

import numpy as np
import pytest
from scipy.stats import binom

from core.stats import wilson_interval
from core.stats.intervals import clustered_interval

pytestmark = pytest.mark.slow
RUNS = 4_000


def simulated(answers, share, correlation, seed):
    """Beta-binomial claims: 1 to 10 an answer; two claims of one answer correlate by ``correlation``."""
    rng = np.random.default_rng(seed)
    odds = (1 - correlation) / correlation
    cases = rng.integers(1, 11, (RUNS, answers))
    return rng.binomial(cases, rng.beta(share * odds, (1 - share) * odds, cases.shape)), cases


@pytest.mark.parametrize("answers", [20, 40, 70])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("correlation", [0.1, 0.4, 0.8])
def test_it_covers_the_share_in_92_percent_of_runs(answers, share, correlation):
    """Wilson's interval, which takes claims for independent, covers 52 to 89 % of such runs."""
    covered = independent = 0
    for hits, cases in zip(*simulated(answers, share, correlation, answers), strict=True):
        low, high = clustered_interval(hits, cases)
        covered += low <= share <= high
        low, high = wilson_interval(hits.sum() / cases.sum(), int(cases.sum()))
        independent += low <= share <= high
    assert covered >= binom.ppf(0.0001, RUNS, 0.92)
    assert independent < 0.92 * RUNS


def test_claims_that_are_independent_cost_little_width():
    """One claim an answer: at most a quarter wider than Wilson's interval."""
    rng = np.random.default_rng(3)
    hits = rng.random((200, 60)) < 0.4
    widths = [
        (np.diff(clustered_interval(row, np.ones(60)))[0], np.diff(wilson_interval(row.mean(), 60))[0])
        for row in hits
    ]
    assert np.divide(*np.transpose(widths)).max() < 1.25
