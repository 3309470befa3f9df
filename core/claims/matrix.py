"""The claim-evidence matrix: how well the passages support each claim of an answer.

One row per claim, one column per passage. A cell is the probability that the passage supports the claim (or
simply 0 / 1), and NaN where the verifier failed. NaN is *unscored*: a state of its own, never read as "not
supported". Yes, no and unknown are 1, 0 and NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.claims.types import Bools, Floats, Labels

DEFAULT_SUPPORT = 0.5


class KnownShare(NamedTuple):
    """A mean of ``n`` known values, ``n_left_out`` were not; NaN and a reason where it is undefined."""

    value: float
    n: int
    n_left_out: int
    reason: str | None = None


def as_matrix(matrix: ArrayLike, name: str = "M") -> Floats:
    """Return a matrix as float64; ValueError unless two-dimensional (or ``[]``), in [0, 1] or NaN."""
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
    """Return 1 from the threshold on, else 0, NaN stays; ValueError where that is not in (0, 1]."""
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie above 0 and not above 1, got {threshold}.")
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(array), np.nan, array >= threshold)


def any_true(values: Floats, axis: int) -> Floats:
    """Return, along an axis of 0 / 1 / NaN: 1 if any is 1, 0 if there are some and all are 0, else NaN."""
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


WELL_SUPPORTED, FRAGILE, UNSUPPORTED, UNSCORED = "well supported", "fragile", "unsupported", "unscored"
# Not in a matrix: supported by two passages together only, and nothing to support.
JOINT, IRRELEVANT = "joint", "irrelevant"
CLAIM_STATES = (WELL_SUPPORTED, FRAGILE, JOINT, UNSUPPORTED, UNSCORED, IRRELEVANT)


def claim_uncertainty(M: ArrayLike, threshold: float | None = None) -> Floats:
    """U(c) = 1 - mean over the passages of M[c, passage]: the lack of redundant evidence.

    Parameters
    ----------
    M : array_like of float, shape (n_claims, n_passages)
        0 / 1 as in the definition, or probabilities; NaN = unscored.
    threshold : float, optional
        Given, cells count as 1 where they reach it, else 0: the definition. Left out, probabilities give the
        expected value of U.

    Returns
    -------
    ndarray of float64, shape (n_claims,)
        In [0, 1], higher = more fragile; over the scored passages only; NaN where no passage was scored.
        A claim that one passage of ten fully supports has 0.9: read it beside `support_maximum`.

    Examples
    --------
    >>> claim_uncertainty([[1, 0, 0, 1], [0, 0, 0, float("nan")]]).tolist()
    [0.5, 1.0]
    """
    m = as_matrix(M)
    return 1 - mean_known(m if threshold is None else thresholded(m, threshold), axis=1)


def support_maximum(M: ArrayLike) -> Floats:
    """Return the best support of each claim by a single passage; NaN where no passage was scored.

    With unscored passages in the row it is a lower bound.
    """
    m = as_matrix(M)
    best = np.max(np.where(np.isnan(m), -1.0, m), axis=1, initial=-1.0)
    return np.where(best < 0, np.nan, best)


def any_support(M: ArrayLike) -> Floats:
    """Return 1 - prod(1 - M): the probability that some passage supports, if passages were independent.

    Over the scored passages; NaN without one. Passages that repeat each other are not independent: too high.
    """
    m = as_matrix(M)
    value = 1 - np.prod(1 - np.where(np.isnan(m), 0.0, m), axis=1)
    return np.where(np.isnan(m).all(axis=1), np.nan, value)


def passage_importance(M: ArrayLike, threshold: float | None = None) -> Floats:
    """Return the mean support that each passage gives to the claims scored against it: the column means.

    ``threshold`` as in `claim_uncertainty`. NaN for a passage against which no claim was scored.
    """
    m = as_matrix(M)
    return mean_known(m if threshold is None else thresholded(m, threshold), axis=0)


def claim_states(M: ArrayLike, threshold: float = DEFAULT_SUPPORT) -> Labels:
    """Return the state of every claim, an array of str.

    *well supported* by two passages or more; *fragile*: by exactly one; *unsupported*: every passage was
    scored; *unscored*: no support was found while some are unscored.
    """
    support = thresholded(as_matrix(M), threshold)
    n_supporting = (support == 1).sum(axis=1)
    conditions = [n_supporting >= 2, n_supporting == 1, any_true(support, axis=1) == 0]
    return np.select(conditions, [WELL_SUPPORTED, FRAGILE, UNSUPPORTED], UNSCORED).astype(object)


@dataclass(frozen=True, slots=True, eq=False)
class ClaimEvidenceMatrix:
    """The claims of one answer against the passages it was given, and every score that follows."""

    claims: tuple[str, ...]  # one per row
    probabilities: Floats  # a column for each passage, in retrieval order; NaN = unscored
    relevant: Bools  # False for refusals and talk about the answer; such claims enter no mean
    threshold: float = DEFAULT_SUPPORT  # from this probability on a passage supports a claim

    @property
    def uncertainty(self) -> Floats:
        """U(c) of every claim, from the probabilities as they are."""
        return claim_uncertainty(self.probabilities)

    @property
    def support_maximum(self) -> Floats:
        """Best support of every claim by a single passage."""
        return support_maximum(self.probabilities)
