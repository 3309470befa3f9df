"""Split conformal prediction: the threshold and the p-values of a score, exactly.

A score says how unlike the calibration cases a case is: higher = less typical. It must be the same function
of things that can be seen for a calibrated and for a new case, and both must come from one population
(exchangeable); then a new case exceeds the threshold with a probability of at most α, whatever the score.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.arrays import Floats
from core.conformal.arguments import column, rate, same_length, weight
from core.errors import InputError


def conformal_threshold(
    scores: ArrayLike, alpha: float, weights: ArrayLike | None = None, new_weight: float | None = None
) -> float:
    """Return the score that a new case exceeds with a probability of at most α.

    The ⌈(n+1)(1−α)⌉-th smallest score; neither interpolated nor cut at the largest one, both of which cover
    too little. A new case is accepted where its score is at most this, which is where its p-value
    (`p_values`) is above α.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Of the calibration cases; NaN is left out, so the statement is about cases that have a score. May hold
        ±inf.
    alpha : float
        Between 0 and 1, read as the decimal it is written as.
    weights : array_like, shape (n,), optional
        How much likelier each case is among the new ones than among the calibration ones (density ratio, up
        to a factor), at least 0: for new questions whose mixture differs. Must not depend on the scores.
    new_weight : float, optional
        The same for the new case, above 0. Each new case then has its own threshold.

    Returns
    -------
    float
        +inf, so that everything is accepted, where n is too small (`label_shortage` says it) or, weighted,
        where the new case alone weighs more than α of the whole.

    Raises
    ------
    InputError
        An argument is outside its range, or only one of the weights is given.

    References
    ----------
    Vovk, Gammerman, Shafer 2005; Tibshirani et al. 2019, arXiv 1904.06019 (weights).

    Examples
    --------
    >>> conformal_threshold([0.1, 0.2, 0.3, 0.4], 0.4), conformal_threshold([0.1, 0.2, 0.3, 0.4], 0.1)
    (0.3, inf)
    """
    error, values = rate("alpha", alpha), column("scores", scores)
    if (weights is None) != (new_weight is None):
        raise InputError("weights and new_weight must be given together.")
    if weights is None or new_weight is None:
        known = values[~np.isnan(values)]
        k = threshold_rank(known.size, alpha)
        return math.inf if k > known.size else float(np.partition(known, k - 1)[k - 1])
    ordered, tails, (own,) = _weighed(values, weights, [new_weight])
    # By the p-value of a score just above each, so that threshold and p-value never contradict each other.
    rejected = (tails[1:] + own) / (tails[0] + own) <= float(error)
    return float(ordered[np.argmax(rejected)]) if rejected.any() else math.inf


def p_values(
    scores: ArrayLike,
    new: ArrayLike,
    weights: ArrayLike | None = None,
    new_weights: ArrayLike | None = None,
    seed: int | None = None,
) -> Floats:
    """Return how unusual new scores are: (1 + #{calibration scores ≥ s}) / (n + 1).

    Parameters
    ----------
    scores : array_like, shape (n,)
        Of the calibration cases; NaN is left out.
    new : array_like, shape (m,)
        Of new cases.
    weights, new_weights : array_like, shapes (n,) and (m,), optional
        As for `conformal_threshold`; together.
    seed : int, optional
        Draw the place of a new score within its tie at random: then p is exactly uniform for new cases of
        the same population, as `core.conformal.drift_martingale` needs it. Without, it is never too small.

    Returns
    -------
    ndarray, shape (m,)
        In (0, 1], low = unlike the calibration cases; at most α with a probability of at most α. At most α
        exactly where the score exceeds the threshold for α (not randomised). NaN where the new score is.

    Raises
    ------
    InputError
        An argument is outside its range, or only one of the weights is given.

    Examples
    --------
    >>> p_values([0.1, 0.2, 0.2, 0.4], [0.2, 0.5]).tolist()
    [0.8, 0.2]
    """
    known, asked = column("scores", scores), column("new", new)
    if (weights is None) != (new_weights is None):
        raise InputError("weights and new_weights must be given together.")
    if weights is None or new_weights is None:
        ordered = np.sort(known[~np.isnan(known)])
        tails: NDArray[Any] = np.arange(ordered.size, -1, -1)
        own: NDArray[Any] = np.ones(asked.size, dtype=np.int64)
    else:
        ordered, tails, own = _weighed(known, weights, new_weights)
        same_length("new", asked.size, "new_weights", own.size)
    whole = tails[0] + own
    reached = tails[np.searchsorted(ordered, asked, "left")]
    if seed is None:
        found = (reached + own) / whole
    else:
        above = tails[np.searchsorted(ordered, asked, "right")]
        place = 1 - np.random.default_rng(seed).random(asked.size)  # in (0, 1]
        found = above / whole + place * ((reached - above + own) / whole)
    return np.where(np.isnan(asked), math.nan, found.astype(np.float64))


def threshold_rank(n: int, alpha: float) -> int:
    """Return ⌈(n+1)(1−α)⌉: which of n scores in rising order is the threshold; above n there is none."""
    return math.ceil((n + 1) * (1 - rate("alpha", alpha)))


def labels_needed(alpha: float) -> int:
    """Return the smallest number of labels with a finite threshold: ⌈(1−α)/α⌉.

    Examples
    --------
    >>> labels_needed(0.1), labels_needed(0.05)
    (9, 19)
    """
    error = rate("alpha", alpha)
    return math.ceil((1 - error) / error)


def label_shortage(n: int, alpha: float, what: str = "label") -> str:
    """Return why n labels, or ``what`` else calibrates, give no finite threshold; empty where they do.

    Examples
    --------
    >>> label_shortage(5, 0.1)
    '5 labels cannot certify α = 0.1; you need at least 9.'
    """
    needed = labels_needed(alpha)
    if n >= needed:
        return ""
    return f"{n:,} {what}{'' if n == 1 else 's'} cannot certify α = {alpha}; you need at least {needed:,}."


def _weighed(
    scores: Floats, weights: ArrayLike, new_weights: ArrayLike
) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Return rising scores, the weight from each on (n + 1 of them, the last 0) and the new weights.

    The weights become whole numbers of a common unit, so that their sums are exact and equal weights give
    the same as none.
    """
    given = weight("weights", weights, zero=True)
    new = weight("new_weight", new_weights, zero=False)
    same_length("scores", scores.size, "weights", given.size)
    kept = np.flatnonzero(~np.isnan(scores))
    order = kept[np.argsort(scores[kept], kind="stable")]
    ratios = [value.as_integer_ratio() for value in [*given[order].tolist(), *new.tolist()]]
    unit = max((below for _, below in ratios), default=1)  # all are powers of 2
    whole = [top * (unit // below) for top, below in ratios]
    tails = [*accumulate(reversed(whole[: order.size]), initial=0)][::-1]
    return scores[order], np.array(tails, dtype=object), np.array(whole[order.size :], dtype=object)
