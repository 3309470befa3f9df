"""Two weightings of the same answers side by side."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from core.arrays import Floats
from core.calibration.weighted import Weighting, confidences, half_up
from core.confidence.labelled import Labelled
from core.stats import auroc, auroc_difference, holm, paired_interval, paired_permutation_test


class Compared(NamedTuple):
    """One measure of two weightings.

    Attributes
    ----------
    measure : str
        ``accuracy`` (share of answers that pass and are correct, or do not pass and are wrong), ``brier`` or
        ``auroc``.
    n : int
        Answers.
    a, b : float
        Its value in the first and the second.
    difference, low, high : float
        ``b`` − ``a`` with its 95 % interval.
    p_value : float
        Of no difference: randomisation within pairs for accuracy and Brier score, DeLong's test for AUROC.
    p_adjusted : float
        Holm's, over the three measures.
    """

    measure: str
    n: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    p_adjusted: float


def compare_weightings(rows: Labelled, a: Weighting, b: Weighting) -> tuple[Compared, ...]:
    """Compare two weightings, each with its own weights, ranges and threshold.

    Parameters
    ----------
    rows : Labelled
        Answers that neither of the two was learned from; else the comparison favours the learned one.
    a, b : Weighting
        Say, the configuration in use and the one proposed.

    Returns
    -------
    tuple of Compared
        Accuracy at the threshold (higher is better), Brier score (lower) and AUROC (higher). Values and
        p-values are undefined without answers; AUROC also where all or none are correct.
    """
    found = confidences(rows.signals, a), confidences(rows.signals, b)
    return compare_confidences(*found, rows.correct, (a.threshold, b.threshold))


def compare_confidences(
    a: Floats, b: Floats, correct: Floats, thresholds: tuple[float, float]
) -> tuple[Compared, ...]:
    """Compare two confidences of the same answers, each with its own threshold, as `compare_weightings`.

    Parameters
    ----------
    a, b : ndarray, shape (n,)
        In [0, 1], all defined; each answer's by a weighting that was not learned from it.
    correct : ndarray, shape (n,)
        1 correct, 0 wrong.
    thresholds : (float, float)
        Of the first and the second.
    """
    right = correct == 1
    hit_a, hit_b = (half_up(a) >= thresholds[0]) == right, (half_up(b) >= thresholds[1]) == right
    tests = [
        _paired("accuracy", hit_a.astype(float), hit_b.astype(float), share=True),
        _paired("brier", (a - correct) ** 2, (b - correct) ** 2, share=False),
    ]
    scores = np.round(a, 9), np.round(b, 9)
    difference, low, high, p = auroc_difference(correct, scores[1], scores[0])
    ranked = auroc(correct, scores[0]), auroc(correct, scores[1])
    tests.append(Compared("auroc", correct.size, *ranked, difference, low, high, p, math.nan))
    adjusted = holm([one.p_value for one in tests]).tolist()
    return tuple(one._replace(p_adjusted=p) for one, p in zip(tests, adjusted, strict=True))


def _paired(measure: str, a: Floats, b: Floats, share: bool) -> Compared:
    means = (float(a.mean()), float(b.mean())) if a.size else (math.nan, math.nan)
    interval = paired_interval(a, b, share=share)
    p = paired_permutation_test(a, b)
    return Compared(measure, a.size, *means, means[1] - means[0], *interval, p, math.nan)
