"""From α to a threshold, exactly: ranks, thresholds and p-values, in groups too, and what they cover.

A score says how unlike the calibration cases a case is: higher = less typical. It must be the same function
of things that can be seen for a calibrated and for a new case, and both must come from one population
(exchangeable); then a new case exceeds the threshold with a probability of at most α, whatever the score.
Every function raises InputError where an argument is outside its range.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from core.arrays import Floats
from core.errors import InputError

UNKNOWN_GROUP = "No calibration label belongs to this group."


def rate(name: str, value: float) -> Fraction:
    """Return an error rate between 0 and 1 as the decimal it is written as; InputError for anything else.

    0.7 as a float is a little less than 7/10, so that 10 · (1 − 0.7) is more than 3 and its ceiling is 4: one
    label too many. Here it is 7/10.
    """
    try:
        found = Fraction(str(value))
    except ValueError:
        found = Fraction(0)
    if not 0 < found < 1:
        raise InputError(f"{name} must lie between 0 and 1, both excluded; got {value!r}.")
    return found


def column(name: str, values: ArrayLike) -> Floats:
    """Return values as a column of floats, in which NaN stays; InputError where they are none."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}.") from error
    if found.ndim != 1:
        raise InputError(f"{name} must have one dimension, got the shape {found.shape}.")
    return found


def labels(name: str, values: ArrayLike) -> Floats:
    """Return labels as 1, 0 and NaN (unknown); InputError for another value."""
    found = column(name, values)
    if not np.isin(found[~np.isnan(found)], (0, 1)).all():
        raise InputError(f"{name} must be 1 (correct), 0 (wrong) or NaN (unknown) for each.")
    return found


def same_length(first: str, n: int, second: str, m: int) -> None:
    """Raise InputError where two arguments that belong together differ in length."""
    if n != m:
        raise InputError(f"{first} and {second} must be of equal length, got {n} and {m}.")


def threshold_rank(n: int, alpha: float) -> int:
    """Return ⌈(n+1)(1−α)⌉: which of n scores in rising order is the threshold; above n there is none."""
    return math.ceil((n + 1) * (1 - rate("alpha", alpha)))


def labels_needed(alpha: float) -> int:
    """Return the smallest number of labels with a finite threshold: ⌈(1−α)/α⌉.

    >>> labels_needed(0.1), labels_needed(0.05)
    (9, 19)
    """
    error = rate("alpha", alpha)
    return math.ceil((1 - error) / error)


def label_shortage(n: int, alpha: float, what: str = "label") -> str:
    """Return why n labels, or ``what`` else calibrates, give no finite threshold; empty where they do.

    >>> label_shortage(5, 0.1)
    '5 labels cannot certify α = 0.1; you need at least 9.'
    """
    needed = labels_needed(alpha)
    if n >= needed:
        return ""
    return f"{n:,} {what}{'' if n == 1 else 's'} cannot certify α = {alpha}; you need at least {needed:,}."


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
        known = np.sort(values[~np.isnan(values)]).tolist()
        k = threshold_rank(len(known), alpha)
        return min(known[k - 1 : k], default=math.inf)
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
    scores, new : array_like, shapes (n,) and (m,)
        Of the calibration cases (NaN is left out), and of new ones.
    weights, new_weights : array_like, shapes (n,) and (m,), optional
        As for `conformal_threshold`; together.
    seed : int, optional
        Draw the place of a new score within its tie at random: then p is exactly uniform for new cases of
        the same population. Without, it is never too small.

    Returns
    -------
    ndarray, shape (m,)
        In (0, 1], low = unlike the calibration cases; at most α with a probability of at most α. At most α
        exactly where the score exceeds the threshold for α (not randomised). NaN where the new score is.

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


def _weighed(
    scores: Floats, weights: ArrayLike, new_weights: ArrayLike
) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Return rising scores, the weight from each on (then 0) and the new weights, as exact whole numbers."""
    given, new = column("weights", weights), column("new_weight", new_weights)
    if not (np.isfinite(given) & (given >= 0)).all():
        raise InputError("weights must be finite and at least 0.")
    if not (np.isfinite(new) & (new > 0)).all():
        raise InputError("new_weight must be finite and above 0.")
    same_length("scores", scores.size, "weights", given.size)
    kept = np.flatnonzero(~np.isnan(scores))
    order = kept[np.argsort(scores[kept], kind="stable")]
    ratios = [value.as_integer_ratio() for value in [*given[order].tolist(), *new.tolist()]]
    unit = max((below for _, below in ratios), default=1)  # all are powers of 2
    whole = [top * (unit // below) for top, below in ratios]
    tails = [*accumulate(reversed(whole[: order.size]), initial=0)][::-1]
    return scores[order], np.array(tails, dtype=object), np.array(whole[order.size :], dtype=object)


class GroupThreshold(NamedTuple):
    """The threshold of ``n`` calibration scores, NaN of none; ``reason``: why it is not finite."""

    n: int
    threshold: float
    reason: str


def group_thresholds(
    scores: ArrayLike, groups: Sequence[Hashable], alpha: float, asked: Iterable[Hashable] = ()
) -> dict[Hashable, GroupThreshold]:
    """Return a threshold for each group, so that the promise is kept in each (Mondrian, Vovk et al. 2005).

    Groups, which must be known without the label, are in the order of their first appearance; of those
    ``asked`` without a calibration score the threshold is undefined. NaN scores are left out.

    >>> found = group_thresholds([0.1, 0.2, 0.3, 0.4], ["who", "who", "who", "when"], 0.25, ["why"])
    >>> found["who"].threshold, found["when"].reason, found["why"].threshold
    (0.3, '1 label cannot certify α = 0.25; you need at least 3.', nan)
    """
    values = column("scores", scores)
    found = {}
    for group, rows in _rows([*groups, *asked], values, len(groups)).items():
        known = values[rows]
        n = int(np.count_nonzero(~np.isnan(known)))
        threshold = conformal_threshold(known, alpha) if n else math.nan
        found[group] = GroupThreshold(n, threshold, label_shortage(n, alpha) if n else UNKNOWN_GROUP)
    return found


def group_p_values(
    scores: ArrayLike, groups: Sequence[Hashable], new: ArrayLike, new_groups: Sequence[Hashable]
) -> Floats:
    """Return the p-value (m,) of each new score among the calibration scores of its own group.

    In (0, 1], low = unlike the group; NaN for a group without a calibration score.
    """
    values, asked = column("scores", scores), column("new", new)
    known, found = _rows(groups, values, len(groups)), np.full(asked.size, math.nan)
    for group, rows in _rows(new_groups, asked, len(new_groups)).items():
        calibration = values[known.get(group, [])]
        if not np.isnan(calibration).all():
            found[rows] = p_values(calibration, asked[rows])
    return found


def _rows(groups: Sequence[Hashable], values: Floats, n: int) -> dict[Hashable, NDArray[np.intp]]:
    """Return the rows of each group; groups from the n-th on have none."""
    same_length("the values", values.size, "their groups", n)
    rows: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).extend([row] if row < n else [])
    return {group: np.array(found, dtype=np.intp) for group, found in rows.items()}


def coverage_band(
    n: int, alpha: float, level: float = 0.95, n_test: int | None = None
) -> tuple[float, float]:
    """Return the exact central range of the realised coverage of a threshold from n labels.

    1 − α is the mean over calibration sets; one set gives Beta(k, n + 1 − k), k = ⌈(n+1)(1−α)⌉, for scores
    without ties (with ties the coverage is higher).

    Parameters
    ----------
    n, alpha : int, float
        Calibration labels, and the error rate between 0 and 1.
    level : float
        Probability of the band, between 0 and 1; half of the rest on either side.
    n_test : int, optional
        Share covered among so many test cases (beta-binomial), at least 1; without, among endlessly many.

    Returns
    -------
    (low, high) : tuple of float
        Shares in [0, 1]; both 1 where the threshold is infinite. With ``n_test`` the band holds at least
        ``level`` (Vovk 2012, arXiv 1209.2673; Angelopoulos & Bates 2021, arXiv 2107.07511, section 3.2).

    Examples
    --------
    >>> [round(end, 3) for end in coverage_band(19, 0.1)]
    [0.74, 0.987]
    """
    ends = float((1 - rate("level", level)) / 2), float((1 + rate("level", level)) / 2)
    if n < 0 or (n_test is not None and n_test < 1):
        raise InputError(f"n must be at least 0 and n_test at least 1, got {n} and {n_test}.")
    k = threshold_rank(n, alpha)
    if k > n:
        return 1.0, 1.0
    if n_test is None:
        low, high = betaincinv(k, n + 1 - k, ends)
    else:
        from scipy.stats import betabinom

        low, high = betabinom.ppf(ends, n_test, k, n + 1 - k) / n_test
    return float(low), float(high)


def covered_by_chance(parts: Sequence[tuple[int, int]], alpha: float) -> Floats:
    """Return how likely 0, 1 … tested cases are covered, where thresholds keep their promise.

    ``parts`` has the labels of each threshold, all finite, and the cases that it tests. A sum of
    beta-binomials: exact for scores without ties; with ties more is covered.

    >>> covered_by_chance([(9, 1)], 0.1).round(3).tolist(), covered_by_chance([(9, 1), (9, 1)], 0.1).size
    ([0.1, 0.9], 3)
    """
    from scipy.signal import fftconvolve
    from scipy.stats import betabinom

    found = np.ones(1)
    for n, n_test in parts:
        k = threshold_rank(n, alpha)
        one = betabinom.pmf(np.arange(n_test + 1), n_test, k, n + 1 - k)
        found = np.maximum(fftconvolve(found, one), 0.0)
    return np.asarray(found, dtype=np.float64)


def shortfall(n_covered: int, parts: Sequence[tuple[int, int]], alpha: float) -> float:
    """Return how likely so few or fewer are covered by chance; NaN where nothing is tested.

    >>> round(shortfall(0, [(9, 1)], 0.1), 3), shortfall(0, [], 0.1)
    (0.1, nan)
    """
    if not sum(n_test for _, n_test in parts):
        return math.nan
    return min(1.0, float(covered_by_chance(parts, alpha)[: n_covered + 1].sum()))
