"""Entropy over groups of answers that mean the same, in nats."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from core.arrays import Floats


def number_of_semantic_sets(cluster_ids: ArrayLike) -> int:
    """Return how many different meanings the samples have.

    Examples
    --------
    >>> number_of_semantic_sets([0, 1, 0, 2])
    3
    """
    return int(np.unique(np.asarray(cluster_ids)).size)


def discrete_semantic_entropy(cluster_ids: ArrayLike) -> float:
    """Entropy of the share of samples in each group (Farquhar et al. 2024).

    Parameters
    ----------
    cluster_ids : array_like of int, shape (n,)
        The group of each sample.

    Returns
    -------
    float
        In [0, ln n], higher = more meanings, more evenly. NaN without samples.

    Examples
    --------
    >>> round(discrete_semantic_entropy([0, 0, 1, 1]), 4)
    0.6931
    """
    _, size = np.unique(np.asarray(cluster_ids), return_counts=True)
    return float(entr(size / size.sum()).sum()) if size.size else math.nan


def semantic_entropy(cluster_ids: ArrayLike, logprobs: ArrayLike) -> float:
    """Entropy over groups weighted by the probability of their answers (Rao-Blackwellised).

    ``cluster_ids`` and ``logprobs``, (n,): the group of each sample, and its log-probability divided by its
    number of tokens, in nats. In [0, ln n], higher = less certain; NaN without samples or where a
    log-probability is missing. Kuhn, Gal, Farquhar 2023, arXiv 2302.09664; Farquhar et al. 2024, Nature 630.

    Examples
    --------
    Three to one in probability:

    >>> round(semantic_entropy([0, 1], [math.log(0.3), math.log(0.1)]), 4)
    0.5623
    """
    mass = _log_mass(cluster_ids, logprobs)
    return float(entr(np.exp(mass - _log_sum(mass))).sum()) if _usable(mass) else math.nan


def kuhn_entropy(cluster_ids: ArrayLike, logprobs: ArrayLike) -> float:
    """Mean over groups of minus the log of their summed probability, not normalised.

    The variant of TruthTorchLM, whose figures were published under the name semantic entropy; takes what
    `semantic_entropy` does. Any number, also below 0, as the sampled probabilities of a group may sum to more
    than 1; higher = less certain; NaN likewise.

    Examples
    --------
    >>> round(kuhn_entropy([0, 1], [math.log(0.3), math.log(0.1)]), 4)
    1.7533
    """
    mass = _log_mass(cluster_ids, logprobs)
    return float(-mass.mean()) if _usable(mass) else math.nan


def _log_mass(cluster_ids: ArrayLike, logprobs: ArrayLike) -> Floats:
    """Return the log of the summed probability of each group."""
    ids, given = np.asarray(cluster_ids), np.asarray(logprobs, dtype=np.float64)
    if ids.shape != given.shape:
        raise ValueError(f"groups and log-probabilities differ in shape: {ids.shape} and {given.shape}")
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN and infinity have no mass that can be used
        return np.array([_log_sum(given[ids == number]) for number in np.unique(ids)])


def _log_sum(logs: Floats) -> np.float64:
    """Return what scipy's `logsumexp` does, whose checks cost several times that."""
    if len(logs) == 1:
        return np.float64(logs[0] + 0.0)
    largest = logs == logs.max()
    n, top = largest.sum(), logs.max()
    return np.log1p(np.exp(np.where(largest, -np.inf, logs) - top).sum() / n) + np.log(n) + top


def _usable(mass: Floats) -> bool:
    return bool(mass.size and np.isfinite(mass).all())
