"""Groups of answers that mean the same: greedy, first match, stop."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Bools, Ints

# Likeness from which two answers mean the same.
THRESHOLDS = {"content": 0.5, "rouge_l": 0.5, "cosine": 0.7}
ENTAILMENT_THRESHOLD = 0.5
_LOOSE = 100  # questions whose groups are counted in many orders at once


class OrderDependence(NamedTuple):
    """How the number of groups depends on the order of the samples.

    The number of groups in the order ``given``, and the fewest and most in any of the orders tried.
    """

    given: Any
    low: Any
    high: Any


def greedy_clusters(equivalent: ArrayLike) -> Ints:
    """Group answers: each joins the first group whose first member it is equivalent to, or opens a new one.

    ``equivalent``, (n, n), or (..., n, n) of many questions at once: whether two answers mean the same,
    symmetric. Returns group numbers from 0 in order of appearance, (..., n).

    The third answer is equivalent to both of the first two, which differ; the first match wins:

    >>> greedy_clusters([[1, 0, 1], [0, 1, 1], [1, 1, 1]]).tolist()
    [0, 1, 0]
    """
    same = _square(equivalent)
    found = np.zeros(same.shape[:-1], dtype=np.int64)
    first = np.zeros(same.shape[:-1], dtype=bool)
    for i in range(same.shape[-1]):
        match = same[..., i, :] & first
        joins = match.any(axis=-1)
        joined = np.take_along_axis(found, match.argmax(axis=-1)[..., None], axis=-1)[..., 0]
        found[..., i] = np.where(joins, joined, first.sum(axis=-1))
        first[..., i] = ~joins
    return found


def clusters_of_equals(keys: Sequence[Hashable]) -> Ints:
    """Group equal keys, such as the words of each answer; numbers from 0 in order of appearance."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)


def both_ways(entailment: ArrayLike, threshold: float = ENTAILMENT_THRESHOLD) -> Bools:
    """Whether two answers entail each other: ``entailment[i, j]`` is the probability that i entails j."""
    given = np.asarray(entailment, dtype=np.float64)
    return np.asarray(np.minimum(given, np.swapaxes(given, -1, -2)) >= threshold)


def order_dependence(equivalent: ArrayLike, n_orders: int = 200, seed: int = 0) -> OrderDependence:
    """Count the groups in shuffled orders: the order matters where equivalence is not transitive.

    Same ``seed``, same random orders; ``equivalent`` as for `greedy_clusters`, the counts of many questions
    are arrays.

    A chain, where only neighbours are equivalent, is one group or two:

    >>> tuple(order_dependence([[1, 1, 0], [1, 1, 1], [0, 1, 1]]))
    (2, 1, 2)
    """
    same = _square(equivalent)
    n = same.shape[-1]
    stack = same.reshape(-1, n, n)
    given = greedy_clusters(stack).max(axis=-1, initial=-1) + 1
    low, high = given.copy(), given.copy()
    loose = np.flatnonzero((((stack.astype(np.float32) @ stack) > 0) & ~stack).any(axis=(1, 2)))
    for some in np.array_split(loose, -(-len(loose) // _LOOSE) or 1):
        counts = _counts(stack[some], _orders(n, n_orders, seed))
        low[some] = np.minimum(given[some], counts.min(axis=-1))
        high[some] = np.maximum(given[some], counts.max(axis=-1))
    found = (given, low, high)
    if same.ndim == 2:
        return OrderDependence(*(int(one[0]) for one in found))
    return OrderDependence(*(one.reshape(same.shape[:-2]) for one in found))


def _counts(same: Bools, orders: Ints) -> Ints:
    """Return how many groups each question has in each order, (questions, orders).

    All orders at once, place by place: an answer opens a group where no first member is equivalent to it.
    """
    every = np.arange(orders.shape[1])
    first = np.zeros((len(same), len(every), same.shape[-1]), dtype=bool)
    for answer in orders:
        first[:, every, answer] = ~(same[:, answer] & first).any(axis=-1)
    return first.sum(axis=-1)


@lru_cache(maxsize=64)
def _orders(n: int, n_orders: int, seed: int) -> Ints:
    """Return random orders of n answers as columns, shape (n, n_orders): those of every question with n."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(n) for _ in range(n_orders)], axis=1)


def _square(equivalent: ArrayLike) -> Bools:
    same = np.asarray(equivalent, dtype=bool)
    if same.ndim < 2 or same.shape[-2] != same.shape[-1]:
        raise ValueError(f"equivalence must be a square matrix, got shape {same.shape}")
    return same
