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

import numpy as np
from numpy.typing import ArrayLike

from core.claims import matrix
from core.claims.types import Floats, Labels

SUPPORTED, NOT_SUPPORTED, IRRELEVANT, UNSCORED = "SUPPORTED", "NOT_SUPPORTED", "IRRELEVANT", "UNSCORED"
VERDICTS = (SUPPORTED, NOT_SUPPORTED, IRRELEVANT, UNSCORED)
DEFAULT_K = 10
_VERDICT_OF = {
    matrix.WELL_SUPPORTED: SUPPORTED,
    matrix.FRAGILE: SUPPORTED,
    matrix.JOINT: SUPPORTED,
    matrix.UNSUPPORTED: NOT_SUPPORTED,
    matrix.UNSCORED: UNSCORED,
    matrix.IRRELEVANT: IRRELEVANT,
}


def verdicts(states: Sequence[str] | Labels) -> Labels:
    """Return the verdicts that follow from the states of claims; a failure is not a verdict."""
    return np.array([_VERDICT_OF[state] for state in states], dtype=object)


def f1_at_k(supported: int, not_supported: int, k: float = DEFAULT_K) -> float | None:
    """Return the harmonic mean of precision and recall at K, given counts of the relevant, judged claims.

    ``k`` supported claims count as complete. In [0, 1], higher is better; 0 when nothing is supported; None
    when no claim was judged: that is not a score of 0. ValueError where a count is negative or not whole, or
    ``k`` is not above 0.

    >>> f1_at_k(6, 2, 8)
    0.75
    """
    value = float(f1_curve(supported, not_supported, [k])[0])
    return None if math.isnan(value) else value


def f1_curve(supported: ArrayLike, not_supported: ArrayLike, ks: Sequence[float]) -> Floats:
    """Return F1 at every K, (..., len(ks)), for counts (...); NaN where no claim was judged."""
    s, n = _counts(supported, "supported")[..., None], _counts(not_supported, "not_supported")[..., None]
    k = np.array(ks, dtype=np.float64)
    if (wrong := k[~(np.isfinite(k) & (k > 0))]).size:
        raise ValueError(f"k must be above 0 and finite, got {wrong[0]:g}.")
    recall = np.minimum(s / k, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = s / (s + n)
        f1 = np.where(s > 0, 2 * p * recall / (p + recall), 0.0)
    return np.where(s + n > 0, f1, np.nan)


def _counts(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    wrong = array[~((array >= 0) & np.isfinite(array) & (array == np.floor(array)))]
    if wrong.size:
        raise ValueError(f"{name} must be a count, a whole number from 0 on; got {wrong[0]:g}.")
    return array
