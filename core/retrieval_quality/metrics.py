"""Retrieval metrics where the relevant passages are known: pure functions on arrays.

The functions on one question take its passages' relevance in retrieval order. The ``_within`` functions do
the same for many questions at once, in one pass: ``group`` gives each row's question as a number from 0,
``place`` its place in the retriever's order from 1. There is one implementation of each formula.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Bools, Floats, Ints


def hit_at_k(relevant: ArrayLike, k: int) -> float:
    """Tell whether at least one of the first k passages is relevant.

    ValueError where k is below 1, or ``relevant`` is not one row. Also called success at k.

    Parameters
    ----------
    relevant : array of bool, shape (n,)
        Relevance of the retrieved passages, in retrieval order.
    k : int
        Depth, at least 1; passages that were not retrieved are not found.

    Returns
    -------
    float
        1 or 0; higher is better. A question without any relevant passage counts as a miss: leave it out.

    Examples
    --------
    >>> hit_at_k([False, True, False], 1), hit_at_k([False, True, False], 2)
    (0.0, 1.0)
    """
    rows = _one_question(relevant, k)
    return float(found_within(*rows, 1, k)[0] > 0)


def recall_at_k(relevant: ArrayLike, k: int, n_relevant: int | None) -> float | None:
    """Return the share of all relevant passages that stand among the first k.

    Raises ValueError as `hit_at_k` does, and where more passages are relevant than ``n_relevant``. Manning,
    Raghavan, Schütze 2008, chapter 8.

    Parameters
    ----------
    relevant, k
        As for `hit_at_k`.
    n_relevant : int or None
        How many relevant passages the whole collection holds, retrieved or not.

    Returns
    -------
    float or None
        In [0, 1], higher is better; None where ``n_relevant`` is 0 or None. Below 1 even for a perfect order
        where k is smaller than ``n_relevant``.

    Examples
    --------
    >>> recall_at_k([False, True, True], 2, n_relevant=4)
    0.25
    """
    rows = _one_question(relevant, k)
    if not _known(rows[0], n_relevant):
        return None
    return float(found_within(*rows, 1, k)[0]) / int(n_relevant or 0)


def reciprocal_rank(relevant: ArrayLike) -> float:
    """Return 1 / place of the first relevant passage.

    ``relevant`` as for `hit_at_k`. In (0, 1], higher is better; 0 when no relevant passage was retrieved, so
    its mean over questions, MRR (Voorhees 1999, TREC-8 question answering), depends on how many were.

    Examples
    --------
    >>> reciprocal_rank([False, True, True]), reciprocal_rank([False, False])
    (0.5, 0.0)
    """
    first = first_within(*_one_question(relevant, 1), 1)[0]
    return 0.0 if np.isnan(first) else float(1 / first)


def ndcg_at_k(relevant: ArrayLike, k: int, n_relevant: int | None) -> float | None:
    """Return the discounted gain of the first k passages as a share of the best one possible.

    Gains are 1 or 0, the discount is ``1 / log2(place + 1)``, and the ideal order has all of the
    ``min(n_relevant, k)`` passages in front. Takes, raises and leaves undefined what `recall_at_k` does. In
    [0, 1], higher is better. Järvelin, Kekäläinen 2002 (TOIS 20:4), with the discount of Burges et al. 2005.

    Examples
    --------
    >>> round(ndcg_at_k([False, True], 2, n_relevant=1), 4)  # 1 / log2(3)
    0.6309
    """
    rows = _one_question(relevant, k)
    if not _known(rows[0], n_relevant):
        return None
    ideal = ideal_gain(np.array([n_relevant], dtype=np.float64), k)
    return float((gain_within(*rows, 1, k) / ideal)[0])


def found_within(relevant: Bools, place: Ints, group: Ints, n_groups: int, k: int) -> Floats:
    """Count the relevant passages among the first k of each group."""
    return np.bincount(group, relevant & (place <= k), n_groups).astype(np.float64)


def first_within(relevant: Bools, place: Ints, group: Ints, n_groups: int) -> Floats:
    """Return the place of the first relevant passage of each group; NaN where there is none."""
    first = np.full(n_groups, np.inf)
    np.minimum.at(first, group[relevant], place[relevant].astype(np.float64))
    return np.where(np.isinf(first), np.nan, first)


def gain_within(relevant: Bools, place: Ints, group: Ints, n_groups: int, k: int) -> Floats:
    """Return the discounted gain of the first k passages of each group."""
    gain = np.where(relevant & (place <= k), 1 / np.log2(place + 1.0), 0.0)
    return np.bincount(group, gain, n_groups).astype(np.float64)


def ideal_gain(n_relevant: Floats, k: int) -> Floats:
    """Return the best discounted gain at depth k for each number of relevant passages; NaN for 0 and NaN."""
    sums = np.cumsum(1 / np.log2(np.arange(2, k + 2)))
    usable = n_relevant >= 1  # false for NaN
    at = np.minimum(np.where(usable, n_relevant, 1), k).astype(np.int64)
    return np.where(usable, sums[at - 1], np.nan)


def hit_by_chance(n_passages: Ints, n_found: Ints, k: int) -> Floats:
    """Return how often a random order of each group's passages has a relevant one among the first k."""
    return _of_pairs(n_passages, n_found, lambda none_yet: 1 - none_yet[min(k, none_yet.size - 1)])


def reciprocal_by_chance(n_passages: Ints, n_found: Ints) -> Floats:
    """Return the mean over random orders of 1 / place of the first relevant passage; 0 without one."""
    return _of_pairs(
        n_passages,
        n_found,
        lambda none_yet: float((-np.diff(none_yet) / np.arange(1, none_yet.size)).sum()),
    )


def recall_by_chance(n_passages: Ints, n_found: Ints, n_relevant: Floats, k: int) -> Floats:
    """Return the mean recall of random orders: each passage is as likely among the first k; 0 without any."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(n_found * np.minimum(k, n_passages) / np.maximum(n_passages, 1) / n_relevant)


def ndcg_by_chance(n_passages: Ints, n_found: Ints, n_relevant: Floats, k: int) -> Floats:
    """Return the mean nDCG of random orders: each passage is as likely on every place; 0 without any."""
    places = np.maximum(n_passages, 1)
    return np.asarray(n_found / places * ideal_gain(places, k) / ideal_gain(n_relevant, k))


def _of_pairs(n_passages: Ints, n_found: Ints, value: Callable[[Floats], float]) -> Floats:
    """Return a value of the probabilities that none of the first 0, 1, ... passages is relevant."""
    pairs, which = np.unique(np.stack([n_passages, n_found], axis=1), axis=0, return_inverse=True)
    values = []
    for n, found in pairs.tolist():
        left = np.arange(n, 0, -1, dtype=np.float64)
        none_next = np.append(1.0, (left - found) / left)  # once it is 0, the product stays 0
        values.append(value(np.asarray(np.cumprod(none_next), dtype=np.float64)))
    return np.array(values, dtype=np.float64)[which.ravel()]


def _one_question(relevant: ArrayLike, k: int) -> tuple[Bools, Ints, Ints]:
    flags = np.asarray(relevant, dtype=bool)
    if flags.ndim != 1:
        raise ValueError(f"relevant must be one row of true and false, got the shape {flags.shape}.")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}.")
    return flags, np.arange(1, flags.size + 1), np.zeros(flags.size, dtype=np.int64)


def _known(relevant: Bools, n_relevant: int | None) -> bool:
    if n_relevant is not None and n_relevant < relevant.sum():
        raise ValueError(f"{relevant.sum()} passages are relevant, but n_relevant is {n_relevant}.")
    return bool(n_relevant)
