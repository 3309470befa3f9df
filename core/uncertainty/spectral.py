"""Measures of the graph whose nodes are the samples and whose weights are their similarities.

Every function takes ``similarity``, shape (n, n) or, of many questions at once, (..., n, n), with values in
[0, 1]; it returns one value per graph. The two directions are averaged and the diagonal counts as 1. Lin,
Trivedi, Sun 2023, arXiv 2305.19187, unless said otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from core.arrays import Floats, dot

EIGENVALUE_CUT = 0.9
HEAT = 0.3
_SLACK = 1e-9  # an eigenvalue of exactly 0.9 must not depend on rounding


_Measure = TypeVar("_Measure", bound=Callable[..., Any])


def _once_per_graph(measure: _Measure) -> _Measure:
    """Measure equal graphs once: the samples of many questions all agree, or all but one do."""

    @wraps(measure)
    def of_different(similarity: ArrayLike, *options: float) -> Any:
        given = np.ascontiguousarray(similarity, dtype=np.float64)
        if given.ndim < 3:
            return measure(given, *options)
        stack = given.reshape(-1, *given.shape[-2:])
        place: dict[bytes, int] = {}
        which = [place.setdefault(graph.tobytes(), len(place)) for graph in stack]
        _, first = np.unique(which, return_index=True)
        found = np.asarray(measure(stack[first], *options))[which]
        return found.reshape(*given.shape[:-2], *found.shape[1:])

    return of_different  # type: ignore[return-value]  # the same call


def eigenvalues(similarity: ArrayLike) -> Floats:
    """Eigenvalues of the normalised Laplacian, ascending, shape (..., n): as many 0 as there are islands."""
    return np.asarray(np.linalg.eigvalsh(_laplacian(_graph(similarity))), dtype=np.float64)


@_once_per_graph
def sum_eigen(similarity: ArrayLike) -> Any:
    """Soft number of meanings: the sum of max(0, 1 − λ) over the eigenvalues of the normalised Laplacian.

    In [1, n]: 1 when all agree, n when no two have anything in common. NaN without samples.

    >>> float(sum_eigen(np.eye(3)))
    3.0
    """
    found = eigenvalues(similarity)
    return np.maximum(0.0, 1.0 - found).sum(axis=-1) if found.size else _undefined(found)


def degree_uncertainty(similarity: ArrayLike) -> Any:
    """Mean dissimilarity of two samples, each also with itself: 1 − mean of the matrix.

    In [0, 1 − 1/n], higher = less agreement. NaN without samples.

    >>> float(degree_uncertainty([[1.0, 0.5], [0.5, 1.0]]))
    0.25
    """
    graph = _graph(similarity)
    flat = graph.reshape(*graph.shape[:-2], -1)
    return 1.0 - flat.mean(axis=-1) if graph.size else _undefined(flat)


@_once_per_graph
def eccentricity(similarity: ArrayLike, cut: float = EIGENVALUE_CUT) -> Any:
    """Spread of the answers in the space of the leading eigenvectors of the Laplacian.

    Eigenvectors with eigenvalues below ``cut`` span the space. In [0, √n), higher = less agreement; the root
    of the summed squares of `answer_eccentricity`.

    Two pairs that have nothing in common:

    >>> round(float(eccentricity(np.kron(np.eye(2), np.ones((2, 2))))), 4)
    1.0
    """
    found = answer_eccentricity(similarity, cut)
    return np.sqrt(dot(found, found)) if found.size else _undefined(found)


@_once_per_graph
def answer_eccentricity(similarity: ArrayLike, cut: float = EIGENVALUE_CUT) -> Floats:
    """Return the distance of each answer from the centre in the space of `eccentricity`, shape (..., n)."""
    graph = _graph(similarity)
    if not graph.size:
        return np.empty(graph.shape[:-1])
    values, vectors = np.linalg.eigh(_laplacian(graph))
    axes = np.ascontiguousarray(np.swapaxes(vectors, -1, -2))
    axes[values >= cut - _SLACK] = 0.0
    return np.asarray(np.linalg.norm(axes - axes.mean(axis=-1, keepdims=True), axis=-2))


@_once_per_graph
def kernel_language_entropy(similarity: ArrayLike, heat: float = HEAT) -> Any:
    """Entropy of the heat kernel of the graph, normalised to trace 1 (von Neumann entropy).

    ``heat`` is the time t of the kernel exp(−t L), with L = D − W. In (0, ln n], in nats: ln n when no two
    samples have anything in common; above 0 even when all agree. Nikitin et al. 2024, arXiv 2405.20003.

    >>> round(float(kernel_language_entropy(np.eye(4))), 4) == round(math.log(4), 4)
    True
    """
    graph = _graph(similarity)
    if not graph.size:
        return _undefined(graph.sum(axis=-1))
    degree = np.eye(graph.shape[-1]) * graph.sum(axis=-1)[..., None, :]
    values, vectors = np.linalg.eigh(degree - graph)
    kernel = (vectors * np.exp(-heat * values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    scale = np.sqrt(np.diagonal(kernel, axis1=-2, axis2=-1))
    found = np.linalg.eigvalsh(kernel / _products(scale) / kernel.shape[-1])
    return entr(np.maximum(0.0, found)).sum(axis=-1)


def _undefined(found: Floats) -> Any:
    """Return NaN for each graph of no samples."""
    return np.full(found.shape[:-1], math.nan)[()]


def _graph(similarity: ArrayLike) -> Floats:
    """Return the symmetric matrices of weights; ValueError where one is none."""
    given = np.array(similarity, dtype=np.float64)
    if given.ndim < 2 or given.shape[-2] != given.shape[-1]:
        raise ValueError(f"similarities must form a square matrix, got shape {given.shape}")
    if not ((given >= -_SLACK) & (given <= 1 + _SLACK)).all():
        raise ValueError("similarities must lie from 0 to 1")
    found = np.clip((given + np.swapaxes(given, -1, -2)) / 2, 0.0, 1.0)
    every = np.arange(found.shape[-1])
    found[..., every, every] = 1.0
    return found


def _laplacian(graph: Floats) -> Floats:
    root = 1.0 / np.sqrt(graph.sum(axis=-1))
    return np.asarray(np.eye(graph.shape[-1]) - graph * _products(root))


def _products(values: Floats) -> Floats:
    """Return the product of every two values of a graph, shape (..., n, n)."""
    return np.asarray(values[..., :, None] * values[..., None, :])
