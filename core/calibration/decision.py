"""To answer or to withhold: what a threshold on the confidence lets through."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from core.arrays import Floats
from core.calibration.weighted import half_up
from core.stats import wilson_interval


class WhatIf(NamedTuple):
    """What a confidence and a threshold let through.

    Attributes
    ----------
    threshold : float
        An answer passes from this confidence on, after rounding half-up to two places.
    n, n_passing : int
        Answers with a confidence; those that pass.
    n_labelled, n_correct : int
        Of those that pass: with a label, and correct.
    coverage, accuracy : float
        ``n_passing / n`` and ``n_correct / n_labelled``, in [0, 1], higher is better; NaN without a case.
    low, high : float
        Wilson's 95 % interval of the accuracy.
    """

    threshold: float
    n: int
    n_passing: int
    n_labelled: int
    n_correct: int
    coverage: float
    accuracy: float
    low: float
    high: float


def whatif(confidence: Floats, correct: Floats, threshold: float) -> WhatIf:
    """Return what a threshold lets through.

    Parameters
    ----------
    confidence : ndarray, shape (n,)
        In [0, 1]; NaN where undefined.
    correct : ndarray, shape (n,)
        1, 0 or NaN.
    threshold : float
        In [0, 1].
    """
    passes = half_up(confidence) >= threshold
    n, n_passing = int(np.count_nonzero(~np.isnan(confidence))), int(passes.sum())
    right = correct[passes & ~np.isnan(correct)]
    accuracy = float(right.mean()) if right.size else math.nan
    coverage = n_passing / n if n else math.nan
    counts = n, n_passing, right.size, int(right.sum())
    return WhatIf(threshold, *counts, coverage, accuracy, *wilson_interval(accuracy, right.size))
