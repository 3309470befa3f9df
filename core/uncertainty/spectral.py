"""Measures of the graph whose nodes are the samples and whose weights are their similarities.

Every function takes ``similarity``, shape (n, n), with values in [0, 1]. Its two directions are averaged and
its diagonal counts as 1. Lin, Trivedi, Sun 2023, arXiv 2305.19187, unless said otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from core.arrays import Floats

EIGENVALUE_CUT = 0.9
HEAT = 0.3
_REMEMBERED = 4_096  # graphs of each measure
_SLACK = 1e-9  # an eigenvalue of exactly 0.9 must not depend on rounding


_Measure = TypeVar("_Measure", bound=Callable[..., float])


def _once_per_graph(measure: _Measure) -> _Measure:
    """Measure equal graphs once: the samples of many questions all agree, or all but one do."""

    @lru_cache(maxsize=_REMEMBERED)
    def of_bytes(shape: tuple[int, ...], content: bytes, *options: float) -> float:
        return measure(np.frombuffer(content).reshape(shape), *options)

    @wraps(measure)
    def remembered(similarity: ArrayLike, *options: float, **named: Any) -> float:
        given = np.ascontiguousarray(similarity, dtype=np.float64)
        if named:
            return measure(given, *options, **named)
        return of_bytes(given.shape, given.tobytes(), *options)

    return remembered  # type: ignore[return-value]  # the same call, but for what is remembered


def eigenvalues(similarity: ArrayLike) -> Floats:
    """Eigenvalues of the normalised Laplacian, ascending, shape (n,): as many 0 as there are islands."""
    return np.asarray(np.linalg.eigvalsh(_laplacian(_graph(similarity))), dtype=np.float64)


@_once_per_graph
def sum_eigen(similarity: ArrayLike) -> float:
    """Soft number of meanings: the sum of max(0, 1 − λ) over the eigenvalues of the normalised Laplacian.

    In [1, n]: 1 when all agree, n when no two have anything in common. NaN without samples.

    >>> sum_eigen(np.eye(3))
    3.0
    """
    found = eigenvalues(similarity)
    return float(np.maximum(0.0, 1.0 - found).sum()) if found.size else math.nan


def degree_uncertainty(similarity: ArrayLike) -> float:
    """Mean dissimilarity of two samples, each also with itself: 1 − mean of the matrix.

    In [0, 1 − 1/n], higher = less agreement. NaN without samples.

    >>> degree_uncertainty([[1.0, 0.5], [0.5, 1.0]])
    0.25
    """
    graph = _graph(similarity)
    return float(1.0 - graph.mean()) if graph.size else math.nan


@_once_per_graph
def eccentricity(similarity: ArrayLike, cut: float = EIGENVALUE_CUT) -> float:
    """Spread of the answers in the space of the leading eigenvectors of the Laplacian.

    Eigenvectors with eigenvalues below ``cut`` span the space. In [0, √n), higher = less agreement; the root
    of the summed squares of `answer_eccentricity`.

    Two pairs that have nothing in common:

    >>> round(eccentricity(np.kron(np.eye(2), np.ones((2, 2)))), 4)
    1.0
    """
    found = answer_eccentricity(similarity, cut)
    return float(np.linalg.norm(found)) if found.size else math.nan


def answer_eccentricity(similarity: ArrayLike, cut: float = EIGENVALUE_CUT) -> Floats:
    """Return the distance of each answer from the centre in the space of `eccentricity`, shape (n,)."""
    graph = _graph(similarity)
    if not graph.size:
        return np.empty(0)
    values, vectors = np.linalg.eigh(_laplacian(graph))
    kept = vectors[:, values < cut - _SLACK]
    return np.asarray(np.linalg.norm(kept - kept.mean(axis=0), axis=1))


@_once_per_graph
def kernel_language_entropy(similarity: ArrayLike, heat: float = HEAT) -> float:
    """Entropy of the heat kernel of the graph, normalised to trace 1 (von Neumann entropy).

    ``heat`` is the time t of the kernel exp(−t L), with L = D − W. In (0, ln n], in nats: ln n when no two
    samples have anything in common; above 0 even when all agree. Nikitin et al. 2024, arXiv 2405.20003.

    >>> round(kernel_language_entropy(np.eye(4)), 4) == round(math.log(4), 4)
    True
    """
    graph = _graph(similarity)
    if not graph.size:
        return math.nan
    values, vectors = np.linalg.eigh(np.diag(graph.sum(axis=1)) - graph)
    kernel = (vectors * np.exp(-heat * values)) @ vectors.T
    scale = np.sqrt(np.diag(kernel))
    found = np.linalg.eigvalsh(kernel / np.outer(scale, scale) / len(kernel))
    return float(entr(np.maximum(0.0, found)).sum())


def _graph(similarity: ArrayLike) -> Floats:
    """Return the symmetric matrix of weights; ValueError where it is none."""
    given = np.array(similarity, dtype=np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(f"similarities must form a square matrix, got shape {given.shape}")
    if not ((given >= -_SLACK) & (given <= 1 + _SLACK)).all():
        raise ValueError("similarities must lie from 0 to 1")
    found = np.clip((given + given.T) / 2, 0.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found


def _laplacian(graph: Floats) -> Floats:
    root = 1.0 / np.sqrt(graph.sum(axis=1))
    return np.asarray(np.eye(len(graph)) - graph * np.outer(root, root))
