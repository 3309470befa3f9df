"""Spread of the samples in the space of their embeddings."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.uncertainty.similarity import unit

Variant = Literal["mean_squared", "mean_distance", "std_distance"]


def centroid_distances(embeddings: ArrayLike) -> Floats:
    """Distance of every embedding, at length 1, from the mean of all, shape (n,)."""
    rows = unit(embeddings)
    return np.linalg.norm(rows - rows.mean(axis=0), axis=1) if len(rows) else np.empty(0)


def embedding_variance(embeddings: ArrayLike, variant: Variant = "mean_squared") -> float:
    """Spread of the samples about their centroid.

    ``embeddings``, (n, d), are brought to length 1. ``variant``: mean of the squared distances to the
    centroid; of the distances; or their standard deviation, which is 0 for any two answers and for any that
    are equally far apart, so do not rely on it. In [0, 1], higher = less agreement; NaN without samples.

    Examples
    --------
    >>> opposite = [[1.0, 0.0], [-1.0, 0.0]]
    >>> [embedding_variance(opposite, v) for v in ("mean_squared", "mean_distance", "std_distance")]
    [1.0, 1.0, 0.0]
    """
    distance = centroid_distances(embeddings)
    if not distance.size:
        return math.nan
    if variant == "std_distance":
        return float(distance.std())
    return float(min(1.0, (distance if variant == "mean_distance" else distance**2).mean()))


def consensus(embeddings: ArrayLike) -> int:
    """Return the row of the sample nearest the centroid, the first of equals.

    ValueError without samples.

    Examples
    --------
    >>> consensus([[0.0, 1.0], [1.0, 0.0], [1.0, 0.1]])
    2
    """
    distance = centroid_distances(embeddings)
    if not distance.size:
        raise ValueError("no samples were given; a consensus needs at least one")
    # Equal answers may differ in the last digits of their embeddings.
    return int(np.argmax(distance <= distance.min() + 1e-9))
