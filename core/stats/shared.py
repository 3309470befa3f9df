"""What the parts of `core.stats` share: known values, and what is undefined."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats

Interval = tuple[float, float]
UNDEFINED: Interval = (math.nan, math.nan)
CELLS = 5_000_000  # of one batch of permutations: bounds the memory, not the result


def resamples(asked: int, n: int) -> int:
    """Return how many resamples to draw of n rows: above 10,000 rows at most 200, as steady."""
    return asked if n <= 10_000 else min(asked, 200)


def known_values(values: ArrayLike) -> Floats:
    """Return the values that are not NaN."""
    found = np.asarray(values, dtype=np.float64)
    return found[~np.isnan(found)]


def known_pairs(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    """Return the values of two arrays of one shape where neither is NaN."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"arrays must have the same shape, not {first.shape} and {second.shape}")
    known = ~(np.isnan(first) | np.isnan(second))
    return first[known], second[known]
