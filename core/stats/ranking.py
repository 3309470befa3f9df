"""How well a score ranks: AUROC and its kin, risk and coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from core.arrays import Floats
from core.stats.shared import UNDEFINED, Interval, known_pairs, known_values, resamples

_NEAR = 200_000  # resampled cases at once: they stay near the processor, and the draws are the same

RANKING_MEASURES = ("auroc", "auprc", "prr", "aurc", "e_aurc")


def auroc(score: ArrayLike, positive: ArrayLike) -> float:
    """Return P(a positive scores higher than a negative), ties counted half (Hanley & McNeil 1982).

    Parameters
    ----------
    score : array_like, shape (n,)
        Higher means more likely positive; only the order matters.
    positive : array_like of bool, shape (n,)
        The label.

    Returns
    -------
    float
        In [0, 1], higher is better, 0.5 is chance. NaN with fewer than two classes.
    """
    ranks, label = _ranked(score, positive)
    n = int(label.sum())
    if n in (0, label.size):
        return math.nan
    return float((ranks[label].sum() - n * (n + 1) / 2) / (n * (label.size - n)))


def aurocs(scores: ArrayLike, positive: ArrayLike) -> Floats:
    """Return the `auroc` of many scores of the same cases at once.

    Parameters
    ----------
    scores : array_like, shape (m, n)
        No NaN.
    positive : array_like of bool, shape (n,)
        The label.

    Returns
    -------
    ndarray, shape (m,)
        NaN with fewer than two classes.
    """
    rows, label = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    n = int(label.sum())
    if n in (0, label.size):
        return np.full(len(rows), math.nan)
    # Five times faster than ranks: a fit on a grid needs hundreds, and its interval hundreds of fits.
    order = np.argsort(rows, axis=1)
    ordered, is_positive = np.take_along_axis(rows, order, axis=1), label[order]
    is_new = np.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    below = np.maximum.accumulate(np.where(is_new, np.arange(label.size), 0), axis=1)
    n_before = np.cumsum(~is_positive, axis=1) - ~is_positive
    negatives_below = np.take_along_axis(n_before, below, axis=1)
    lead = np.where(is_positive, negatives_below, negatives_below - below).sum(axis=1)
    found: Floats = 0.5 + lead / (2 * n * (label.size - n))
    return found


def auprc(score: ArrayLike, positive: ArrayLike) -> float:
    """Return the area under the precision-recall curve as average precision (Davis & Goadrich 2006).

    Parameters as for `auroc`; equal scores are one step of the curve.

    Returns
    -------
    float
        In (0, 1], higher is better; chance is about the share of positives. NaN with fewer than two classes.
    """
    from sklearn.metrics import average_precision_score

    ranks, label = _ranked(score, positive)
    if label.all() or not label.any():
        return math.nan
    return float(average_precision_score(label, ranks))


def auroc_difference(
    a: ArrayLike, b: ArrayLike, positive: ArrayLike, level: float = 0.95
) -> tuple[float, float, float, float]:
    """Compare the AUROC of two scores of the same cases (DeLong, DeLong, Clarke-Pearson 1988).

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Higher means more likely positive; a case without both scores is left out.
    positive : array_like of bool, shape (n,)
        The label.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    (difference, low, high, p_value) : tuple of float
        AUROC of ``a`` minus that of ``b``, and what the normal approximation says of it. p is 1 where the two
        rank alike. Interval and p are NaN for fewer than two cases of a class, and where all cases differ
        alike: a width of 0 would claim too much.

    Examples
    --------
    >>> right = [1, 1, 1, 1, 0, 0, 0, 0]
    >>> found = auroc_difference([8, 7, 6, 3, 5, 4, 2, 1], [8, 2, 6, 3, 5, 4, 7, 1], right)
    >>> [round(number, 3) for number in found]
    [0.312, -0.123, 0.748, 0.16]
    """
    first, second, label = (np.asarray(x, dtype=np.float64) for x in (a, b, positive))
    known = ~np.isnan(first + second + label)
    is_positive = label[known].astype(bool)
    if not is_positive.any() or is_positive.all():
        return (math.nan,) * 4
    (hits_a, alarms_a), (hits_b, alarms_b) = (_placements(x[known], is_positive) for x in (first, second))
    hits, alarms = hits_a - hits_b, alarms_a - alarms_b
    difference = float(hits.mean())
    if not hits.any() and not alarms.any():
        return 0.0, math.nan, math.nan, 1.0
    if min(hits.size, alarms.size) < 2:
        return difference, math.nan, math.nan, math.nan
    error = math.sqrt(hits.var(ddof=1) / hits.size + alarms.var(ddof=1) / alarms.size)
    if error < 1e-12:
        return difference, math.nan, math.nan, math.nan
    half = float(ndtri((1 + level) / 2)) * error
    return difference, difference - half, difference + half, 2 * float(ndtr(-abs(difference) / error))


def risk_coverage(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    """Return the error rate when only the most confident answers are given (El-Yaniv & Wiener 2010).

    Parameters
    ----------
    confidence : array_like, shape (n,)
        Higher means answered first; only the order matters.
    correct : array_like, shape (n,)
        1 correct, 0 wrong, or a quality in [0, 1]; the risk is the mean of 1 − this.

    Returns
    -------
    coverage : ndarray, shape (n,)
        The share answered: 1/n, 2/n, ... 1.
    risk : ndarray, shape (n,)
        In [0, 1], lower is better: the expected risk when equally confident answers come in random order, so
        that their order in the data does not matter.
    """
    score, quality = known_pairs(confidence, correct)
    _, tie, size = np.unique(-score, return_inverse=True, return_counts=True)
    loss = np.bincount(tie, weights=1 - quality, minlength=size.size) / size
    answered = np.arange(1, score.size + 1)
    return answered / max(1, score.size), np.cumsum(np.repeat(loss, size)) / answered


def aurc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the risk-coverage curve: the mean of its risks (Geifman et al. 2019).

    Parameters as for `risk_coverage`.

    Returns
    -------
    float
        In [0, 1], lower is better; confidence at random gives the error rate. It measures accuracy and
        ranking at once: 0 where all are correct, 1 where none is. NaN without data.
    """
    _, risk = risk_coverage(confidence, correct)
    return float(risk.mean()) if risk.size else math.nan


def e_aurc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the excess AURC: `aurc` minus that of a perfect ranking (Geifman et al. 2019).

    Parameters as for `risk_coverage`.

    Returns
    -------
    float
        In [0, 1], lower is better, 0 is a perfect ranking. NaN where all answers are equally good: nothing
        is there to be ranked.
    """
    return _aurc_gaps(confidence, correct)[0]


def prr(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the prediction rejection ratio: the share of the possible gain realised (Malinin & Gales 2021).

    (A − A_random) / (A_oracle − A_random), where A is the area under the mean quality of the answers kept
    against the share rejected: 1 − `aurc`; A_random is exactly the mean quality. Parameters as for
    `risk_coverage`.

    Returns
    -------
    float
        At most 1, higher is better: 1 is a perfect ranking, 0 chance, below 0 worse than chance. NaN where
        all answers are equally good.
    """
    excess, possible = _aurc_gaps(confidence, correct)
    return 1 - excess / possible


def ranking_quality(
    confidence: ArrayLike,
    correct: ArrayLike,
    n_resamples: int = 2_000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, tuple[float, float, float]]:
    """Return how well a confidence ranks right answers before wrong ones, with bootstrap intervals.

    Parameters
    ----------
    confidence : array_like, shape (n,)
        Higher means answered first; NaN is left out.
    correct : array_like of bool, shape (n,)
        Whether the answer is right; NaN is left out.
    n_resamples, seed, level
        As in `bootstrap_interval`, of which this is the special case that takes no Python loop.

    Returns
    -------
    dict of str to (value, low, high)
        ``auroc`` and ``auprc`` of finding the wrong answers; ``prr``, ``aurc`` and ``e_aurc`` as the
        functions of these names. NaN where all or none are right, but for ``aurc``.

    Examples
    --------
    >>> value, low, high = ranking_quality([0.9, 0.8, 0.6, 0.4, 0.3], [1, 1, 0, 1, 0])["auroc"]
    >>> round(value, 3), low < value <= high
    (0.833, True)
    """
    (found,) = ranking_qualities([confidence], correct, n_resamples, seed, level)
    return found


def ranking_qualities(
    confidences: Sequence[ArrayLike],
    correct: ArrayLike,
    n_resamples: int = 2_000,
    seed: int = 0,
    level: float = 0.95,
) -> list[dict[str, tuple[float, float, float]]]:
    """Return `ranking_quality` of several confidences in the same answers, from the same resamples.

    Those that are known for equally many answers share the draws, which take as long as the measures.
    """
    pairs = [known_pairs(confidence, correct) for confidence in confidences]
    found: list[dict[str, tuple[float, float, float]]] = [{} for _ in pairs]
    for n in {score.size for score, _ in pairs}:
        places = [i for i, (score, _) in enumerate(pairs) if score.size == n]
        if not n:
            for i in places:
                found[i] = dict.fromkeys(RANKING_MEASURES, (math.nan,) * 3)
            continue
        ranked = [_ranking(*pairs[i]) for i in places]
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
        drawn: list[list[Floats]] = [[] for _ in places]
        rng = np.random.default_rng(seed)
        batch, n_drawn = max(1, _NEAR // n), resamples(n_resamples, n)
        for start in range(0, n_drawn, batch):
            size = min(batch, n_drawn - start)
            counts = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(float)
            for (order, first, quality), measures in zip(ranked, drawn, strict=True):
                measures.append(_ranking_measures(counts[:, order], first, quality, harmonic))
        for i, (_, first, quality), measures in zip(places, ranked, drawn, strict=True):
            value = _ranking_measures(np.ones((1, n)), first, quality, harmonic)[:, 0]
            found[i] = _intervals(value, np.concatenate(measures, axis=1), n, n_drawn, level)
    return found


def _ranking(score: Floats, quality: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return the order of the cases, surest first, where in it a new score begins, and the quality in it."""
    order = np.argsort(-score, kind="stable")
    ordered = score[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])), quality[order]


def _intervals(
    value: Floats, resampled: Floats, n: int, n_resamples: int, level: float
) -> dict[str, tuple[float, float, float]]:
    found = {}
    for name, exact, drawn in zip(RANKING_MEASURES, value, resampled, strict=True):
        usable = known_values(drawn)
        ends = (
            np.quantile(usable, [(1 - level) / 2, (1 + level) / 2])
            if n > 1 and 2 * usable.size >= n_resamples and not math.isnan(exact)
            else UNDEFINED
        )
        found[name] = float(exact), float(ends[0]), float(ends[1])
    return found


def _ranking_measures(counts: Floats, first: NDArray[np.intp], quality: Floats, harmonic: Floats) -> Floats:
    """Return the measures, (5, resamples), of cases drawn ``counts`` times, the most confident first.

    ``first`` is where a new confidence begins, ``harmonic`` the sums of 1/1 to 1/i.
    """
    size, right = (np.add.reduceat(one, first, axis=1) for one in (counts, counts * quality))
    wrong = size - right
    n, n_right, n_wrong = size.sum(axis=1), right.sum(axis=1), wrong.sum(axis=1)
    answered = np.cumsum(size, axis=1)
    wrong_before = np.cumsum(wrong, axis=1) - wrong
    ends, starts = answered.astype(int), (answered - size).astype(int)
    # The k-th answer's risk, summed over a tie whose errors come in random order.
    rate = wrong / np.maximum(1.0, size)
    slope = (wrong_before - starts * rate) * (harmonic[ends] - harmonic[starts])
    area = (slope + wrong).sum(axis=1) / n
    gap = harmonic[n.astype(int)] - harmonic[n_right.astype(int)]
    perfect = (n_wrong - n_right * gap) / n
    right_before = np.cumsum(right, axis=1) - right
    # Found from the least confident on.
    alarms, hits = n[:, None] - answered + size, n_wrong[:, None] - wrong_before
    with np.errstate(invalid="ignore", divide="ignore"):
        curve = (wrong * (right_before + right / 2)).sum(axis=1) / (n_wrong * n_right)
        precision = (wrong * hits / np.maximum(1.0, alarms)).sum(axis=1) / n_wrong
        rejection = 1 - (area - perfect) / (n_wrong / n - perfect)
    found = np.array([curve, precision, rejection, area, np.maximum(0.0, area - perfect)])
    found[:, (n_wrong == 0) | (n_right == 0)] = math.nan
    found[3] = area
    return found


def _placements(score: Floats, label: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the share of negatives below each positive, and of positives above each negative."""
    from scipy.stats import rankdata

    ranks, n = rankdata(score), int(label.sum())
    hits = (ranks[label] - rankdata(score[label])) / (label.size - n)
    return hits, 1 - (ranks[~label] - rankdata(score[~label])) / n


def _ranked(score: ArrayLike, positive: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Return ranks, which keep order and ties of the scores and are finite where a score is not."""
    from scipy.stats import rankdata

    known, label = known_pairs(score, positive)
    return rankdata(known), label.astype(bool)


def _aurc_gaps(confidence: ArrayLike, correct: ArrayLike) -> Interval:
    """Return AURC above that of the perfect ranking: that of this ranking, and that of a random one."""
    score, quality = known_pairs(confidence, correct)
    if not quality.size or (quality == quality[0]).all():
        return UNDEFINED
    perfect = aurc(quality, quality)
    return max(0.0, aurc(score, quality) - perfect), float(1 - quality.mean()) - perfect
