"""Factuality of an answer against the passages it was given: verdicts and F1@K.

The search-augmented factuality evaluator's scores (SAFE), with the retrieved passages in the place of a web
search. Irrelevant claims, and claims that could not be judged, are in neither count.

References
----------
Wei et al. 2024, Long-form factuality in large language models, arXiv 2403.18802, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.claims.known import DEFAULT_SUPPORT, any_known, checked, decided
from core.claims.matrix import Labels
from core.claims.types import Floats

SUPPORTED, NOT_SUPPORTED, IRRELEVANT, UNSCORED = "SUPPORTED", "NOT_SUPPORTED", "IRRELEVANT", "UNSCORED"
VERDICTS = (SUPPORTED, NOT_SUPPORTED, IRRELEVANT, UNSCORED)
DEFAULT_K = 10


class Counts(NamedTuple):
    """Number of claims of each verdict."""

    supported: int
    not_supported: int
    irrelevant: int
    unscored: int


def verdicts(
    M: ArrayLike, relevant: Sequence[bool] | None = None, threshold: float = DEFAULT_SUPPORT
) -> Labels:
    """Return the verdict on every claim.

    Parameters
    ----------
    M : array_like of float, shape (n_claims, n_passages)
        Probability that a passage supports a claim; NaN = unscored.
    relevant : sequence of bool, optional
        False for claims that say nothing about the question; all relevant when left out.
    threshold : float
        In (0, 1]; from this probability on a passage supports a claim.

    Returns
    -------
    ndarray of str
        SUPPORTED by at least one passage; NOT_SUPPORTED when every passage was scored and none supports it;
        UNSCORED when neither is known (a verifier's failure is not a verdict); IRRELEVANT.

    Raises
    ------
    ValueError
        The matrix or the threshold is out of range, or ``relevant`` has another length.
    """
    m = checked(M)
    mask = np.ones(len(m), dtype=bool) if relevant is None else np.asarray(relevant, dtype=bool)
    if mask.shape != (len(m),):
        raise ValueError(f"relevant must have {len(m)} entries, one per claim; got {mask.size}.")
    known = any_known(decided(m, threshold), axis=1)
    conditions = [~mask, known == 1, known == 0]
    return np.select(conditions, [IRRELEVANT, SUPPORTED, NOT_SUPPORTED], UNSCORED).astype(object)


def counts(labels: Sequence[str]) -> Counts:
    """Count the verdicts; labels of any other name raise ValueError."""
    listed = list(labels)
    unknown = next((label for label in listed if label not in VERDICTS), None)
    if unknown is not None:
        raise ValueError(f"verdicts must be among {', '.join(VERDICTS)}, got {unknown!r}.")
    return Counts(*(listed.count(verdict) for verdict in VERDICTS))


def precision(supported: int, not_supported: int) -> float | None:
    """Return S / (S + N): the share of the judged claims that are supported; None when none was judged."""
    s, n = _count(supported, "supported"), _count(not_supported, "not_supported")
    return s / (s + n) if s + n else None


def recall_at_k(supported: int, k: float) -> float:
    """Return min(S / K, 1): supported claims against the K that a good answer is expected to hold."""
    return min(_count(supported, "supported") / _wanted(k), 1.0)


def f1_at_k(supported: int, not_supported: int, k: float = DEFAULT_K) -> float | None:
    """Return the harmonic mean of precision and recall at K.

    Parameters
    ----------
    supported, not_supported : int
        Counts of the relevant, judged claims.
    k : float
        Number of supported claims that counts as complete; above 0.

    Returns
    -------
    float or None
        In [0, 1]; 0 when nothing is supported; None when no claim was judged (an abstention, an empty
        answer, a verifier that failed throughout): that is not a score of 0.

    Raises
    ------
    ValueError
        A count is negative or not whole, or ``k`` is not above 0.

    Examples
    --------
    >>> f1_at_k(6, 2, 8)
    0.75
    """
    p, r = precision(supported, not_supported), recall_at_k(supported, k)
    if p is None:
        return None
    return 2 * p * r / (p + r) if supported else 0.0


def f1_curve(supported: ArrayLike, not_supported: ArrayLike, ks: Sequence[float]) -> Floats:
    """Return F1 at every K, of one answer or of all answers of a run at once.

    Parameters
    ----------
    supported, not_supported : array_like of int, shape (...)
        Counts per answer.
    ks : sequence of float
        Values of K, each above 0.

    Returns
    -------
    ndarray of float64, shape (..., len(ks))
        As `f1_at_k`; NaN where no claim was judged.
    """
    s, n = _counts(supported, "supported")[..., None], _counts(not_supported, "not_supported")[..., None]
    k = np.array([_wanted(value) for value in ks], dtype=np.float64)
    recall = np.minimum(s / k, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = s / (s + n)
        f1 = np.where(s > 0, 2 * p * recall / (p + recall), 0.0)
    return np.where(s + n > 0, f1, np.nan)


def _count(value: float, name: str) -> int:
    return int(_counts(value, name))


def _counts(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    wrong = array[~((array >= 0) & np.isfinite(array) & (array == np.floor(array)))]
    if wrong.size:
        raise ValueError(f"{name} must be a count, a whole number from 0 on; got {wrong[0]:g}.")
    return array


def _wanted(k: float) -> float:
    if not (math.isfinite(k) and k > 0):
        raise ValueError(f"k must be above 0 and finite, got {k}.")
    return k
