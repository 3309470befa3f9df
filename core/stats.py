"""Statistics: intervals, permutation tests, correlations, multiple comparisons and the quality of a ranking.

Pure functions on arrays, thin over scipy and scikit-learn: what is added is the handling of ties, missing
values and degenerate data. Missing values (NaN) are left out; "undefined" is NaN, never 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, ndtr, ndtri, stdtr, stdtrit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Interval = tuple[float, float]

_UNDEFINED: Interval = (math.nan, math.nan)
_CELLS = 5_000_000  # of one batch of permutations: bounds the memory, not the result
_RECURSION_UP_TO = 1_000  # trials; every term of the recursion is positive, so even tiny tails are precise


def wilson_interval(share: float, n: int, level: float = 0.95) -> Interval:
    """Return the score interval of a share of n cases (Wilson 1927).

    Conservative for the mean of any values in [0, 1], because no such mean varies more than a share.

    Returns
    -------
    (low, high) : tuple of float
        Within [0, 1] and around `share`; has a width even where that is 0 or 1. NaN for n = 0.

    Examples
    --------
    >>> [round(end, 3) for end in wilson_interval(0.3, 10)]
    [0.108, 0.603]
    """
    if n < 1:
        return _UNDEFINED
    z = float(ndtri((1 + level) / 2))
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and 1 the interval ends exactly at the share; rounding must not leave the share outside.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def mean_interval(
    values: ArrayLike, level: float = 0.95, lower: float = -math.inf, upper: float = math.inf
) -> Interval:
    """Return the t interval of a mean (Student 1908), cut at the bounds that the values themselves have.

    Returns
    -------
    (low, high) : tuple of float
        NaN for fewer than 2 values; width 0 where all are equal (`mean_in_unit` avoids that).
    """
    known = _known(values)
    n = known.size
    if n < 2:
        return _UNDEFINED
    half = float(stdtrit(n - 1, (1 + level) / 2)) * float(known.std(ddof=1)) / math.sqrt(n)
    centre = float(known.mean())
    return max(lower, centre - half), min(upper, centre + half)


def mean_in_unit(values: ArrayLike, share: bool = False, level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of values in [0, 1] and its interval.

    Parameters
    ----------
    values : array_like, shape (n,)
        In [0, 1].
    share : bool
        Whether every value is 0 or 1 by nature (hit or miss), so that the mean is a share.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    (mean, low, high) : tuple of float
        Wilson's interval for shares, else Student's t cut at 0 and 1, or Wilson's where all values are equal:
        a width of 0 would claim too much. NaN without values; no interval for one value that is not a share.
    """
    known = _known(values)
    if not known.size:
        return math.nan, math.nan, math.nan
    if share or (known.size > 1 and (known == known[0]).all()):
        mean = float(known.mean()) if share else float(known[0])
        return mean, *wilson_interval(mean, known.size, level)
    return float(known.mean()), *mean_interval(known, level, 0.0, 1.0)


def cases_needed(differences: ArrayLike) -> int | None:
    """Return about how many cases a test would need to tell a mean difference like this one from 0.

    The normal approximation for a two-sided test at 5 % that succeeds four times in five:
    ``((1.96 + 0.84) · sd / mean)²``, rounded up to two figures. An estimate from the effect and the spread
    that were seen, both of which are uncertain themselves.

    Parameters
    ----------
    differences : array_like, shape (n,)
        Of each case: what was observed minus what is expected by chance.

    Returns
    -------
    int or None
        More than n. None where the difference is nil: more than a hundred times the cases would be needed, or
        it is below a fiftieth of its standard deviation; and for fewer than 2.

    Examples
    --------
    >>> cases_needed([0.3, -0.1, 0.2, 0.0])  # mean 0.1, sd 0.183
    27
    """
    known = _known(differences)
    n = known.size
    if n < 2:
        return None
    exact = (float(ndtri(0.975) + ndtri(0.8)) * float(known.std(ddof=1))) ** 2
    mean = float(known.mean()) ** 2
    if exact >= 100 * n * mean or 50**2 * mean <= float(known.var(ddof=1)):
        return None
    found = max(n + 1, math.ceil(exact / mean))
    unit = 10 ** max(0, len(str(found)) - 2)
    return -(-found // unit) * unit


def paired_interval(a: ArrayLike, b: ArrayLike, level: float = 0.95, share: bool = False) -> Interval:
    """Return the interval of the mean difference ``b`` − ``a`` of pairs.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Two values of each case.
    level : float
        Confidence level in (0, 1).
    share : bool
        Whether every value is 0 or 1 by nature, so that the means are shares.

    Returns
    -------
    (low, high) : tuple of float
        The adjusted Wald interval of two paired shares (Bonett & Price 2012), which has a width even where no
        pair differs; else Student's t of the differences. NaN for fewer than 2 pairs, and where all
        differences of values that are no shares are equal: a width of 0 would claim too much.

    Examples
    --------
    Of 20 cases 5 turn from 0 to 1 and one turns back:

    >>> before, after = [0] * 5 + [1] + [1] * 14, [1] * 5 + [0] + [1] * 14
    >>> [round(end, 2) for end in paired_interval(before, after, share=True)]
    [-0.06, 0.42]
    """
    first, second = _pairs(a, b)
    difference = second - first
    n = difference.size
    if n < 2:
        return _UNDEFINED
    if not share:
        return mean_interval(difference, level) if np.ptp(difference) else _UNDEFINED
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

    Parameters
    ----------
    data : array_like or tuple of array_like, each of shape (n, ...)
        One array, or several that are paired row by row: two scores and a label for the difference of two
        AUROCs, gain and ideal for a ratio of means.
    statistic : callable
        Takes the resampled arrays, returns a number; NaN (say, only one class was drawn) is left out.
    n_resamples, seed, level
        Number of resamples; same seed, same interval; confidence level in (0, 1).
    groups : array_like, shape (n,), optional
        Rows of equal value are drawn together (cluster bootstrap), such as all claims of a question.

    Returns
    -------
    (low, high) : tuple of float
        NaN for fewer than 2 rows or groups, or where the statistic is undefined in most resamples. Width 0
        where all resamples agree, which says nothing of precision. A little narrow for few rows: a mean
        of 20 is covered about 92 % of the time, not 95 %.
    """
    arrays = [np.asarray(array) for array in (data if isinstance(data, tuple) else (data,))]
    if any(len(array) != len(arrays[0]) for array in arrays):
        raise ValueError("paired arrays must have the same number of rows")
    rows = None if groups is None else _rows_by_group(np.asarray(groups))
    n = len(arrays[0]) if rows is None else len(rows)
    if n < 2:
        return _UNDEFINED
    rng = np.random.default_rng(seed)
    found = np.empty(n_resamples)
    for i in range(n_resamples):
        drawn = rng.integers(n, size=n)
        chosen = drawn if rows is None else np.concatenate([rows[group] for group in drawn])
        found[i] = statistic(*(array[chosen] for array in arrays))
    found = _known(found)
    if 2 * found.size < n_resamples:
        return _UNDEFINED
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def permutation_test(a: ArrayLike, b: ArrayLike, n_resamples: int = 9_999, seed: int = 0) -> float:
    """Return the two-sided p-value of the difference of means of two independent samples.

    Parameters
    ----------
    a, b : array_like, shapes (n,) and (m,)
        The samples.
    n_resamples, seed
        Random reassignments of the values to the samples (all, where there are no more); same seed, same p.

    Returns
    -------
    float
        In (0, 1], small where chance is a poor explanation: (1 + #extreme) / (1 + #draws), never 0 (Phipson &
        Smyth 2010), or the exact share of all reassignments. NaN where a sample is empty.
    """
    from scipy.stats import permutation_test as scipy_test

    first, second = _known(a), _known(b)
    if not first.size or not second.size:
        return math.nan
    found = scipy_test(
        (first, second),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        n_resamples=n_resamples,
        batch=max(1, _CELLS // (first.size + second.size)),
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def paired_permutation_test(a: ArrayLike, b: ArrayLike, n_resamples: int = 9_999, seed: int = 0) -> float:
    """Return the two-sided p-value of the mean difference of pairs (sign-flip test, Fisher 1935, section 21).

    As `permutation_test`, but `a` and `b` are two values of each case (the same questions in two runs), and
    they are exchanged within pairs only. Where all differences but 0 have one size, as of 0 and 1, it is the
    exact sign test for any number of pairs (McNemar 1947). 1 where all differences are 0, NaN without pairs.
    """
    first, second = _pairs(a, b)
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
    for start in range(0, draws, max(1, _CELLS // n)):
        rows = np.arange(start, min(draws, start + max(1, _CELLS // n)))
        flip = rows[:, None] >> np.arange(n) & 1 if exact else rng.integers(0, 2, (rows.size, n), np.int8)
        n_extreme += int(np.count_nonzero(np.abs(difference.sum() - 2 * (flip @ difference)) >= least))
    return n_extreme / draws if exact else (1 + n_extreme) / (1 + draws)


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted for multiple tests by the step-down method (Holm 1979).

    Returns
    -------
    ndarray, shape of `p_values`
        In [0, 1], never below `p_values`. Rejecting where this is at most α keeps the probability of any
        false rejection at most α, however the tests depend on each other. A NaN (no test was possible) stays
        NaN and does not count as a test.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, float("nan")]).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    adjusted = np.array(p_values, dtype=np.float64)
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]  # NaN are sorted last
    steps = adjusted[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


FEWEST_CASES = 10  # of a correlation: below, the interval of Bonett and Wright is not known to hold
FEWEST_APART = 5  # cases off the most common value: fewer make a correlation the matter of a few cases
_SMALL, _FEW_TOGETHER, _UNSETTLED = 200, 20, 0.1


class Correlation(NamedTuple):
    """One coefficient of every pair of columns: matrices (m, m), NaN where undefined and on the diagonal.

    ``low`` and ``high`` are also NaN where the value is -1 or 1: a width of 0 would claim too much.
    """

    value: Floats
    low: Floats
    high: Floats
    p_value: Floats


class Correlations(NamedTuple):
    """What `correlations` returns; ``n`` holds the cases of every pair, (m, m)."""

    n: Ints
    pearson: Correlation
    spearman: Correlation


def correlations(
    values: ArrayLike, n_resamples: int = 9_999, seed: int = 0, level: float = 0.95
) -> Correlations:
    """Return the correlations of every pair of columns over the cases that have both.

    Intervals are Fisher's, of the inverse hyperbolic tangent. Its standard error is that of Bonett & Wright
    (2000) for Spearman's coefficient, which held in simulations with ties and with a column of 0 and 1 (93 to
    100 %). For Pearson's, and where both columns have two values, it is the larger of the normal one and the
    one that assumes no distribution (Hawkins 1989); with far outliers its intervals cover less (about 85 %).

    Parameters
    ----------
    values : array_like, shape (n, m)
        One row per case, one column per variable; NaN where missing. A column of 0 and 1 makes Pearson's
        coefficient the point-biserial one.
    n_resamples, seed
        Draws of the permutation test, a tenth of them where p is above 0.1 by these; same seed, same p.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    Correlations
        Undefined for pairs with fewer than `FEWEST_CASES` cases, and where in these fewer than `FEWEST_APART`
        lie off a column's most common value. The two-sided p-values are of "the one has nothing to do with
        the other": by permutation below 200 cases, and above where the rare values of both columns would meet
        in fewer than 20 by chance; else by Student's t, its limit. 20 columns of 20,000 cases take a second.

    Examples
    --------
    >>> found = correlations([[i, i * i, -i if i else np.nan] for i in range(12)])
    >>> found.n.tolist()[0], found.spearman.value.round(2).tolist()[0]
    ([12, 12, 11], [nan, 1.0, -1.0])
    """
    data = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(data)
    n_columns = data.shape[1]
    found = np.full((2, 4, n_columns, n_columns), math.nan)
    deal = _Dealer(n_resamples, seed)
    for rows, pairs in _pairs_by_rows(known):
        columns = np.unique(pairs)
        shared = data[np.ix_(rows, columns)]
        apart = np.array([n_apart(column) for column in shared.T])
        usable = (apart >= FEWEST_APART) & (len(shared) >= FEWEST_CASES)
        if np.count_nonzero(usable) > 1:
            wanted = np.zeros((n_columns, n_columns), dtype=bool)
            wanted[tuple(pairs.T)] = wanted[tuple(pairs.T[::-1])] = True
            down, across = np.ix_(columns[usable], columns[usable])
            here = wanted[down, across]
            new = _correlations(shared[:, usable], apart[usable], here, deal, level)
            found[:, :, down, across] = np.where(here, new, found[:, :, down, across])
    n = known.T.astype(np.int64) @ known.astype(np.int64)
    return Correlations(n, Correlation(*found[0]), Correlation(*found[1]))


def n_apart(values: ArrayLike) -> int:
    """Return how many values differ from the most common one; NaN is left out.

    >>> n_apart([1, 1, 1, 0, 2, float("nan")])
    2
    """
    _, size = np.unique(_known(values), return_counts=True)
    return int(size.sum() - size.max()) if size.size else 0


class _Dealer:
    """Deals permutations; those of one number of cases serve all pairs that have it."""

    def __init__(self, n_resamples: int, seed: int) -> None:
        self.n_resamples = n_resamples
        self._rng = np.random.default_rng(seed)
        self._kept: dict[int, NDArray[np.int16]] = {}

    def permutations(self, n: int) -> NDArray[np.int16]:
        """Return the permutations of n cases, (resamples, n)."""
        if n not in self._kept:
            unshuffled = np.tile(np.arange(n, dtype=np.int16), (self.n_resamples, 1))
            self._kept[n] = self._rng.permuted(unshuffled, axis=1)
        return self._kept[n]

    def sums(self, few: Floats, of: Floats, draws: int) -> Floats:
        """Return the sums of products of ``few`` numbers with as many others, drawn from ``of`` each time."""
        n, m = of.size, few.size
        return np.array([few @ of[self._rng.choice(n, m, False)] for _ in range(draws)])


def _pairs_by_rows(known: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], Ints]]:
    """Yield sets of cases with the pairs of columns, (pairs, 2), that have both values in just these."""
    groups: dict[bytes, tuple[NDArray[np.bool_], list[tuple[int, int]]]] = {}
    for j in range(known.shape[1]):
        for i in range(j):
            rows = known[:, i] & known[:, j]
            groups.setdefault(np.packbits(rows).tobytes(), (rows, []))[1].append((i, j))
    for rows, pairs in groups.values():
        yield rows, np.array(pairs, dtype=np.int64)


def _correlations(
    shared: Floats, apart: Ints, wanted: NDArray[np.bool_], deal: _Dealer, level: float
) -> Floats:
    """Return both coefficients of complete columns, (2, 4, columns, columns)."""
    from scipy.stats import rankdata

    n = len(shared)
    standard = [_standard(shared), _standard(rankdata(shared, axis=0))]
    value = [np.clip(unit.T @ unit / n, -1.0, 1.0) for unit in standard]
    value = [np.where(np.abs(r) > 1 - 1e-12, np.sign(r), r) for r in value]
    squares = standard[0] ** 2
    fourth, third = squares.T @ squares / n, (squares * standard[0]).T @ standard[0] / n
    r, own = value[0], np.diag(fourth)
    spread = fourth - r * (third + third.T) + r * r / 4 * (own[:, None] + own + 2 * fourth)
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.maximum(1.0, spread / (1 - r * r) ** 2)
        two = np.array([np.unique(column).size == 2 for column in shared.T])
        variance = [free, np.where(two & two[:, None], free, 1 + value[1] ** 2 / 2)]
        half = [float(ndtri((1 + level) / 2)) * np.sqrt(one / (n - 3)) for one in variance]
        ends = [
            [np.tanh(np.arctanh(r) + sign * h) for sign in (-1, 1)] for r, h in zip(value, half, strict=True)
        ]
    found = np.array([[r, *both, _by_t(r, n)] for r, both in zip(value, ends, strict=True)])
    found[:, 1:3] = np.where(np.abs(found[:, :1]) == 1, math.nan, found[:, 1:3])
    found[:, :, np.eye(shared.shape[1], dtype=bool)] = math.nan
    dealt = wanted & ((n < _SMALL) | (np.outer(apart, apart) < _FEW_TOGETHER * n))
    for kind, unit in enumerate(standard):
        _by_permutation(found[kind], unit, apart, dealt, deal)
    return found


def _standard(values: Floats) -> Floats:
    """Return columns with mean 0 and mean square 1."""
    centred = values - values.mean(axis=0)
    scaled: Floats = centred / np.abs(centred).max(axis=0)
    return scaled / np.sqrt((scaled**2).mean(axis=0))


def _by_t(r: Floats, n: int) -> Floats:
    with np.errstate(divide="ignore"):
        found: Floats = 2 * stdtr(n - 2, -np.abs(r) * np.sqrt((n - 2) / (1 - r * r)))
    return found


def _by_permutation(
    found: Floats, unit: Floats, apart: Ints, dealt: NDArray[np.bool_], deal: _Dealer
) -> None:
    """Put p-values by permutation where ``dealt`` asks for them."""
    n = len(unit)
    least = n * (np.abs(found[0]) - 1e-9)  # sums that are equal but for rounding count as equal
    for j in range(1, unit.shape[1]):
        others = np.flatnonzero(dealt[:j, j])
        # Most pairs are settled by a tenth of the draws: nothing is to be found there.
        for draws in (deal.n_resamples // 10, deal.n_resamples):
            if others.size:
                if n < _SMALL:
                    sums = unit[:, j][deal.permutations(n)[:draws]] @ unit[:, others]
                else:
                    sums = np.column_stack([_few(unit, apart, i, j, deal, draws) for i in others.tolist()])
                extreme = np.count_nonzero(np.abs(sums) >= least[others, j], axis=0)
                found[3, others, j] = found[3, j, others] = (1 + extreme) / (1 + draws)
                others = others[extreme < draws * _UNSETTLED]


def _few(unit: Floats, apart: Ints, i: int, j: int, deal: _Dealer, draws: int) -> Floats:
    """Return sums of products of two columns, one permuted, of which one has few values off its commonest."""
    few, many = (i, j) if apart[i] <= apart[j] else (j, i)
    levels, size = np.unique(unit[:, few], return_counts=True)
    # The columns sum to 0, so a constant taken off one changes no sum of products.
    off = unit[:, few] - levels[np.argmax(size)]
    return deal.sums(off[off != 0], unit[:, many], draws)


def poisson_binomial_tail(probabilities: ArrayLike, count: int) -> float:
    """Return P(X >= count) for the number X of successes in independent trials of unequal probability.

    Exact: by recursion up to 1,000 trials, beyond by Fourier transform (Hong 2013) with an absolute error
    below 1e-12, so that a tinier tail is not resolved. 100,000 trials take about half a second.

    Parameters
    ----------
    probabilities : array_like, shape (n,)
        Of success in each trial, such as of a failure mode by chance in each question.
    count : int
        Observed number of successes.

    Returns
    -------
    float
        In [0, 1]: the one-sided p-value of "more than by chance".

    Raises
    ------
    ValueError
        A probability is NaN or outside [0, 1].
    """
    return 1.0 if count <= 0 else min(1.0, float(_successes(probabilities)[count:].sum()))


def poisson_binomial_interval(probabilities: ArrayLike, level: float = 0.95) -> tuple[int, int]:
    """Return the central range of the number of successes in independent trials of unequal probability.

    Takes and raises what `poisson_binomial_tail` does.

    Returns
    -------
    (low, high) : tuple of int
        Within [0, n]. From `low` to `high`, both included, has at least probability `level`; at most half of
        the rest is below, and at most half above.
    """
    below = np.cumsum(_successes(probabilities))
    low, high = np.searchsorted(below, np.array([(1 - level) / 2, (1 + level) / 2]) - 1e-12)
    return int(low), int(high)


def auroc(score: ArrayLike, positive: ArrayLike) -> float:
    """Return P(a positive scores higher than a negative), ties counted half (Hanley & McNeil 1982).

    Parameters
    ----------
    score : array_like, shape (n,)
        Higher means more likely positive; only the order matters.
    positive : array_like of bool, shape (n,)
        The label.

    Returns
    -------
    float
        In [0, 1], higher is better, 0.5 is chance. NaN with fewer than two classes.
    """
    ranks, label = _ranked(score, positive)
    n = int(label.sum())
    if n in (0, label.size):
        return math.nan
    return float((ranks[label].sum() - n * (n + 1) / 2) / (n * (label.size - n)))


def auprc(score: ArrayLike, positive: ArrayLike) -> float:
    """Return the area under the precision-recall curve as average precision (Davis & Goadrich 2006).

    Parameters as for `auroc`; equal scores are one step of the curve.

    Returns
    -------
    float
        In (0, 1], higher is better; chance is about the share of positives. NaN with fewer than two classes.
    """
    from sklearn.metrics import average_precision_score

    ranks, label = _ranked(score, positive)
    if label.all() or not label.any():
        return math.nan
    return float(average_precision_score(label, ranks))


def auroc_difference(
    a: ArrayLike, b: ArrayLike, positive: ArrayLike, level: float = 0.95
) -> tuple[float, float, float, float]:
    """Compare the AUROC of two scores of the same cases (DeLong, DeLong, Clarke-Pearson 1988).

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Higher means more likely positive; a case without both scores is left out.
    positive : array_like of bool, shape (n,)
        The label.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    (difference, low, high, p_value) : tuple of float
        AUROC of ``a`` minus that of ``b``, and what the normal approximation says of it. p is 1 where the two
        rank alike. Interval and p are NaN for fewer than two cases of a class, and where all cases differ
        alike: a width of 0 would claim too much.

    Examples
    --------
    >>> right = [1, 1, 1, 1, 0, 0, 0, 0]
    >>> found = auroc_difference([8, 7, 6, 3, 5, 4, 2, 1], [8, 2, 6, 3, 5, 4, 7, 1], right)
    >>> [round(number, 3) for number in found]
    [0.312, -0.123, 0.748, 0.16]
    """
    first, second, label = (np.asarray(x, dtype=np.float64) for x in (a, b, positive))
    known = ~np.isnan(first + second + label)
    is_positive = label[known].astype(bool)
    if not is_positive.any() or is_positive.all():
        return (math.nan,) * 4
    (hits_a, alarms_a), (hits_b, alarms_b) = (_placements(x[known], is_positive) for x in (first, second))
    hits, alarms = hits_a - hits_b, alarms_a - alarms_b
    difference = float(hits.mean())
    if not hits.any() and not alarms.any():
        return 0.0, math.nan, math.nan, 1.0
    if min(hits.size, alarms.size) < 2:
        return difference, math.nan, math.nan, math.nan
    error = math.sqrt(hits.var(ddof=1) / hits.size + alarms.var(ddof=1) / alarms.size)
    if error < 1e-12:
        return difference, math.nan, math.nan, math.nan
    half = float(ndtri((1 + level) / 2)) * error
    return difference, difference - half, difference + half, 2 * float(ndtr(-abs(difference) / error))


def risk_coverage(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    """Return the error rate when only the most confident answers are given (El-Yaniv & Wiener 2010).

    Parameters
    ----------
    confidence : array_like, shape (n,)
        Higher means answered first; only the order matters.
    correct : array_like, shape (n,)
        1 correct, 0 wrong, or a quality in [0, 1]; the risk is the mean of 1 − this.

    Returns
    -------
    coverage : ndarray, shape (n,)
        The share answered: 1/n, 2/n, ... 1.
    risk : ndarray, shape (n,)
        In [0, 1], lower is better: the expected risk when equally confident answers come in random order, so
        that their order in the data does not matter.
    """
    score, quality = _pairs(confidence, correct)
    _, tie, size = np.unique(-score, return_inverse=True, return_counts=True)
    loss = np.bincount(tie, weights=1 - quality, minlength=size.size) / size
    answered = np.arange(1, score.size + 1)
    return answered / max(1, score.size), np.cumsum(np.repeat(loss, size)) / answered


def aurc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the risk-coverage curve: the mean of its risks (Geifman et al. 2019).

    Parameters as for `risk_coverage`.

    Returns
    -------
    float
        In [0, 1], lower is better; confidence at random gives the error rate. It measures accuracy and
        ranking at once: 0 where all are correct, 1 where none is. NaN without data.
    """
    _, risk = risk_coverage(confidence, correct)
    return float(risk.mean()) if risk.size else math.nan


def e_aurc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the excess AURC: `aurc` minus that of a perfect ranking (Geifman et al. 2019).

    Parameters as for `risk_coverage`.

    Returns
    -------
    float
        In [0, 1], lower is better, 0 is a perfect ranking. NaN where all answers are equally good: nothing
        is there to be ranked.
    """
    return _aurc_gaps(confidence, correct)[0]


def prr(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the prediction rejection ratio: the share of the possible gain realised (Malinin & Gales 2021).

    (A − A_random) / (A_oracle − A_random), where A is the area under the mean quality of the answers kept
    against the share rejected: 1 − `aurc`; A_random is exactly the mean quality. Parameters as for
    `risk_coverage`.

    Returns
    -------
    float
        At most 1, higher is better: 1 is a perfect ranking, 0 chance, below 0 worse than chance. NaN where
        all answers are equally good.
    """
    excess, possible = _aurc_gaps(confidence, correct)
    return 1 - excess / possible


RANKING_MEASURES = ("auroc", "auprc", "prr", "aurc", "e_aurc")


def ranking_quality(
    confidence: ArrayLike,
    correct: ArrayLike,
    n_resamples: int = 2_000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, tuple[float, float, float]]:
    """Return how well a confidence ranks right answers before wrong ones, with bootstrap intervals.

    Parameters
    ----------
    confidence : array_like, shape (n,)
        Higher means answered first; NaN is left out.
    correct : array_like of bool, shape (n,)
        Whether the answer is right; NaN is left out.
    n_resamples, seed, level
        As in `bootstrap_interval`, of which this is the special case that takes no Python loop.

    Returns
    -------
    dict of str to (value, low, high)
        ``auroc`` and ``auprc`` of finding the wrong answers; ``prr``, ``aurc`` and ``e_aurc`` as the
        functions of these names. NaN where all or none are right, but for ``aurc``.

    Examples
    --------
    >>> value, low, high = ranking_quality([0.9, 0.8, 0.6, 0.4, 0.3], [1, 1, 0, 1, 0])["auroc"]
    >>> round(value, 3), low < value <= high
    (0.833, True)
    """
    score, quality = _pairs(confidence, correct)
    n = score.size
    if not n:
        return dict.fromkeys(RANKING_MEASURES, (math.nan,) * 3)
    _, tie = np.unique(-score, return_inverse=True)
    value = _ranking_measures(np.ones((1, n)), tie, quality)[:, 0]
    rng = np.random.default_rng(seed)
    batch = max(1, _CELLS // n)
    drawn = [
        _ranking_measures(rng.multinomial(n, np.full(n, 1 / n), size=size).astype(float), tie, quality)
        for size in [batch] * (n_resamples // batch) + [n_resamples % batch]
    ]
    found = {}
    for name, exact, resampled in zip(RANKING_MEASURES, value, np.concatenate(drawn, axis=1), strict=True):
        usable = _known(resampled)
        ends = (
            np.quantile(usable, [(1 - level) / 2, (1 + level) / 2])
            if n > 1 and 2 * usable.size >= n_resamples and not math.isnan(exact)
            else _UNDEFINED
        )
        found[name] = float(exact), float(ends[0]), float(ends[1])
    return found


def _ranking_measures(counts: Floats, tie: NDArray[np.intp], quality: Floats) -> Floats:
    """Return the measures, (5, resamples), of cases drawn ``counts`` times; tie 0 is the most confident."""
    member = (tie[:, None] == np.arange(tie.max() + 1)).astype(float)
    size, right = counts @ member, (counts * quality) @ member
    wrong = size - right
    n, n_right, n_wrong = size.sum(axis=1), right.sum(axis=1), wrong.sum(axis=1)
    answered = np.cumsum(size, axis=1)
    wrong_before = np.cumsum(wrong, axis=1) - wrong
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n.max() + 1))])
    ends, starts = answered.astype(int), (answered - size).astype(int)
    # The k-th answer's risk, summed over a tie whose errors come in random order.
    rate = wrong / np.maximum(1.0, size)
    slope = (wrong_before - starts * rate) * (harmonic[ends] - harmonic[starts])
    area = (slope + wrong).sum(axis=1) / n
    gap = harmonic[n.astype(int)] - harmonic[n_right.astype(int)]
    perfect = (n_wrong - n_right * gap) / n
    right_before = np.cumsum(right, axis=1) - right
    # Found from the least confident on.
    alarms, hits = n[:, None] - answered + size, n_wrong[:, None] - wrong_before
    with np.errstate(invalid="ignore", divide="ignore"):
        curve = (wrong * (right_before + right / 2)).sum(axis=1) / (n_wrong * n_right)
        precision = (wrong * hits / np.maximum(1.0, alarms)).sum(axis=1) / n_wrong
        rejection = 1 - (area - perfect) / (n_wrong / n - perfect)
    found = np.array([curve, precision, rejection, area, np.maximum(0.0, area - perfect)])
    found[:, (n_wrong == 0) | (n_right == 0)] = math.nan
    found[3] = area
    return found


def _placements(score: Floats, label: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the share of negatives below each positive, and of positives above each negative."""
    from scipy.stats import rankdata

    ranks, n = rankdata(score), int(label.sum())
    hits = (ranks[label] - rankdata(score[label])) / (label.size - n)
    return hits, 1 - (ranks[~label] - rankdata(score[~label])) / n


def _known(values: ArrayLike) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    return found[~np.isnan(found)]


def _pairs(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"arrays must have the same shape, not {first.shape} and {second.shape}")
    known = ~(np.isnan(first) | np.isnan(second))
    return first[known], second[known]


def _ranked(score: ArrayLike, positive: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Return ranks, which keep order and ties of the scores and are finite where a score is not."""
    from scipy.stats import rankdata

    known, label = _pairs(score, positive)
    return rankdata(known), label.astype(bool)


def _rows_by_group(groups: NDArray[np.generic]) -> list[NDArray[np.intp]]:
    _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
    return np.split(np.argsort(group, kind="stable"), np.cumsum(size)[:-1])


def _aurc_gaps(confidence: ArrayLike, correct: ArrayLike) -> Interval:
    """Return AURC above that of the perfect ranking: that of this ranking, and that of a random one."""
    score, quality = _pairs(confidence, correct)
    if not quality.size or (quality == quality[0]).all():
        return _UNDEFINED
    perfect = aurc(quality, quality)
    return max(0.0, aurc(score, quality) - perfect), float(1 - quality.mean()) - perfect


def _successes(probabilities: ArrayLike) -> Floats:
    """Return the probability of 0, 1, ... n successes."""
    p = np.asarray(probabilities, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("probabilities must be in [0, 1]")
    if p.size > _RECURSION_UP_TO:
        length = 1 << p.size.bit_length()
        parts = [np.fft.rfft(_successes(half), length) for half in np.array_split(p, 2)]
        joined = np.fft.irfft(parts[0] * parts[1], length)[: p.size + 1]
        return np.asarray(np.maximum(0.0, joined), dtype=np.float64)
    found = np.zeros(p.size + 1)
    found[0] = 1.0
    for n, one in enumerate(p.tolist(), start=1):
        found[1 : n + 1] = found[1 : n + 1] * (1 - one) + found[:n] * one
        found[0] *= 1 - one
    return found
