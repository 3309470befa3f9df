"""Permutation tests, several tests at once, and counts of events with chances of their own."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, fdtrc

from core.arrays import Floats
from core.stats.intervals import CELLS, known_pairs

_RECURSION_UP_TO = 1_000  # trials; every term of the recursion is positive, so even tiny tails are precise


def paired_permutation_test(a: ArrayLike, b: ArrayLike, n_resamples: int = 9_999, seed: int = 0) -> float:
    """Return the two-sided p-value of the mean difference of pairs (sign-flip test, Fisher 1935, section 21).

    `a` and `b` are two values of each case (the same questions in two runs); they are exchanged within pairs
    at random, or in all ways where there are no more than `n_resamples`. In (0, 1]: (1 + #extreme) / (1 +
    #draws), never 0 (Phipson & Smyth 2010), or the exact share of all ways. Where all differences but 0 have
    one size, as of 0 and 1, it is the exact sign test for any number of pairs (McNemar 1947). 1 where all
    differences are 0, NaN without pairs.
    """
    first, second = known_pairs(a, b)
    if not first.size:
        return math.nan
    # Equal pairs stay equal, whichever way they are flipped.
    difference = (first - second)[first != second]
    n, size = difference.size, np.abs(difference)
    if not n:
        return 1.0
    if np.ptp(size) <= 1e-12 * size.max():
        fewer = min(np.count_nonzero(difference > 0), np.count_nonzero(difference < 0))
        return min(1.0, 2 * float(bdtr(fewer, n, 0.5)))
    exact = n < 31 and 2**n <= n_resamples
    draws, rng, n_extreme = (2**n if exact else n_resamples), np.random.default_rng(seed), 0
    # Sums that are equal but for rounding count as equal.
    least = abs(difference.sum()) - 1e-12 * size.sum()
    for start in range(0, draws, max(1, CELLS // n)):
        rows = np.arange(start, min(draws, start + max(1, CELLS // n)))
        flip = rows[:, None] >> np.arange(n) & 1 if exact else rng.integers(0, 2, (rows.size, n), np.int8)
        n_extreme += int(np.count_nonzero(np.abs(difference.sum() - 2 * (flip @ difference)) >= least))
    return n_extreme / draws if exact else (1 + n_extreme) / (1 + draws)


def hotelling(values: ArrayLike) -> float:
    """Return the p-value of Hotelling's T² test (1931) that all means of (n, p) values are 0.

    NaN for fewer than p + 2 rows, or where the columns depend on each other.
    """
    x = np.asarray(values, dtype=np.float64)
    n, p = x.shape
    if n < p + 2 or np.linalg.matrix_rank(x - x.mean(axis=0)) < p:
        return math.nan
    mean, spread = x.mean(axis=0), np.atleast_2d(np.cov(x.T))
    squared = n * mean @ np.linalg.solve(spread, mean)
    return float(fdtrc(p, n - p, squared * (n - p) / (p * (n - 1))))


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted for multiple tests by the step-down method (Holm 1979).

    In [0, 1], never below ``p_values``. Rejecting where this is at most α keeps the probability of any false
    rejection at most α, however the tests depend on each other. A NaN (no test was possible) stays NaN and
    does not count as a test.

    >>> holm([0.01, 0.04, 0.03, float("nan")]).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    adjusted = np.array(p_values, dtype=np.float64)
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]  # NaN are sorted last
    steps = adjusted[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def poisson_binomial_tail(probabilities: ArrayLike, count: int) -> float:
    """Return P(X >= count) for the number X of successes in independent trials of unequal probability.

    ``probabilities`` of success in each trial, (n,), such as of a failure mode by chance in each question;
    ValueError outside [0, 1]. In [0, 1]: the one-sided p-value of "more than by chance". Exact: by recursion
    up to 1,000 trials, beyond by Fourier transform (Hong 2013) with an absolute error below 1e-12, so that a
    tinier tail is not resolved. 100,000 trials take about half a second.
    """
    return 1.0 if count <= 0 else min(1.0, float(_successes(probabilities)[count:].sum()))


def poisson_binomial_interval(probabilities: ArrayLike, level: float = 0.95) -> tuple[int, int]:
    """Return the central range of the number of successes in independent trials of unequal probability.

    Takes and raises what `poisson_binomial_tail` does. From ``low`` to ``high``, both included, has at least
    probability ``level``; at most half of the rest is below, and at most half above.
    """
    below = np.cumsum(_successes(probabilities))
    low, high = np.searchsorted(below, np.array([(1 - level) / 2, (1 + level) / 2]) - 1e-12)
    return int(low), int(high)


def _successes(probabilities: ArrayLike) -> Floats:
    """Return the probability of 0, 1, ... n successes."""
    p = np.asarray(probabilities, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("probabilities must be in [0, 1]")
    return _distribution(p.tobytes())


@lru_cache(maxsize=4)  # a p-value and an interval are asked of the same trials
def _distribution(trials: bytes) -> Floats:
    found = _convolved(np.frombuffer(trials, dtype=np.float64))
    found.flags.writeable = False
    return found


def _convolved(p: Floats) -> Floats:
    if p.size > _RECURSION_UP_TO:
        length = 1 << p.size.bit_length()
        parts = [np.fft.rfft(_convolved(half), length) for half in np.array_split(p, 2)]
        joined = np.fft.irfft(parts[0] * parts[1], length)[: p.size + 1]
        return np.asarray(np.maximum(0.0, joined), dtype=np.float64)
    found = np.zeros(p.size + 1)
    found[0] = 1.0
    for n, one in enumerate(p.tolist(), start=1):
        found[1 : n + 1] = found[1 : n + 1] * (1 - one) + found[:n] * one
        found[0] *= 1 - one
    return found
