"""Uncertainty of retrieval, sampling and conformal prediction in one number and one decision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, softmax

from core.arrays import Floats
from core.errors import InputError

LAMBDAS = (0.2, 0.4, 0.4)
RELIABLE_ABOVE = 0.7


@dataclass(frozen=True)
class Combined:
    """The combined uncertainty of one answer.

    Attributes
    ----------
    uncertainty : float
        In [0, 1], higher = more uncertain; NaN where a part with a weight is undefined.
    confidence : float
        Mean of the sampling-based and the conformal confidence, in [0, 1]; NaN where one is undefined.
    retrieval, sampling, conformal : float
        The parts U_retrieval, U_MC = 1 − confidence by sampling, and 1 − conformal confidence, not weighted.
    is_reliable : bool or None
        Whether the confidence by sampling exceeds 0.7 and the conformal decision is "reliable". False where
        one of them fails, also if the other is unknown; None where nothing fails and one is unknown.
    reason : str
        Which parts are undefined; empty where none is.
    """

    uncertainty: float
    confidence: float
    retrieval: float
    sampling: float
    conformal: float
    is_reliable: bool | None
    reason: str


def retrieval_uncertainty(scores: ArrayLike) -> float:
    """Return the entropy of the softmax of retrieval scores, as a share of its maximum log k.

    Parameters
    ----------
    scores : array_like, shape (k,)
        Of the passages of one question; higher = better.

    Returns
    -------
    float
        In [0, 1], higher = more uncertain: 1 where all passages score alike, near 0 where one is far above.
        NaN for fewer than 2 passages and where a score is missing.

    Notes
    -----
    The sources name this part without a definition; this one is ours. It depends on the unit of the scores:
    cosines differ by less than 1, so that it is always near 1 for them, while BM25 scores may give 0.

    Examples
    --------
    >>> [round(retrieval_uncertainty(scores), 4) for scores in ([2, 2, 2], [9, 1])]
    [1.0, 0.0044]
    """
    given = np.asarray(scores, dtype=np.float64)
    if given.size < 2 or not np.isfinite(given).all():
        return math.nan
    return min(1.0, float(entr(softmax(given)).sum()) / math.log(given.size))


def combined_uncertainty(
    retrieval: ArrayLike,
    sampling: ArrayLike,
    conformal_confidence: ArrayLike,
    lambdas: tuple[float, float, float] = LAMBDAS,
) -> Floats:
    """Return ``λ₁ · U_retrieval + λ₂ · U_MC + λ₃ · (1 − conformal confidence)``.

    Parameters
    ----------
    retrieval, sampling, conformal_confidence : array_like, shape (n,) or ()
        Each in [0, 1]; NaN where undefined.
    lambdas : (float, float, float)
        At least 0, their sum is 1.

    Returns
    -------
    ndarray, shape (n,) or ()
        In [0, 1], higher = more uncertain; NaN where a part with a weight is.

    Raises
    ------
    InputError
        A part or a weight is outside its range.
    """
    if not (all(one >= 0 for one in lambdas) and abs(sum(lambdas) - 1) <= 1e-6):
        raise InputError(f"The weights λ must be at least 0 and sum to 1, got {lambdas}.")
    names = ("retrieval", "sampling", "conformal_confidence")
    parts = [np.asarray(one, dtype=np.float64) for one in (retrieval, sampling, conformal_confidence)]
    for name, part in zip(names, parts, strict=True):
        if (part < 0).any() or (part > 1).any():
            raise InputError(f"{name} must lie in [0, 1].")
    parts[2] = 1 - parts[2]
    # A part without a weight is not needed: 0 · NaN would be NaN.
    weighted = [weight * part for weight, part in zip(lambdas, parts, strict=True) if weight]
    return np.asarray(np.clip(sum(weighted), 0.0, 1.0), dtype=np.float64)


def combine(
    scores: ArrayLike,
    sampling_confidence: float,
    conformal_confidence: float,
    conformal_reliable: bool | None,
    lambdas: tuple[float, float, float] = LAMBDAS,
) -> Combined:
    """Return the combined uncertainty and decision of one answer.

    Parameters
    ----------
    scores : array_like, shape (k,)
        Retrieval scores of its passages.
    sampling_confidence, conformal_confidence : float
        In [0, 1]; NaN where undefined.
    conformal_reliable : bool or None
        The decision of conformal prediction; None where it has none.
    lambdas : (float, float, float)
        As for `combined_uncertainty`.

    Raises
    ------
    InputError
        As `combined_uncertainty`.

    Examples
    --------
    >>> found = combine([2.0, 2.0], 0.8, 0.9, True)
    >>> round(found.uncertainty, 3), round(found.confidence, 3), found.is_reliable
    (0.32, 0.85, True)
    """
    retrieval, sampling = retrieval_uncertainty(scores), 1 - sampling_confidence
    uncertainty = float(combined_uncertainty(retrieval, sampling, conformal_confidence, lambdas))
    parts = {"retrieval": retrieval, "sampling": sampling, "conformal prediction": conformal_confidence}
    missing = [name for name, value in parts.items() if math.isnan(value)]
    return Combined(
        uncertainty,
        (sampling_confidence + conformal_confidence) / 2,
        retrieval,
        sampling,
        1 - conformal_confidence,
        _both(None if math.isnan(sampling) else sampling_confidence > RELIABLE_ABOVE, conformal_reliable),
        f"no value for {', '.join(missing)}" if missing else "",
    )


def _both(first: bool | None, second: bool | None) -> bool | None:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True
