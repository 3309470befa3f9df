"""Uncertainty of retrieval, sampling and conformal prediction in one number and one decision."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import entr, softmax

from core.arrays import Floats
from core.errors import InputError

LAMBDAS = (0.2, 0.4, 0.4)
RELIABLE_ABOVE = 0.7


def retrieval_uncertainty(scores: ArrayLike) -> float:
    """Return the entropy of the softmax of retrieval scores, as a share of its maximum log k.

    In [0, 1], higher = more uncertain: 1 where all passages of a question score alike, near 0 where one is
    far above. NaN for fewer than 2 passages and where a score is missing. rag_uq names this part without a
    definition; this one is ours. It depends on the unit of the scores: for cosines it is always near 1, while
    BM25 scores may give 0.

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
    """Return ``λ₁ · U_retrieval + λ₂ · U_MC + λ₃ · (1 − conformal confidence)``, higher = more uncertain.

    In [0, 1]. Parts are (n,) or (), each in [0, 1]; NaN where one with a weight is. The lambdas are at least
    0 and sum to 1. InputError where a part or a weight is outside its range.
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
    return np.asarray(np.minimum(1.0, sum(weighted)), dtype=np.float64)


def combined_decision(
    mc_confidence: ArrayLike | pd.Series, conformal_reliable: ArrayLike | pd.Series | None
) -> bool | pd.Series | pd.api.extensions.ExtensionArray | None:
    """Return whether the confidence by sampling exceeds 0.7 and conformal prediction agrees.

    Parameters
    ----------
    mc_confidence : float, array_like or Series, shape (n,)
        In [0, 1]; NaN where undefined. In rag_uq it is that of MC dropout, 1 − embedding variance; the
        mean ROUGE-L agreement with the samples makes the rule stricter.
    conformal_reliable : bool, array_like or Series, shape (n,)
        None, NaN or NA where conformal prediction has no decision. A single value goes with all of the other.

    Returns
    -------
    bool, boolean array or Series
        Of the kind that was given. False where one of them fails, also if the other is unknown; None (in
        arrays NA) where none fails and one is unknown.

    Raises
    ------
    InputError
        A confidence lies outside [0, 1], or the two have different lengths.

    Examples
    --------
    >>> combined_decision(0.8, True), combined_decision(0.7, True), combined_decision(0.8, None)
    (True, False, None)
    >>> combined_decision([0.8, 0.7, float("nan")], [True, None, None]).tolist()
    [True, False, <NA>]
    """
    given, agrees = np.asarray(mc_confidence, dtype=np.float64), np.asarray(conformal_reliable, dtype=object)
    scalar = not given.ndim and not agrees.ndim
    if given.ndim and agrees.ndim and given.shape != agrees.shape:
        raise InputError(
            "mc_confidence and conformal_reliable must be of equal length, "
            f"got {given.size} and {agrees.size}."
        )
    if ((given < 0) | (given > 1)).any():
        raise InputError("mc_confidence must lie in [0, 1].")
    given, agrees = np.atleast_1d(*np.broadcast_arrays(given, agrees))
    sure = pd.array(given > RELIABLE_ABOVE, dtype="boolean")
    sure[np.isnan(given)] = pd.NA
    found = sure & pd.array(agrees, dtype="boolean")
    index = next(
        (one.index for one in (conformal_reliable, mc_confidence) if isinstance(one, pd.Series)), None
    )
    if scalar:
        return None if found[0] is pd.NA else bool(found[0])
    return found if index is None else pd.Series(found, index)
