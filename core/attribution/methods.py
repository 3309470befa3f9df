"""From the scores of masks to a score of each passage: one table of methods.

A *game* maps masks (which passages are kept) to the score of the answer. Two questions, two kinds of methods:
what does leaving passages out do (``predict``), and how is the credit shared among them (``share``)? They
differ wherever passages hold the same evidence, so a method is judged by its own question only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from core.arrays import Bools, Floats
from core.errors import InputError
from core.stats import lasso
from core.stats.designs import all_masks, chains, one_left_out, subsets

PREDICT, SHARE = "predict", "share"
LEAVE_ONE_OUT, SURROGATE, EXACT = "leave_one_out", "surrogate", "exact"
SHAPLEY, BANZHAF = "shapley", "banzhaf"
WITH_PAIRS = 48  # fewer masks tell too little of pairs of passages
MOST_EXACT = 10  # passages: 1,024 masks
_ALPHA = 0.01  # of the Lasso, as ContextCite has it


@dataclass(frozen=True, slots=True)
class Fit:
    """What a method makes of masks and their scores.

    ``scores``, (k,), in the unit of the game, higher = the passage helped more. ``pairs``, (k, k), symmetric:
    how much more (or less, below 0) two passages do together than the sum of both; 0 where a method or the
    number of masks does not look for them. ``interval``, (k, 2), 95 %; NaN where nothing tells.
    """

    scores: Floats
    pairs: Floats
    interval: Floats

    def predict(self, masks: Bools) -> Floats:
        """Return what the method expects of masks, up to a constant, shape (n,)."""
        z = masks - 0.5
        return np.asarray(z @ self.scores + np.einsum("ni,ij,nj->n", z, np.triu(self.pairs, 1), z))


Fitting = Callable[[Bools, Floats, float], Fit]


@dataclass(frozen=True, slots=True)
class Method:
    """A way to score passages: the masks that it needs, and what it makes of them.

    ``masks(k, budget, seed)`` are those to measure first; ``fit(masks, values, unit)`` makes the scores,
    where ``unit`` divides the values for a penalty that must not depend on the answer's length; NaN values
    are failed measurements. ``random`` tells whether its masks are drawn uniformly, so
    that more of them may follow.
    """

    name: str
    title: str
    answers: str
    meaning: str
    masks: Callable[[int, int, int], Bools]
    fit: Fitting
    random: bool = False

    def __str__(self) -> str:
        return self.name


def leave_one_out(masks: Bools, values: Floats, _unit: float = 1.0) -> Fit:
    """Score of all passages minus the score without this one; k + 1 calls.

    Koh & Liang 2017 and many before. It sees nothing of a passage whose evidence another one holds too.

    >>> leave_one_out(all_masks(2), np.array([0.0, 1.0, 1.0, 1.0])).scores.tolist()  # either is enough
    [0.0, 0.0]
    """
    k, known = masks.shape[1], _known(masks, values)
    whole = known.get((True,) * k, math.nan)
    scores = np.array([whole - known.get(tuple(row), math.nan) for row in ~np.eye(k, dtype=bool)])
    return Fit(scores, np.zeros((k, k)), np.full((k, 2), np.nan))


def surrogate(masks: Bools, values: Floats, unit: float = 1.0) -> Fit:
    """Sparse linear model of the scores of uniform random masks; 32 calls, or as many as there are.

    Lasso (α = 0.01) on standardised columns and values divided by ``unit``, the number of the answer's
    tokens: ContextCite (Cohen-Wang et al. 2024, arXiv 2409.00729, algorithm 1). From 48 masks on with pairs
    of passages, and α by cross-validation. Intervals as `banzhaf`, wide enough for the score.
    """
    masks, values = _measured(masks, values)
    n, k = masks.shape
    if n < WITH_PAIRS or k < 2:
        scores, pairs = lasso(masks.astype(float), values / unit, _ALPHA) * unit, np.zeros((k, k))
    else:
        z, upper = masks - 0.5, np.triu_indices(k, 1)
        both = z[:, upper[0]] * z[:, upper[1]]
        found = lasso(np.hstack([z, both]), values / unit) * unit
        scores, pairs = found[:k], np.zeros((k, k))
        pairs[upper] = found[k:]
        pairs += pairs.T
    # The penalty draws scores towards 0, sometimes out of the interval of what it penalises.
    low, high = _least_squares(masks, values)[1].T
    return Fit(scores, pairs, np.column_stack([np.minimum(low, scores), np.maximum(high, scores)]))


def banzhaf(masks: Bools, values: Floats, _unit: float = 1.0) -> Fit:
    """Mean difference that a passage makes to random subsets of the others, by least squares; 32 calls.

    The Banzhaf value, of which regression on uniform masks is the unbiased estimate of least variance among
    linear ones (Hammer & Holzman 1992; Wang & Jia 2023). Intervals by Student's t.
    """
    masks, values = _measured(masks, values)
    scores, interval = _least_squares(masks, values)
    k = masks.shape[1]
    return Fit(scores, np.zeros((k, k)), interval)


def exact(masks: Bools, values: Floats, _unit: float = 1.0) -> Fit:
    """Banzhaf value and interaction of every pair from all 2^k masks: no sampling, no interval.

    >>> found = exact(all_masks(2), np.array([0.0, 0.0, 0.0, 1.0]))  # both are needed
    >>> found.scores.tolist(), found.pairs[0, 1].item()
    ([0.5, 0.5], 1.0)
    """
    if np.isnan(values).any():
        return banzhaf(masks, values)  # some masks are missing: an estimate, with its interval
    k = masks.shape[1]
    sign = np.where(masks, 1.0, -1.0)
    scores = sign.T @ values * 2 / len(masks)
    pairs = (sign * values[:, None]).T @ sign * 4 / len(masks)
    np.fill_diagonal(pairs, 0.0)
    return Fit(scores, pairs.reshape(k, k), np.repeat(scores[:, None], 2, axis=1))


def shapley(masks: Bools, values: Floats, _unit: float = 1.0) -> Fit:
    """Shapley value: a passage's mean contribution when passages arrive in random order.

    The only way to share the whole gain of all passages that treats equals equally (Shapley 1953). With all
    2^k masks the closed form; else the mean over the orders that masks were drawn along (`chains`), with an
    interval over pairs of orders. They add up to the score of all minus that of none.

    >>> shapley(all_masks(2), np.array([0.0, 1.0, 1.0, 1.0])).scores.tolist()  # either is enough
    [0.5, 0.5]
    """
    n, k = masks.shape
    if n == 2**k and len(_known(masks, values)) == n:
        size = masks.sum(axis=1)
        with_it = np.array([1 / (k * math.comb(k - 1, m - 1)) if m else 0.0 for m in range(k + 1)])
        without = np.array([1 / (k * math.comb(k - 1, m)) if m < k else 0.0 for m in range(k + 1)])
        weight = np.where(masks, with_it[size][:, None], -without[size][:, None])
        scores = values @ weight
        return Fit(scores, np.zeros((k, k)), np.repeat(scores[:, None], 2, axis=1))
    gains = _gains(masks, values)
    halves = gains.reshape(-1, 2, k).mean(axis=1)  # an order and its reverse
    gains, halves = (part[~np.isnan(part).any(axis=1)] for part in (gains, halves))
    if not len(gains):
        return Fit(np.full(k, np.nan), np.zeros((k, k)), np.full((k, 2), np.nan))
    scores, interval = gains.mean(axis=0), np.full((k, 2), np.nan)
    if len(halves) > 1:
        width = stdtrit(len(halves) - 1, 0.975) * halves.std(axis=0, ddof=1) / math.sqrt(len(halves))
        interval = np.column_stack([scores - width, scores + width])
    return Fit(scores, np.zeros((k, k)), interval)


def _gains(masks: Bools, values: Floats) -> Floats:
    """Return each passage's contribution in each chain, shape (chains, k); a new chain begins with none."""
    k = masks.shape[1]
    steps = values.reshape(-1, k + 1)
    came = np.diff(masks.reshape(-1, k + 1, k).astype(np.int8), axis=1).argmax(axis=2)
    gains = np.empty((len(steps), k))
    np.put_along_axis(gains, came, np.diff(steps, axis=1), axis=1)
    return gains


def _measured(masks: Bools, values: Floats) -> tuple[Bools, Floats]:
    known = ~np.isnan(values)
    return masks[known], values[known]


def _known(masks: Bools, values: Floats) -> dict[tuple[bool, ...], float]:
    return {tuple(mask): value for mask, value in zip(masks.tolist(), values.tolist(), strict=True)}


def _least_squares(masks: Bools, values: Floats) -> tuple[Floats, Floats]:
    """Return the effect of each passage, and its 95 % interval; NaN where the masks do not tell."""
    n, k = masks.shape
    if not n:
        return np.full(k, np.nan), np.full((k, 2), np.nan)
    x = np.column_stack([np.ones(n), masks - 0.5])
    inverse = np.linalg.pinv(x.T @ x)
    beta = inverse @ x.T @ values
    free = n - k - 1
    interval = np.full((k, 2), np.nan)
    if free > 0 and np.linalg.matrix_rank(x) == k + 1:
        error = np.sqrt(np.sum((values - x @ beta) ** 2) / free * np.diag(inverse)[1:])
        width = stdtrit(free, 0.975) * error
        interval = np.column_stack([beta[1:] - width, beta[1:] + width])
    return beta[1:], interval


def _orders(k: int, budget: int, seed: int) -> Bools:
    """Return chains in pairs: the two ends, none and all, cost a call once; all masks where that is less."""
    pairs = max(1, (budget - 2) // max(1, 2 * (k - 1)))
    if 2**k <= budget:
        return all_masks(k)
    return chains(k, 2 * pairs, seed).reshape(-1, k)


def _every(k: int, _budget: int, _seed: int) -> Bools:
    if k > MOST_EXACT:
        raise InputError(f"method exact needs at most {MOST_EXACT} passages, got {k}: take the surrogate.")
    return all_masks(k)


METHODS: dict[str, Method] = {
    one.name: one
    for one in (
        Method(LEAVE_ONE_OUT, "Leave one out", PREDICT,
               "Each passage left out once. Blind to evidence that another passage holds too.",
               lambda k, _budget, _seed: one_left_out(k), leave_one_out),
        Method(SURROGATE, "Surrogate", PREDICT,
               "A sparse linear model of random subsets, as ContextCite; with pairs from 48 subsets on.",
               subsets, surrogate, random=True),
        Method(EXACT, "All subsets", PREDICT, "Every subset measured once.", _every, exact),
        Method(SHAPLEY, "Shapley", SHARE,
               "Shares the gain of all passages; those with the same evidence share its credit.",
               _orders, shapley),
        Method(BANZHAF, "Banzhaf", PREDICT,
               "The mean difference that a passage makes to random subsets of the others.",
               subsets, banzhaf, random=True),
    )
}  # fmt: skip


def method_of(name: str) -> Method:
    """Return a method by name; InputError lists them."""
    if name not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, got {name!r}.")
    return METHODS[name]
