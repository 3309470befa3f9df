"""Correlations of many columns, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtr

from core.arrays import Floats, Ints
from core.stats.intervals import known_values

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


def correlations(values: ArrayLike, n_resamples: int = 9_999, seed: int = 0) -> Correlations:
    """Return the correlations of every pair of columns over the cases that have both.

    ``values``, (n, m): one row per case, one column per variable; NaN where missing. A column of 0 and 1
    makes Pearson's coefficient the point-biserial one. Undefined for pairs with fewer than `FEWEST_CASES`
    cases, and where in these fewer than `FEWEST_APART` lie off a column's most common value.

    95 % intervals are Fisher's, of the inverse hyperbolic tangent. Their error is that of Bonett & Wright
    (2000) for Spearman's coefficient, which held in simulations with ties and with a column of 0 and 1 (93 to
    100 %). For Pearson's, and where both columns have two values, it is the larger of the normal one and the
    one that assumes no distribution (Hawkins 1989); with far outliers its intervals cover less (about 85 %).

    The two-sided p-values are of "the one has nothing to do with the other": by permutation below 200 cases
    (``n_resamples`` draws, a tenth where p is above 0.1 by these; same seed, same p), and above where the
    rare values of both columns would meet in fewer than 20 by chance; else by Student's t, its limit. 20
    columns of 20,000 cases take a second.

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
            new = _correlations(shared[:, usable], apart[usable], here, deal)
            found[:, :, down, across] = np.where(here, new, found[:, :, down, across])
    n = known.T.astype(np.int64) @ known.astype(np.int64)
    return Correlations(n, Correlation(*found[0]), Correlation(*found[1]))


def n_apart(values: ArrayLike) -> int:
    """Return how many values differ from the most common one; NaN is left out.

    >>> n_apart([1, 1, 1, 0, 2, float("nan")])
    2
    """
    _, size = np.unique(known_values(values), return_counts=True)
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


def _correlations(shared: Floats, apart: Ints, wanted: NDArray[np.bool_], deal: _Dealer) -> Floats:
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
        half = [float(ndtri((1 + 0.95) / 2)) * np.sqrt(one / (n - 3)) for one in variance]
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
