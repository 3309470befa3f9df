"""Whether a confidence means what it says: reliability, ECE, MCE, Brier score, and maps that correct it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.arrays import Floats
from core.stats.intervals import known_pairs, wilson_interval

DEFAULT_BINS = 15
_RIDGE = 0.01  # keeps separated classes finite; a hundredth of scikit-learn's default penalty


class ReliabilityBin(NamedTuple):
    """The answers whose confidence lies in one bin.

    Confidences above ``low`` and up to ``high``, and 0 in the first bin: ``n`` answers, at least 1, with
    their mean ``confidence`` and the share that is correct, in [0, 1], with Wilson's 95 % interval.
    """

    number: int
    low: float
    high: float
    n: int
    confidence: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float


class BrierParts(NamedTuple):
    """The Brier score as a sum: ``reliability − resolution + uncertainty + within``.

    ``reliability``: mean squared gap of confidence and accuracy of the bins; lower is better, 0 is
    calibrated. ``resolution``: mean squared distance of the bins' accuracies from the overall one; higher is
    better. ``uncertainty``: ā(1 − ā) of the overall accuracy ā, that of the questions, whatever the
    confidence. ``within``: what lies within the bins, the variance of the confidence minus twice its
    covariance with correctness; 0 where all confidences of a bin are equal, and negative where they tell
    apart within it.
    """

    reliability: float
    resolution: float
    uncertainty: float
    within: float


def reliability_bins(
    confidence: ArrayLike, correct: ArrayLike, n_bins: int = DEFAULT_BINS
) -> tuple[ReliabilityBin, ...]:
    """Return the bins of a reliability diagram that hold answers (Guo et al. 2017, arXiv 1706.04599).

    ``confidence`` in [0, 1] and ``correct`` (1 or 0), (n,): NaN is left out, anything else a ValueError. Bins
    of equal width, ``(i / n_bins, (i + 1) / n_bins]``; 0 is in the first.

    >>> found = reliability_bins([0, 0.5, 1], [0, 0, 1], 2)
    >>> [(one.number, one.n, one.confidence, one.accuracy) for one in found]
    [(0, 2, 0.25, 0.0), (1, 1, 1.0, 1.0)]
    """
    p, right, at = _binned(confidence, correct, n_bins)
    found = []
    for index in np.unique(at).tolist():
        chosen = at == index
        n, share = int(chosen.sum()), float(right[chosen].mean())
        mean = float(p[chosen].mean())
        ends = wilson_interval(share, n)
        found.append(ReliabilityBin(index, index / n_bins, (index + 1) / n_bins, n, mean, share, *ends))
    return tuple(found)


def expected_calibration_error(
    confidence: ArrayLike, correct: ArrayLike, n_bins: int = DEFAULT_BINS
) -> float:
    """Return the mean gap of confidence and accuracy, bins weighted by answers (Naeini et al. 2015).

    Takes what `reliability_bins` does. In [0, 1], lower is better; NaN without data. Biased upwards for few
    answers: a calibrated confidence does not give 0.
    """
    bins = reliability_bins(confidence, correct, n_bins)
    n = sum(one.n for one in bins)
    return sum(one.n * abs(one.confidence - one.accuracy) for one in bins) / n if n else math.nan


def maximum_calibration_error(confidence: ArrayLike, correct: ArrayLike, n_bins: int = DEFAULT_BINS) -> float:
    """Return the largest gap of confidence and accuracy of a bin (Naeini et al. 2015).

    Takes what `reliability_bins` does. In [0, 1], lower is better; NaN without data. One answer alone in its
    bin can make it.
    """
    bins = reliability_bins(confidence, correct, n_bins)
    return max((abs(one.confidence - one.accuracy) for one in bins), default=math.nan)


def brier_score(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the mean squared difference of confidence and correctness (Brier 1950).

    In [0, 1], lower is better; 0.25 for a confidence of 0.5 throughout. NaN without data.
    """
    p, right = _checked(confidence, correct)
    return float(((p - right) ** 2).mean()) if p.size else math.nan


def brier_parts(confidence: ArrayLike, correct: ArrayLike, n_bins: int = DEFAULT_BINS) -> BrierParts:
    """Return the Brier score in parts (Murphy 1973; within the bins: Stephenson, Coelho, Jolliffe 2008).

    Parameters as for `reliability_bins`; all NaN without data.
    """
    p, right, at = _binned(confidence, correct, n_bins)
    if not p.size:
        return BrierParts(math.nan, math.nan, math.nan, math.nan)
    _, at, size = np.unique(at, return_inverse=True, return_counts=True)
    mean, share, overall = np.bincount(at, p) / size, np.bincount(at, right) / size, float(right.mean())
    reliability = float(size @ (mean - share) ** 2) / p.size
    resolution = float(size @ (share - overall) ** 2) / p.size
    away = p - mean[at]
    within = float((away**2 - 2 * away * (right - share[at])).mean())
    return BrierParts(reliability, resolution, overall * (1 - overall), within)


def platt_fit(confidence: ArrayLike, correct: ArrayLike) -> tuple[float, float]:
    """Return slope and intercept of ``1 / (1 + exp(−(slope · confidence + intercept)))`` (Platt 1999).

    As in Platt's paper the targets are a little off 1 and 0, (n₁ + 1) / (n₁ + 2) and 1 / (n₀ + 2), so that a
    perfect separation has a finite slope. A negative slope: the higher the confidence, the more answers are
    wrong. NaN where all or none are correct. Cost: one logistic regression.
    """
    from sklearn.linear_model import LogisticRegression

    p, right = _checked(confidence, correct)
    n_right = int(right.sum())
    if n_right in (0, p.size):
        return math.nan, math.nan
    target = np.where(right == 1, (n_right + 1) / (n_right + 2), 1 / (p.size - n_right + 2))
    # A target between 0 and 1 is a correct and a wrong answer, weighted.
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1_000)
    model.fit(np.r_[p, p][:, None], np.repeat([1, 0], p.size), sample_weight=np.r_[target, 1 - target])
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def isotonic_fit(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    """Return the knots of the rising function nearest the labels (Zadrozny & Elkan 2002).

    Confidences that rise strictly, and the probabilities there, which never fall, (m,): straight lines
    between them, constant beyond. Empty where all or none are correct.
    """
    from sklearn.isotonic import IsotonicRegression

    p, right = _checked(confidence, correct)
    if int(right.sum()) in (0, p.size):
        return np.zeros(0), np.zeros(0)
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p, right)
    x, y = (np.asarray(one, dtype=np.float64) for one in (model.X_thresholds_, model.y_thresholds_))
    return x, y


def _checked(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    p, right = known_pairs(confidence, correct)
    if p.size and not 0 <= p.min() <= p.max() <= 1:
        raise ValueError("confidence must lie in [0, 1]")
    if not np.isin(right, (0, 1)).all():
        raise ValueError("correct must be 1, 0 or NaN")
    return p, right


def _binned(
    confidence: ArrayLike, correct: ArrayLike, n_bins: int
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return confidences, labels and bins; a confidence on an edge belongs to the bin below it."""
    if n_bins < 1:
        raise ValueError("n_bins must be at least 1")
    p, right = _checked(confidence, correct)
    # 0.7 is 7/10, though its float is not that of an edge computed otherwise, such as 0.1 · 7.
    edges = np.round(np.arange(1, n_bins) / n_bins, 12)
    return p, right, np.searchsorted(edges, np.round(p, 12), side="left")


def non_negative_logistic(x: ArrayLike, positive: ArrayLike) -> tuple[Floats, float]:
    """Return coefficients and intercept of P(positive) = 1 / (1 + exp(−(x · coefficients + intercept))).

    Maximum likelihood with a small ridge of 0.01 on the coefficients, each at least 0: more of a signal never
    lowers the probability. ``x``, (n, k), of comparable scale, such as [0, 1]; no NaN. Coefficients, (k,),
    and the intercept, which is unpenalised: NaN with fewer than two classes.

    Cost: some 20 evaluations of the likelihood (L-BFGS-B, Byrd et al. 1995). scikit-learn's logistic
    regression has no bounds; where no bound is active, both give the same.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    rows, label = np.asarray(x, dtype=np.float64), np.asarray(positive, dtype=bool)
    k = rows.shape[1]
    if label.all() or not label.any():
        return np.full(k, math.nan), math.nan
    sign = np.where(label, 1.0, -1.0)

    def loss(found: Floats) -> tuple[float, Floats]:
        margin = sign * (rows @ found[:k] + found[k])
        pull = -sign * expit(-margin)
        value = np.logaddexp(0, -margin).sum() + _RIDGE / 2 * (found[:k] ** 2).sum()
        return float(value), np.r_[pull @ rows + _RIDGE * found[:k], pull.sum()]

    share = label.mean()
    start = np.r_[np.zeros(k), math.log(share / (1 - share))]
    bounds = [(0, None)] * k + [(None, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12}).x
    return np.asarray(found[:k], dtype=np.float64), float(found[k])
