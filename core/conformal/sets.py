"""Sets of answers, made of groups of samples, that hold a correct one with a promised probability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Bools, Floats
from core.conformal.arguments import column, ragged
from core.conformal.split import conformal_threshold, label_shortage
from core.errors import InputError
from core.stats import wilson_interval


@dataclass(frozen=True)
class SetRule:
    """Which groups of samples a set holds.

    Attributes
    ----------
    threshold : float
        A set holds the groups that score at most this. +inf: it holds all, and no coverage is promised.
    n : int
        Questions calibrated on.
    n_without_correct : int
        Those in which no sample was correct: no set can cover them.
    share_without_correct, low, high : float
        Their share with its 95 % interval; NaN for n = 0.
    reason : str
        Why no coverage is promised; empty where it is.
    """

    threshold: float
    n: int
    n_without_correct: int
    share_without_correct: float
    low: float
    high: float
    reason: str

    def holds(self, scores: ArrayLike) -> Bools:
        """Return which groups of a new question its set holds, (n_groups,); nothing rules NaN out."""
        return ~(column("scores", scores) > self.threshold)


def rarity(sizes: ArrayLike) -> Floats:
    """Return the score of each group of samples by its size: 1 − its share of the samples.

    Of all scores that know the shares alone this gives the smallest sets on average, if the shares are the
    model's probabilities (Sadinle, Lei, Wasserman 2019).

    Parameters
    ----------
    sizes : array_like, shape (n_groups,)
        Samples of each group, at least 0, or their summed probability.

    Returns
    -------
    ndarray, shape (n_groups,)
        In [0, 1], high = rare.

    Raises
    ------
    InputError
        A size is below 0 or missing, or all are 0.

    Examples
    --------
    >>> rarity([3, 1]).tolist()
    [0.25, 0.75]
    """
    counts = column("sizes", sizes)
    if not (np.isfinite(counts) & (counts >= 0)).all() or (counts.size and not counts.any()):
        raise InputError("sizes must be at least 0, and not all 0.")
    return np.asarray(1 - counts / counts.sum() if counts.size else counts, dtype=np.float64)


def calibrate_sets(scores: Sequence[ArrayLike], correct: Sequence[ArrayLike], alpha: float) -> SetRule:
    """Return the rule whose sets hold a correct answer with probability at least 1 − α.

    The score of a question is that of its most plausible correct group, and +inf where no sample is correct.
    With a finite threshold the promise includes those questions: they count as missed. Where there are too
    many of them the threshold is infinite: the set is everything that was sampled, and may still miss.

    Parameters
    ----------
    scores : sequence of array_like
        For each question the score of each group of its samples, high = implausible (`rarity`, or another
        that needs no label); finite.
    correct : sequence of array_like
        For each question whether each group is correct: 1 or 0; no NaN.
    alpha : float
        Between 0 and 1.

    Returns
    -------
    SetRule
        The smallest threshold, and so the smallest sets, with that promise.

    Raises
    ------
    InputError
        An argument is outside its range, or a score or label is missing.

    References
    ----------
    Li et al. 2023, arXiv 2307.04642 (TRAQ); Sadinle, Lei, Wasserman 2019, arXiv 1609.00451.

    Examples
    --------
    >>> rule = calibrate_sets([[0.25, 0.75], [0.4, 0.6], [0.0]], [[1, 0], [0, 1], [1]], 0.25)
    >>> rule.threshold, rule.holds([0.1, 0.9]).tolist()
    (0.6, [True, False])
    """
    score, label, question = ragged("scores", scores, "correct", correct)
    unusable = question[~np.isfinite(score) | np.isnan(label)]
    if unusable.size:
        raise InputError(f"scores[{unusable[0]}] must be finite and correct[{unusable[0]}] known.")
    best = np.full(len(scores), math.inf)
    np.minimum.at(best, question[label == 1], score[label == 1])
    n, without = best.size, int(np.isinf(best).sum())
    threshold = conformal_threshold(best, alpha)
    share = without / n if n else math.nan
    reason = label_shortage(n, alpha)
    if not reason and threshold == math.inf:
        reason = (
            f"In {without:,} of {n:,} questions no sample was correct, more than α = {alpha} allows: "
            "each set holds every answer sampled, and may still miss."
        )
    return SetRule(threshold, n, without, share, *wilson_interval(share, n), reason)
