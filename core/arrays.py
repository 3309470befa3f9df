"""Many groups at once: ranks, rank correlation and layout of long arrays, without a Python loop.

``group`` gives each row's group (its question) as a number from 0; rows of one group need not be adjacent.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def ranks_within(values: Floats, group: Ints, descending: bool = False) -> Floats:
    """Average ranks within each group: 1 for the smallest (or largest), ties share their mean.

    NaN values get NaN and do not count.
    """
    values = -values if descending else values
    ranks = np.full(values.shape, np.nan)
    rows = np.flatnonzero(~np.isnan(values))
    if not rows.size:
        return ranks
    order = rows[np.lexsort((values[rows], group[rows]))]
    v, g = values[order], group[order]
    new_group = np.r_[True, g[1:] != g[:-1]]
    new_tie = new_group | np.r_[True, v[1:] != v[:-1]]
    position = np.arange(order.size)
    in_group = position - position[new_group][np.cumsum(new_group) - 1]
    tie = np.cumsum(new_tie) - 1
    mean = np.bincount(tie, in_group) / np.bincount(tie)
    ranks[order] = mean[tie] + 1
    return ranks


def tie_spans(ranks: Floats, group: Ints) -> tuple[Floats, Floats]:
    """First and last rank that each row's tie spans: 2 and 4 for three rows of average rank 3."""
    half = np.full(ranks.shape, np.nan)
    rows = np.flatnonzero(~np.isnan(ranks))
    if rows.size:
        order = rows[np.lexsort((ranks[rows], group[rows]))]
        new = np.r_[True, (np.diff(group[order]) != 0) | (np.diff(ranks[order]) != 0)]
        tie = np.cumsum(new)
        half[order] = (np.bincount(tie)[tie] - 1) / 2
    return ranks - half, ranks + half


def spearman_within(a_ranks: Floats, b_ranks: Floats, group: Ints, n_groups: int) -> tuple[Floats, Floats]:
    """Pearson correlation of two rankings within each group, and its two-sided p-value.

    NaN where either ranking is constant. The p-value uses the t distribution with k - 2 degrees of
    freedom, as scipy.stats.spearmanr does.
    """
    k = np.bincount(group, minlength=n_groups).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Ranks of k values always have the mean (k + 1) / 2, ties or not.
        centre = ((k + 1) / 2)[group]
        a, b = a_ranks - centre, b_ranks - centre
        covariance = np.bincount(group, a * b, n_groups)
        spread = np.bincount(group, a * a, n_groups) * np.bincount(group, b * b, n_groups)
        rho = np.where(spread > 0, covariance / np.sqrt(spread), np.nan)
        rho = np.clip(rho, -1, 1)
        # Rounding must not turn a perfect agreement into 0.9999999999999999.
        rho = np.where(np.abs(np.abs(rho) - 1) < 1e-12, np.sign(rho), rho)
        t = rho * np.sqrt((k - 2) / ((1 + rho) * (1 - rho)))
        # 0 where the agreement is perfect: t is infinite. NaN of two values, where it is 0 / 0.
        p = 2 * stdtr(k - 2, -np.abs(t))
    return rho, p


def extremes_within(values: Floats, group: Ints, n_groups: int) -> tuple[Floats, Floats]:
    """Smallest and largest value of each group; inf and -inf without values, NaN where one is NaN."""
    low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    with np.errstate(invalid="ignore"):
        np.minimum.at(low, group, values)
        np.maximum.at(high, group, values)
    return low, high


def constant_within(values: Floats, group: Ints, n_groups: int) -> Bools:
    """Whether all values of a group are equal (true for a group without values)."""
    low, high = extremes_within(values, group, n_groups)
    return low >= high


def dot(a: Floats, b: Floats) -> Floats:
    """Return the product of the vectors along the last axis: the very digits of ``a @ b``, pair by pair."""
    return np.asarray((a[..., None, :] @ b[..., :, None])[..., 0, 0])


def equal_sized(group: Ints, chosen: Bools) -> Iterator[tuple[Ints, Ints]]:
    """Yield the chosen groups of each size together: their numbers, (m,), and their rows, (m, size).

    ``chosen`` has one entry per group. Groups without rows are left out.
    """
    size = np.bincount(group, minlength=chosen.size)
    rows, start = np.argsort(group, kind="stable"), np.cumsum(size) - size
    for k in np.unique(size[chosen & (size > 0)]):
        numbers = np.flatnonzero(chosen & (size == k))
        yield numbers, rows[start[numbers][:, None] + np.arange(k)]
