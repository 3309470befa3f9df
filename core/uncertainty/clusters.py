"""Groups of answers that mean the same: greedy, first match, stop."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Bools, Ints

# Likeness from which two answers mean the same.
THRESHOLDS = {"content": 0.5, "rouge_l": 0.5, "cosine": 0.7}
ENTAILMENT_THRESHOLD = 0.5


class OrderDependence(NamedTuple):
    """How the number of groups depends on the order of the samples.

    The number of groups in the order ``given``, and the fewest and most in any of the orders tried.
    """

    given: int
    low: int
    high: int


def greedy_clusters(equivalent: ArrayLike) -> Ints:
    """Group answers: each joins the first group whose first member it is equivalent to, or opens a new one.

    ``equivalent``, (n, n): whether two answers mean the same, symmetric. Returns group numbers from 0 in
    order of appearance, (n,).

    The third answer is equivalent to both of the first two, which differ; the first match wins:

    >>> greedy_clusters([[1, 0, 1], [0, 1, 1], [1, 1, 1]]).tolist()
    [0, 1, 0]
    """
    same = _square(equivalent)
    firsts: list[int] = []
    found = np.empty(len(same), dtype=np.int64)
    for i, row in enumerate(same.tolist()):
        match = next((number for number, first in enumerate(firsts) if row[first]), len(firsts))
        if match == len(firsts):
            firsts.append(i)
        found[i] = match
    return found


def clusters_of_equals(keys: Sequence[Hashable]) -> Ints:
    """Group equal keys, such as the words of each answer; numbers from 0 in order of appearance."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)


def both_ways(entailment: ArrayLike, threshold: float = ENTAILMENT_THRESHOLD) -> Bools:
    """Whether two answers entail each other: ``entailment[i, j]`` is the probability that i entails j."""
    given = np.asarray(entailment, dtype=np.float64)
    return np.asarray(np.minimum(given, given.T) >= threshold)


def order_dependence(equivalent: ArrayLike, n_orders: int = 200, seed: int = 0) -> OrderDependence:
    """Count the groups in shuffled orders: the order matters where equivalence is not transitive.

    Same ``seed``, same random orders; ``equivalent`` as for `greedy_clusters`.

    A chain, where only neighbours are equivalent, is one group or two:

    >>> tuple(order_dependence([[1, 1, 0], [1, 1, 1], [0, 1, 1]]))
    (2, 1, 2)
    """
    same = _square(equivalent)
    given = int(greedy_clusters(same).max(initial=-1)) + 1
    if not np.any((same.astype(int) @ same > 0) & ~same):  # transitive
        return OrderDependence(given, given, given)
    # All orders at once, place by place: an answer opens a group where no first member is equivalent to it.
    first, every = np.zeros((n_orders, len(same)), dtype=bool), np.arange(n_orders)
    for answer in _orders(len(same), n_orders, seed):
        first[every, answer] = ~(same[answer] & first).any(axis=1)
    counts = first.sum(axis=1)
    return OrderDependence(given, int(min(given, counts.min())), int(max(given, counts.max())))


@lru_cache(maxsize=64)
def _orders(n: int, n_orders: int, seed: int) -> Ints:
    """Return random orders of n answers as columns, shape (n, n_orders): those of every question with n."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(n) for _ in range(n_orders)], axis=1)


def _square(equivalent: ArrayLike) -> Bools:
    same = np.asarray(equivalent, dtype=bool)
    if same.ndim != 2 or same.shape[0] != same.shape[1]:
        raise ValueError(f"equivalence must be a square matrix, got shape {same.shape}")
    return same
