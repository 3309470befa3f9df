"""How well a score ranks: AUROC and its kin, with what few cases of a class can say; risk and coverage."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtr, ndtri, stdtr, stdtrit

from core.arrays import Floats
from core.stats.intervals import UNDEFINED, Interval, known_pairs

FEWEST_OF_EACH = 15  # positives, and negatives: with fewer no test of two AUROCs keeps its level
_EXACT_UP_TO = 50_000_000  # steps of the exact distribution of a rank sum: below a tenth of a second
_HALVINGS = 50
_END = (1 + 0.95) / 2  # the quantile at the upper end of a 95 % interval


def auroc(positive: ArrayLike, score: ArrayLike) -> float:
    """Return P(a positive scores higher than a negative), ties counted half (Hanley & McNeil 1982).

    ``positive`` first, as in scikit-learn; higher ``score`` means more likely positive; only the order
    matters. In [0, 1], higher is better, 0.5 is chance. NaN with fewer than two classes.
    """
    label, ranks = _ranked(positive, score)
    n = int(label.sum())
    if n in (0, label.size):
        return math.nan
    return float((ranks[label].sum() - n * (n + 1) / 2) / (n * (label.size - n)))


def aurocs(positive: ArrayLike, scores: ArrayLike) -> Floats:
    """Return the `auroc` of many scores of the same cases at once.

    ``scores``, (m, n), without NaN. NaN with fewer than two classes.
    """
    rows, label = np.asarray(scores, dtype=np.float64), _labels(positive)
    n = int(label.sum())
    if n in (0, label.size):
        return np.full(len(rows), math.nan)
    # Five times faster than ranks: a fit on a grid needs hundreds, and its interval hundreds of fits.
    order = np.argsort(rows, axis=1)
    ordered, is_positive = np.take_along_axis(rows, order, axis=1), label[order]
    is_new = np.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    below = np.maximum.accumulate(np.where(is_new, np.arange(label.size), 0), axis=1)
    n_before: NDArray[np.int64] = np.cumsum(~is_positive, axis=1) - ~is_positive
    negatives_below: NDArray[np.int64] = np.take_along_axis(n_before, below, axis=1)
    lead = np.where(is_positive, negatives_below, negatives_below - below).sum(axis=1)
    found: Floats = 0.5 + lead / (2 * n * (label.size - n))
    return found


def auprc(positive: ArrayLike, score: ArrayLike) -> float:
    """Return the area under the precision-recall curve as average precision (Davis & Goadrich 2006).

    Takes what `auroc` does; equal scores are one step of the curve. In (0, 1], higher is better; chance is
    about the share of positives. NaN with fewer than two classes.
    """
    from sklearn.metrics import average_precision_score

    label, ranks = _ranked(positive, score)
    if label.all() or not label.any():
        return math.nan
    return float(average_precision_score(label, ranks))


def auroc_interval(positive: ArrayLike, score: ArrayLike) -> tuple[float, float, float]:
    """Return the `auroc` and its 95 % interval, which holds with three cases of a class and perfect order.

    Takes what `auroc` does; NaN is left out. (value, low, high) in [0, 1], never of width 0; NaN with fewer
    than two classes.

    The wider of two at each end: DeLong's variance on the logit scale, undefined where all are in order; and
    Newcombe's score interval with the variance of Hanley and McNeil (2006, method 5), defined everywhere. In
    simulations of 60 cases, 3 to 30 of them positive, it covered 95 to 99 % for scores of equal spread in
    both classes, and 87 to 98 % where one spread is twice the other.

    >>> [round(one, 2) for one in auroc_interval([1, 1, 1] + [0] * 6, [9, 8, 7, *range(6)])]
    [1.0, 0.59, 1.0]
    """
    label, known = known_pairs(positive, score)
    is_positive = _labels(label)
    if not is_positive.any() or is_positive.all():
        return math.nan, math.nan, math.nan
    hits, alarms = _placements(known, is_positive)
    value, z = float(hits.mean()), float(ndtri(_END))
    low, high = _newcombe(value, hits.size, alarms.size, z)
    if min(hits.size, alarms.size) > 1 and 0 < value < 1:
        half = z * math.sqrt(_variance(hits) + _variance(alarms)) / (value * (1 - value))
        low, high = min(low, float(expit(logit(value) - half))), max(high, float(expit(logit(value) + half)))
    return value, low, high


def auroc_p_value(positive: ArrayLike, score: ArrayLike) -> float:
    """Return the two-sided p-value of "the score has nothing to do with the label" (Mann & Whitney 1947).

    Exact, ties included, over all ways to deal the labels, up to about 100 cases, or 1,000 with 5 of a class;
    beyond, its normal limit. Takes what `auroc_interval` does. 1 where all scores are equal; NaN with fewer
    than two classes.

    >>> auroc_p_value([1, 1, 0, 0, 0], [5, 4, 3, 2, 1])  # 2 of the 10 ways are as extreme
    0.2
    """
    label, ranks = _ranked(positive, score)
    n, few = label.size, min(int(label.sum()), int((~label).sum()))
    if not few:
        return math.nan
    # Twice the ranks, since those of ties are halves; of the rarer class, whose sum has fewer values.
    twice = np.rint(2 * ranks).astype(np.int64)
    found = int(twice[label if label.sum() == few else ~label].sum())
    expected = few * (n + 1)
    if few * n * few * 2 * n > _EXACT_UP_TO:
        spread = math.sqrt(few * (n - few) / n * float(twice.var(ddof=1)))
        return 2 * float(ndtr(-abs(found - expected) / spread)) if spread else 1.0
    most = int(np.sort(twice)[-few:].sum())
    ways = np.zeros((few + 1, most + 1))
    ways[0, 0] = 1
    for one in twice.tolist():
        ways[1:, one:] += ways[:-1, : most + 1 - one]
    far = np.abs(np.arange(most + 1) - expected) >= abs(found - expected)
    return min(1.0, float(ways[-1, far].sum() / ways[-1].sum()))


def auroc_difference(positive: ArrayLike, a: ArrayLike, b: ArrayLike) -> tuple[float, float, float, float]:
    """Compare the AUROC of two scores of the same cases (DeLong, DeLong, Clarke-Pearson 1988).

    (difference, low, high, p_value) of the AUROC of ``a`` minus that of ``b``; a case without both scores is
    left out. p is 1 where the two rank alike. Interval and p are NaN for fewer than `FEWEST_OF_EACH` cases of
    a class, where nothing can be told, and where all cases differ alike: a width of 0 would claim too much.

    Student's t with the degrees of freedom of the rarer class: with the normal distribution, nine useless
    scores of 15 positives and 45 negatives are told apart in 10 % of samples instead of 5 %.

    >>> right = [1] * 15 + [0] * 15
    >>> found = auroc_difference(right, [*range(30, 0, -1)], [*range(15, 30), *range(15)])
    >>> found[0], auroc_difference([1, 0], [2, 1], [1, 2])
    (0.0, (1.0, nan, nan, nan))
    """
    first, second, label = (np.asarray(x, dtype=np.float64) for x in (a, b, positive))
    known = ~np.isnan(first + second + label)
    is_positive = _labels(label[known])
    if not is_positive.any() or is_positive.all():
        return (math.nan,) * 4
    (hits_a, alarms_a), (hits_b, alarms_b) = (_placements(x[known], is_positive) for x in (first, second))
    hits, alarms = hits_a - hits_b, alarms_a - alarms_b
    difference, freedom = float(hits.mean()), min(hits.size, alarms.size) - 1
    if not hits.any() and not alarms.any():
        return 0.0, math.nan, math.nan, 1.0
    if freedom + 1 < FEWEST_OF_EACH:
        return difference, math.nan, math.nan, math.nan
    error = math.sqrt(_variance(hits) + _variance(alarms))
    if error < 1e-12:
        return difference, math.nan, math.nan, math.nan
    half = float(stdtrit(freedom, _END)) * error
    p_value = 2 * float(stdtr(freedom, -abs(difference) / error))
    return difference, difference - half, difference + half, p_value


def risk_coverage(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    """Return the error rate when only the most confident answers are given (El-Yaniv & Wiener 2010).

    Higher ``confidence`` means answered first; only the order matters. ``correct``: 1, 0, or a quality in [0,
    1]; the risk is the mean of 1 − this. Coverage, the share answered: 1/n, 2/n, ... 1; risk in [0, 1], lower
    is better: the expected one when equally confident answers come in random order, so that their order in
    the data does not matter.
    """
    score, quality = known_pairs(confidence, correct)
    _, tie, size = np.unique(-score, return_inverse=True, return_counts=True)
    loss = np.bincount(tie, weights=1 - quality, minlength=size.size) / size
    answered = np.arange(1, score.size + 1)
    return answered / max(1, score.size), np.cumsum(np.repeat(loss, size)) / answered


def aurc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the risk-coverage curve: the mean of its risks (Geifman et al. 2019).

    Takes what `risk_coverage` does. In [0, 1], lower is better; confidence at random gives the error rate. It
    measures accuracy and ranking at once: 0 where all are correct, 1 where none is. NaN without data.
    """
    _, risk = risk_coverage(confidence, correct)
    return float(risk.mean()) if risk.size else math.nan


def e_aurc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the excess AURC: `aurc` minus that of a perfect ranking (Geifman et al. 2019).

    Takes what `risk_coverage` does. In [0, 1], lower is better, 0 is a perfect ranking. NaN where all answers
    are equally good: nothing is there to be ranked.
    """
    return _aurc_gaps(confidence, correct)[0]


def prr(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the prediction rejection ratio: the share of the possible gain realised (Malinin & Gales 2021).

    (A − A_random) / (A_oracle − A_random), where A is the area under the mean quality of the answers kept
    against the share rejected: 1 − `aurc`; A_random is exactly the mean quality. Takes what `risk_coverage`
    does. At most 1, higher is better: 1 is a perfect ranking, 0 chance, below 0 worse. NaN where all answers
    are equally good.
    """
    excess, possible = _aurc_gaps(confidence, correct)
    return 1 - excess / possible


def _newcombe(value: float, n: int, m: int, z: float) -> Interval:
    """Return the AUROCs whose own standard error, times z, reaches the observed one."""
    shift = (n + m) / 2 - 1
    found = []
    for bound in (0.0, 1.0):
        inside, outside = value, bound
        for _ in range(_HALVINGS):
            one = (inside + outside) / 2
            variance = one * (1 - one) * (1 + shift * ((1 - one) / (2 - one) + one / (1 + one))) / (n * m)
            inside, outside = (one, outside) if (one - value) ** 2 <= z * z * variance else (inside, one)
        found.append(inside)
    return found[0], found[1]


def _variance(placements: Floats) -> float:
    return float(placements.var(ddof=1)) / placements.size


def _placements(score: Floats, label: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the share of negatives below each positive, and of positives above each negative."""
    from scipy.stats import rankdata

    ranks, n = rankdata(score), int(label.sum())
    hits = (ranks[label] - rankdata(score[label])) / (label.size - n)
    return hits, 1 - (ranks[~label] - rankdata(score[~label])) / n


def _ranked(positive: ArrayLike, score: ArrayLike) -> tuple[NDArray[np.bool_], Floats]:
    """Return ranks, which keep order and ties of the scores and are finite where a score is not."""
    from scipy.stats import rankdata

    label, known = known_pairs(positive, score)
    return _labels(label), rankdata(known)


def _labels(given: ArrayLike) -> NDArray[np.bool_]:
    """Return labels as bool; ValueError where they are no labels, as where score and label change places."""
    label = np.asarray(given, dtype=np.float64)
    if not ((label == 0) | (label == 1)).all():
        raise ValueError("Labels must be 0 or 1, and come before the scores.")
    return label.astype(bool)


def _aurc_gaps(confidence: ArrayLike, correct: ArrayLike) -> Interval:
    """Return AURC above that of the perfect ranking: that of this ranking, and that of a random one."""
    score, quality = known_pairs(confidence, correct)
    if not quality.size or (quality == quality[0]).all():
        return UNDEFINED
    perfect = aurc(quality, quality)
    return max(0.0, aurc(score, quality) - perfect), float(1 - quality.mean()) - perfect
