"""Designs of experiments on k things: which to keep, masks of shape (n, k), True = kept, and orders."""

from __future__ import annotations

from itertools import product

import numpy as np

from core.arrays import Bools, Ints

_TEST_SEED = 1_000_003


def random_masks(k: int, n: int, seed: int = 0) -> Bools:
    """Draw n masks, each thing kept with probability ½ by itself, as ContextCite does."""
    return np.asarray(np.random.default_rng([seed, 0]).random((n, k)) < 0.5)


def subsets(k: int, budget: int, seed: int = 0) -> Bools:
    """Return all 2^k masks where that is no more than ``budget``, else as many random ones."""
    return all_masks(k) if 2**k <= budget else random_masks(k, budget, seed)


def held_out(k: int, n: int, seed: int = 0) -> Bools:
    """Draw n random masks that are not those of `random_masks` under the same seed, to test on."""
    return random_masks(k, n, seed + _TEST_SEED)


def all_masks(k: int) -> Bools:
    """Return all 2^k masks.

    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return np.array(list(product([False, True], repeat=k)), dtype=bool).reshape(2**k, k)


def one_left_out(k: int) -> Bools:
    """Return the mask that keeps all, then those without each thing."""
    return np.vstack([np.ones((1, k), dtype=bool), ~np.eye(k, dtype=bool)])


def chains(k: int, n: int, seed: int = 0) -> Bools:
    """Return masks that add things one by one, shape (n, k + 1, k): from none to all.

    Random orders in pairs, each followed by its reverse, which cancels much of the error of a mean over them
    (Mitchell et al. 2022, Sampling permutations for Shapley value estimation).
    """
    rng = np.random.default_rng([seed, 1])
    found: list[Ints] = []
    while len(found) < n:
        order = rng.permutation(k)
        found += [order, order[::-1]]
    return np.array([[np.isin(np.arange(k), order[:m]) for m in range(k + 1)] for order in found[:n]])


def latin_square(k: int, seed: int = 0) -> Ints:
    """Return k orders of k things in which each stands at each place once, shape (k, k).

    Row r has the thing at each place. The rows are rotations of one random order, in random turn.
    """
    rng = np.random.default_rng([seed, 2])
    first, turns = rng.permutation(k), rng.permutation(k)
    return np.array([np.roll(first, turn) for turn in turns], dtype=np.int64).reshape(k, k)
