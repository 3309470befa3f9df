"""The retriever's order judged by influence as gain, against dealing the same influences at random."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.influence.chance import random_sums
from core.influence.metrics import vectors
from core.stats import bootstrap_interval, mean_in_unit

_ORDERS = 2_000
_RUN_ORDERS = 9_999
_CELLS = 10_000_000  # passages dealt for the p-value of a run; beyond, the normal approximation is as good


class NdcgByChance(NamedTuple):
    """What random orders give: their mean nDCG, in (0, 1], and the two-sided p-value of the observed nDCG."""

    mean: float
    p_value: float


def influence_ndcg(retrieval_rank: ArrayLike, influence: ArrayLike) -> float:
    """Normalised discounted cumulative gain of the retriever's order, with influence as the gain.

    ``DCG(order of retrieval) / DCG(order of influence)``, linear gain, discount 1 / log2(1 + rank). It
    answers what a rank correlation cannot when one passage carries the answer: is it retrieved first?

    Järvelin, Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques.

    Parameters
    ----------
    retrieval_rank, influence : array_like of shape (k,)
        As in `core.influence.spearman`, influence at least 0. Passages of equal rank share the mean of their
        discounts: the expected DCG when their tie is broken at random.

    Returns
    -------
    float
        In (0, 1], higher is better, 1 = what the model used most comes first. NaN where the influences sum
        to 0 or a value is missing. Chance alone gives far more than 0: compare with `ndcg_by_chance`.

    Examples
    --------
    >>> influence_ndcg([1, 2, 3], [0.8, 0.1, 0.0]), influence_ndcg([1, 2, 3], [0.0, 0.7, 0.0]).__round__(3)
    (1.0, 0.631)
    """
    ranks, gains = vectors(retrieval_rank, influence)
    return float(ndcg_rows(ranks[None], gains[None])[0, 0]) if gains.any() else math.nan


def ndcg_by_chance(retrieval_rank: ArrayLike, influence: ArrayLike) -> NdcgByChance:
    """Return what `influence_ndcg` would be if the same influences were dealt to the passages at random.

    Takes what `influence_ndcg` does, and is NaN where that is. The mean is exact: mean gain × sum of the
    discounts / DCG of the order of influence. The p-value is twice the smaller share of all orders, or of
    2,000 seeded random ones beyond k = 6, that reach the observed value or do not exceed it; at most 1.
    """
    ranks, gains = vectors(retrieval_rank, influence)
    if not gains.any():
        return NdcgByChance(math.nan, math.nan)
    chance, p_value = ndcg_rows(ranks[None], gains[None])[0, 1], ndcg_p_values(ranks[None], gains[None])[0]
    return NdcgByChance(float(chance), float(p_value))


def ndcg_rows(order: Floats, influence: Floats) -> Floats:
    """Return nDCG, its mean over random orders and their variance, shape (n, 3), of n questions.

    ``order`` and ``influence`` have shape (n, k); NaN where undefined, see `influence_ndcg`.
    """
    discount, gain = _scaled(order, influence)
    k = gain.shape[1]
    chance = gain.mean(1) * discount.sum(1)
    variance = k * gain.var(1) * k * discount.var(1) / max(1, k - 1)
    found = np.stack([(discount * gain).sum(1), chance, variance], axis=1)
    # Rounding must not turn a perfect order into 0.9999999999999999.
    return np.where(np.abs(found - 1) < 1e-12, 1.0, found)


def ndcg_p_values(order: Floats, influence: Floats) -> Floats:
    """Return for n questions, shapes (n, k), the two-sided p-value of nDCG against random orders."""
    discount, gain = _scaled(order, influence)
    observed = (discount * gain).sum(1)
    p_values = np.full(len(order), np.nan)
    # Sorted, so that the orders drawn do not depend on the order in which the passages come.
    for rows, sums in random_sums(np.sort(discount, axis=1), np.sort(gain, axis=1), _ORDERS):
        reached = (sums >= observed[rows, None] - 1e-12).sum(1)
        reached = np.minimum(reached, (sums <= observed[rows, None] + 1e-12).sum(1))
        drawn = sums.shape[1] == _ORDERS  # else these are all orders, and the observed one is among them
        p_values[rows] = np.minimum(1, 2 * (reached + drawn) / (sums.shape[1] + drawn))
    return np.where(np.isnan(observed), np.nan, p_values)


class OrderOfUse(NamedTuple):
    """Whether a run's retriever puts first what the model uses: nDCG by influence against chance.

    ``mean`` nDCG over ``n`` questions with its 95 % interval, and ``chance``, that of random orders of the
    same influences. ``excess = (mean - chance) / (1 - chance)``: the share of what is possible beyond chance
    that is reached, a ratio of means, with a bootstrap interval; 0 is chance, 1 the order of use itself.
    ``p_value``, two-sided: twice the smaller probability that the mean of random orders is at least, or at
    most, this one.
    """

    n: int
    mean: float
    low: float
    high: float
    chance: float
    excess: float
    excess_low: float
    excess_high: float
    p_value: float


def order_of_use(blocks: list[tuple[Floats, Floats]]) -> OrderOfUse:
    """Summarise nDCG by influence over the questions of a run.

    ``blocks`` hold questions with equally many passages: order and influence, each (n, k); undefined
    questions are left out. NaN without questions, and excess where chance already gives 1 (no question tells
    its passages apart).
    """
    rows = [ndcg_rows(*block) for block in blocks]
    kept = [~np.isnan(found[:, 0]) for found in rows]
    value, chance, variance = np.vstack(
        [np.zeros((0, 3)), *(r[k] for r, k in zip(rows, kept, strict=True))]
    ).T
    if not value.size:
        return OrderOfUse(0, *[math.nan] * 8)
    excess_interval = bootstrap_interval((value, chance), _excess)
    used = [(o[k], g[k]) for (o, g), k in zip(blocks, kept, strict=True)]
    return OrderOfUse(
        value.size,
        *mean_in_unit(value),
        float(chance.mean()),
        _excess(value, chance),
        *excess_interval,
        _p_of_run(used, float((value - chance).sum()), float(variance.sum())),
    )


def _excess(value: Floats, chance: Floats) -> float:
    possible = 1 - float(chance.mean())
    return float((value - chance).mean()) / possible if possible > 1e-12 else math.nan


def _p_of_run(blocks: list[tuple[Floats, Floats]], surplus: float, variance: float) -> float:
    """Two-sided p-value of the sum of nDCG above its expectation: use may come early or late."""
    from scipy.stats import norm

    if variance <= 0:
        return 1.0
    if sum(order.size for order, _ in blocks) * _RUN_ORDERS > _CELLS:
        return float(2 * norm.sf(abs(surplus) / math.sqrt(variance)))
    rng, sums = np.random.default_rng(0), np.zeros(_RUN_ORDERS)
    for block in blocks:
        for discount, gain in zip(*(np.sort(part, axis=1) for part in _scaled(*block)), strict=True):
            dealt = rng.permuted(np.tile(gain, (_RUN_ORDERS, 1)), axis=1)
            sums += dealt @ discount - gain.mean() * discount.sum()
    tail = min(np.count_nonzero(sums >= surplus - 1e-9), np.count_nonzero(sums <= surplus + 1e-9))
    return float(min(1, 2 * (1 + tail) / (1 + _RUN_ORDERS)))


def _scaled(order: Floats, influence: Floats) -> tuple[Floats, Floats]:
    """Return discounts and gains, shape (n, k): Σ discount · gain is nDCG, and the ideal order has 1."""
    n, k = order.shape
    plain = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.sort(influence, axis=1)[:, ::-1] @ plain
    ideal = np.where((ideal > 0) & ~np.isnan(order).any(1), ideal, np.nan)
    rows = np.argsort(order, axis=1, kind="stable")
    ascending = np.take_along_axis(order, rows, axis=1)
    # Passages of equal rank share the mean of their discounts.
    new = np.ones((n, k), dtype=bool)
    new[:, 1:] = np.diff(ascending, axis=1) != 0
    tie = np.cumsum(new) - 1
    mean = np.bincount(tie, np.tile(plain, n)) / np.maximum(1, np.bincount(tie))
    discount = np.empty((n, k))
    np.put_along_axis(discount, rows, mean[tie].reshape(n, k), axis=1)
    return discount, influence / ideal[:, None]
