"""Intervals of shares, means and differences, and how many cases would tell."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from core.arrays import Floats

Interval = tuple[float, float]
UNDEFINED: Interval = (math.nan, math.nan)
CELLS = 5_000_000  # of one batch of permutations: bounds the memory, not the result


def resamples(asked: int, n: int) -> int:
    """Return how many resamples to draw of n rows: above 10,000 rows at most 200, as steady."""
    return asked if n <= 10_000 else min(asked, 200)


def known_values(values: ArrayLike) -> Floats:
    """Return the values that are not NaN."""
    found = np.asarray(values, dtype=np.float64)
    return found[~np.isnan(found)]


def known_pairs(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    """Return the values of two arrays of one shape where neither is NaN."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"arrays must have the same shape, not {first.shape} and {second.shape}")
    known = ~(np.isnan(first) | np.isnan(second))
    return first[known], second[known]


_NIL, _ALL_NIL = 10, 30  # part of a standard deviation that is nothing; cases that show it where none differs


def wilson_interval(share: float, n: int, level: float = 0.95) -> Interval:
    """Return the score interval of a share of n cases (Wilson 1927).

    Conservative for the mean of any values in [0, 1], because no such mean varies more than a share. Within
    [0, 1] and around ``share``; has a width even where that is 0 or 1. NaN for n = 0.

    >>> [round(end, 3) for end in wilson_interval(0.3, 10)]
    [0.108, 0.603]
    """
    if n < 1:
        return UNDEFINED
    z = float(ndtri((1 + level) / 2))
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and 1 the interval ends exactly at the share; rounding must not leave the share outside.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def mean_interval(
    values: ArrayLike, level: float = 0.95, lower: float = -math.inf, upper: float = math.inf
) -> Interval:
    """Return the t interval of a mean (Student 1908), cut at the bounds that the values themselves have.

    NaN for fewer than 2 values; width 0 where all are equal (`mean_in_unit` avoids that). Of 20 skewed values
    it covers less than it says: 92 % of exponential ones, 83 to 88 % where few are large.
    """
    known = known_values(values)
    n = known.size
    if n < 2:
        return UNDEFINED
    half = float(stdtrit(n - 1, (1 + level) / 2)) * float(known.std(ddof=1)) / math.sqrt(n)
    centre = float(known.mean())
    return max(lower, centre - half), min(upper, centre + half)


def mean_in_unit(values: ArrayLike, share: bool = False, level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of values in [0, 1] and its interval.

    ``share``: every value is 0 or 1 by nature (hit or miss), so that the mean is a share. Wilson's interval
    for shares, else Student's t cut at 0 and 1, or Wilson's where all values are equal: a width of 0 would
    claim too much. NaN without values; no interval for one value that is not a share.
    """
    known = known_values(values)
    if not known.size:
        return math.nan, math.nan, math.nan
    if share or (known.size > 1 and (known == known[0]).all()):
        mean = float(known.mean()) if share else float(known[0])
        return mean, *wilson_interval(mean, known.size, level)
    return float(known.mean()), *mean_interval(known, level, 0.0, 1.0)


def cases_needed(differences: ArrayLike) -> int | None:
    """Return about how many cases a test would need to tell a mean difference like this one from 0.

    The normal approximation for a two-sided test at 5 % that succeeds four times in five: ``((1.96 + 0.84) ·
    sd / mean)²``, rounded up to two figures, so more than n. ``differences``, (n,), are what was observed in
    each case minus what is expected by chance; effect and spread are uncertain themselves.

    Where the difference is below a fiftieth of its standard deviation, or a hundred times the cases would not
    be enough: None if it is surely nil (its 95 % interval lies within a tenth of the standard deviation,
    which takes some 400 cases; or 30 and more are all 0), else 0: too few to tell.

    >>> cases_needed([0.3, -0.1, 0.2, 0.0])  # mean 0.1, sd 0.183
    27
    """
    known = known_values(differences)
    n = known.size
    if n < 2:
        return 0
    exact = (float(ndtri(0.975) + ndtri(0.8)) * float(known.std(ddof=1))) ** 2
    mean, spread = float(known.mean()) ** 2, float(known.std(ddof=1))
    if exact >= 100 * n * mean or 50**2 * mean <= spread**2:
        far = abs(float(known.mean())) + float(ndtri(0.975)) * spread / math.sqrt(n)
        return None if far <= spread / _NIL and n >= _ALL_NIL else 0
    found = max(n + 1, math.ceil(exact / mean))
    unit = 10 ** max(0, len(str(found)) - 2)
    return -(-found // unit) * unit


def paired_interval(a: ArrayLike, b: ArrayLike, level: float = 0.95, share: bool = False) -> Interval:
    """Return the interval of the mean difference ``b`` − ``a`` of pairs.

    ``share``: every value is 0 or 1 by nature, so that the means are shares. Then it is the adjusted Wald
    interval of two paired shares (Bonett & Price 2012), which has a width even where no pair differs; else
    Student's t of the differences. NaN for fewer than 2 pairs, and where all differences of values that are
    no shares are equal: a width of 0 would claim too much.

    Of 20 cases 5 turn from 0 to 1 and one turns back:

    >>> before, after = [0] * 5 + [1] + [1] * 14, [1] * 5 + [0] + [1] * 14
    >>> [round(end, 2) for end in paired_interval(before, after, share=True)]
    [-0.06, 0.42]
    """
    first, second = known_pairs(a, b)
    difference = second - first
    n = difference.size
    if n < 2:
        return UNDEFINED
    if not share:
        return mean_interval(difference, level) if np.ptp(difference) else UNDEFINED
    up, down = ((int(np.count_nonzero(side)) + 1) / (n + 2) for side in (difference > 0, difference < 0))
    half = float(ndtri((1 + level) / 2)) * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return max(-1.0, up - down - half), min(1.0, up - down + half)


def bootstrap_interval(
    data: ArrayLike | tuple[ArrayLike, ...],
    statistic: Callable[..., float],
    n_resamples: int = 2_000,
    seed: int = 0,
    level: float = 0.95,
    groups: ArrayLike | None = None,
) -> Interval:
    """Return the percentile bootstrap interval of a statistic (Efron & Tibshirani 1993, chapter 13).

    ``data``: one array, (n, ...), or several that are paired row by row, such as two scores and a label for
    the difference of two AUROCs. ``statistic`` takes the resampled arrays and returns a number; NaN (say,
    only one class was drawn) is left out. Of more than 10,000 rows or groups at most 200 resamples; same
    seed, same interval. Rows of equal ``groups``, (n,), are drawn together (cluster bootstrap), such as all
    claims of a question.

    NaN for fewer than 2 rows or groups, or where the statistic is undefined in most resamples. Width 0 where
    all resamples agree, which says nothing of precision. A little narrow for few rows: a mean of 20 is
    covered about 92 % of the time, not 95 %.
    """

    def alone(*arrays: NDArray[np.generic]) -> Floats:
        return np.array([statistic(*arrays)], dtype=np.float64)

    return bootstrap_intervals(data, alone, 1, n_resamples, seed, level, groups)[0]


def bootstrap_intervals(
    data: ArrayLike | tuple[ArrayLike, ...],
    statistics: Callable[..., Floats],
    k: int,
    n_resamples: int = 2_000,
    seed: int = 0,
    level: float = 0.95,
    groups: ArrayLike | None = None,
) -> list[Interval]:
    """Return the interval of each of several statistics that are computed at once, such as weights of a fit.

    As `bootstrap_interval`, but ``statistics`` returns an array, (k,), each left out where it is NaN.
    """
    arrays = [np.asarray(array) for array in (data if isinstance(data, tuple) else (data,))]
    if any(len(array) != len(arrays[0]) for array in arrays):
        raise ValueError("paired arrays must have the same number of rows")
    rows = None if groups is None else _rows_by_group(np.asarray(groups))
    n = len(arrays[0]) if rows is None else len(rows)
    if n < 2:
        return [UNDEFINED] * k
    n_resamples = resamples(n_resamples, n)
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_resamples):
        drawn = rng.integers(n, size=n)
        chosen = drawn if rows is None else np.concatenate([rows[group] for group in drawn])
        found.append(statistics(*(array[chosen] for array in arrays)))
    return [_percentiles(known_values(one), n_resamples, level) for one in np.transpose(found)]


def _percentiles(found: Floats, n_resamples: int, level: float) -> Interval:
    if 2 * found.size < n_resamples:
        return UNDEFINED
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _rows_by_group(groups: NDArray[np.generic]) -> list[NDArray[np.intp]]:
    _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
    return np.split(np.argsort(group, kind="stable"), np.cumsum(size)[:-1])


def clustered_interval(hits: ArrayLike, cases: ArrayLike, level: float = 0.95) -> Interval:
    """Return the interval of the share ``sum(hits) / sum(cases)`` of clustered cases.

    ``hits`` and ``cases``, (n_clusters,): cases of each cluster that show it, and all its cases; clusters
    without a case are left out. Within [0, 1] and around the share; NaN without cases, next to nothing from a
    single cluster.

    The variance of the ratio estimator between clusters says how many independent cases the clustered ones
    are worth; with that number, lowered for the few clusters behind the variance, the interval is the exact
    one (Clopper & Pearson) of a share (Korn & Graubard 1998). Intervals that take the cases of a cluster for
    independent are too narrow: of beta-binomial claims in 20 to 70 answers Wilson's covers down to 52 %, this
    one at least 92 % (89 % where only one claim in 20 is a hit, and hits come by whole answers).

    Of 20 answers with 3 claims each, 10 have none supported and 10 all: 20 cases, not 60.

    >>> [round(end, 2) for end in clustered_interval([3, 0] * 10, [3] * 20)]
    [0.25, 0.75]
    """
    x, n = np.asarray(hits, dtype=np.float64), np.asarray(cases, dtype=np.float64)
    x, n = x[n > 0], n[n > 0]
    total, m = float(n.sum()), n.size
    if not m:
        return UNDEFINED
    share = float(x.sum()) / total
    # Where no cluster differs from the others, its size alone says what the cases are worth (Kish 1965).
    worth = total**2 / float((n**2).sum())
    if m > 1:
        variance = m / (m - 1) * float(((x - share * n) ** 2).sum()) / total**2
        if 0 < share < 1:
            worth = share * (1 - share) / variance if variance else total
        few = float(ndtri((1 + level) / 2) / stdtrit(m - 1, (1 + level) / 2)) ** 2
        worth = min(worth * few, total)
    tail, hit = (1 - level) / 2, share * worth
    low = float(betaincinv(hit, worth - hit + 1, tail)) if hit > 0 else 0.0
    high = float(betaincinv(hit + 1, worth - hit, 1 - tail)) if share < 1 else 1.0
    return max(0.0, min(share, low)), min(1.0, max(share, high))
