"""Yes, no and unknown as 1, 0 and NaN, and means that count what they leave out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.claims.types import Floats

DEFAULT_SUPPORT = 0.5


class KnownShare(NamedTuple):
    """A mean with its n; NaN and a reason where it is undefined.

    ``n`` values were known and ``n_left_out`` were not. What is known is seldom a fair sample (one supporting
    passage is enough to know, so known claims are more often supported), hence ``low`` and ``high``: the mean
    if every unknown value were 0, or 1.
    """

    value: float
    n: int
    n_left_out: int
    reason: str | None = None

    @property
    def low(self) -> float:
        """The mean if every unknown value were 0; NaN where undefined."""
        return self.value * self.n / (self.n + self.n_left_out) if self.n else np.nan

    @property
    def high(self) -> float:
        """The mean if every unknown value were 1; NaN where undefined."""
        return (self.value * self.n + self.n_left_out) / (self.n + self.n_left_out) if self.n else np.nan


def as_matrix(matrix: ArrayLike, name: str = "M") -> Floats:
    """Return a matrix as float64 of two dimensions; ``[]`` is a matrix without claims.

    ValueError where it is not two-dimensional, or a cell is neither NaN nor in [0, 1].
    """
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim == 1 and not array.size:
        array = array.reshape(0, 0)
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, claims by passages; its shape is {array.shape}.")
    outside = array[(array < 0) | (array > 1)]
    if outside.size:
        raise ValueError(f"{name} must hold probabilities in [0, 1] or NaN, got {outside[0]}.")
    return array


def thresholded(values: ArrayLike, threshold: float = DEFAULT_SUPPORT) -> Floats:
    """Return 1 where a probability reaches the threshold, 0 where it does not, NaN where it is unknown.

    ValueError where ``threshold`` is not in (0, 1]: at 0 everything would be supported.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie above 0 and not above 1, got {threshold}.")
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(array), np.nan, array >= threshold)


def any_true(values: Floats, axis: int) -> Floats:
    """Return, along an axis of 0 / 1 / NaN: 1 if any is 1, 0 if all are 0, NaN if unknown.

    One 1 settles it whatever the unknown ones are; an empty axis is unknown.
    """
    unknown = np.isnan(values).any(axis=axis) | (values.shape[axis] == 0)
    return np.where((values == 1).any(axis=axis), 1.0, np.where(unknown, np.nan, 0.0))


def mean_known(m: Floats, axis: int) -> Floats:
    """Return the mean of the known values along an axis; NaN where none is known."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(m).sum(axis=axis) / (~np.isnan(m)).sum(axis=axis)


def share(values: Floats, nothing: str = "no_claims") -> KnownShare:
    """Return the mean of the known values; undefined as ``unscored``, or ``nothing`` without values."""
    known = values[~np.isnan(values)]
    if known.size:
        return KnownShare(float(known.mean()), known.size, values.size - known.size)
    return KnownShare(np.nan, 0, values.size, "unscored" if values.size else nothing)
