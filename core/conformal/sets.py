"""Thresholds on lists: sets of sampled answers that hold a correct one, and claims that can be kept.

Every function raises InputError where an argument is outside its range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Bools, Floats, Ints
from core.conformal.split import column, conformal_threshold, label_shortage, labels, same_length
from core.errors import InputError
from core.stats import wilson_interval


@dataclass(frozen=True)
class SetRule:
    """Which groups of samples a set holds: those that score at most ``threshold``.

    +inf: it holds all, no coverage is promised, and ``reason`` says why. Of ``n`` calibration questions a
    share with its 95 % interval (NaN for n = 0) has no correct sample: no set can cover these.
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
    """Return the score of each group of samples by its size: 1 − its share, in [0, 1], high = rare.

    Of all scores that know the shares alone this gives the smallest sets on average, if the shares are the
    model's probabilities (Sadinle, Lei, Wasserman 2019). ``sizes`` are samples or their summed probability.

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

    References
    ----------
    Li et al. 2023, arXiv 2307.04642 (TRAQ); Sadinle, Lei, Wasserman 2019, arXiv 1609.00451.

    Examples
    --------
    >>> rule = calibrate_sets([[0.25, 0.75], [0.4, 0.6], [0.0]], [[1, 0], [0, 1], [1]], 0.25)
    >>> rule.threshold, rule.holds([0.1, 0.9]).tolist()
    (0.6, [True, False])
    """
    score, label, question = _ragged("scores", scores, "correct", correct)
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


@dataclass(frozen=True)
class Backoff:
    """Which claims of an answer to keep: those that score more than ``threshold``.

    +inf (keep nothing) where ``n`` labelled answers do not suffice, with a ``reason``; −inf (keep all) where
    hardly any answer had a wrong claim.
    """

    threshold: float
    n: int
    reason: str

    def kept(self, claim_scores: ArrayLike) -> Bools:
        """Return which claims of a new answer to keep, (n_claims,); never one without a score (NaN)."""
        return column("claim_scores", claim_scores) > self.threshold


def factuality_backoff(
    claim_scores: Sequence[ArrayLike], claim_correct: Sequence[ArrayLike], alpha: float
) -> Backoff:
    """Return from which score on claims are kept, so that all kept are correct with probability ≥ 1 − α.

    The probability is over calibration answers and new answer together, which must come from one
    population; an answer of which nothing is kept counts as correct.

    Parameters
    ----------
    claim_scores : sequence of array_like
        For each answer the score of each claim: higher = better supported. NaN: never kept.
    claim_correct : sequence of array_like
        For each answer whether each claim is correct: 1, 0, or NaN (unknown). An answer with an unknown one
        is left out; the statement is then about answers whose claims can all be judged.
    alpha : float
        Between 0 and 1.

    Returns
    -------
    Backoff
        Its threshold is the conformal one of the highest score of a wrong claim in each answer (−inf without
        one). A claim is kept above it, not at it, so that ties need no noise.

    References
    ----------
    Mohri & Hashimoto 2024, arXiv 2402.10978.

    Examples
    --------
    >>> rule = factuality_backoff([[0.9, 0.2], [0.8, 0.4], [0.7]], [[1, 0], [1, 0], [1]], 0.25)
    >>> rule.threshold, rule.kept([0.5, 0.4]).tolist()
    (0.4, [True, False])
    """
    score, correct, answer = _ragged("claim_scores", claim_scores, "claim_correct", claim_correct)
    highest = np.full(len(claim_scores), -math.inf)
    wrong = (correct == 0) & ~np.isnan(score)
    np.maximum.at(highest, answer[wrong], score[wrong])
    highest[answer[np.isnan(correct)]] = math.nan
    n = int(np.count_nonzero(~np.isnan(highest)))
    return Backoff(conformal_threshold(highest, alpha), n, label_shortage(n, alpha))


def _ragged(
    first: str, values: Sequence[ArrayLike], second: str, right: Sequence[ArrayLike]
) -> tuple[Floats, Floats, Ints]:
    """Return lists of numbers and their labels one after another, and the list that each came from."""
    same_length(first, len(values), second, len(right))
    given = [column(f"{first}[{i}]", one) for i, one in enumerate(values)]
    known = [column(f"{second}[{i}]", one) for i, one in enumerate(right)]
    for i, (one, other) in enumerate(zip(given, known, strict=True)):
        same_length(f"{first}[{i}]", one.size, f"{second}[{i}]", other.size)
    row = np.repeat(np.arange(len(given)), [one.size for one in given])
    return np.concatenate([[], *given]), labels(second, np.concatenate([[], *known])), row
