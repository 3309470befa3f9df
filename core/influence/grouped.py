"""The influence metrics of many questions at once: one pass over long arrays, no Python loop.

Rows of one question need not be adjacent. ``group`` gives each row's question as a number from 0;
every result has one entry per question. The functions on a single question in
`core.influence.metrics` call these, so there is one implementation of each formula.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
        p = np.where(np.abs(rho) == 1, 0.0, 2 * stdtr(k - 2, -np.abs(t)))
    p = np.where(np.isnan(rho) | (k <= 2), np.nan, p)
    return rho, p


def dominance_within(influence: Floats, group: Ints, n_groups: int) -> Floats:
    """Largest share of each group's sum; NaN where the sum is 0."""
    total = np.bincount(group, influence, n_groups)
    _, largest = _extremes(influence, group, n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, largest / total, np.nan)


def entropy_within(influence: Floats, group: Ints, n_groups: int) -> Floats:
    """Shannon entropy in nats of each group's shares; NaN where the sum is 0."""
    total = np.bincount(group, influence, n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = influence / total[group]
        terms = np.where(share > 0, -share * np.log(np.where(share > 0, share, 1)), 0.0)
        return np.where(total > 0, np.bincount(group, terms, n_groups), np.nan)


def constant_within(values: Floats, group: Ints, n_groups: int) -> NDArray[np.bool_]:
    """Whether all values of a group are equal (true for a group without values)."""
    low, high = _extremes(values, group, n_groups)
    return low >= high


def _extremes(values: Floats, group: Ints, n_groups: int) -> tuple[Floats, Floats]:
    low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    with np.errstate(invalid="ignore"):  # NaN goes through: such a group has no extremes
        np.minimum.at(low, group, values)
        np.maximum.at(high, group, values)
    return low, high
