"""To answer or to withhold: what a threshold on the confidence lets through."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from core.arrays import Floats
from core.calibration.weighted import half_up
from core.stats import wilson_interval


class WhatIf(NamedTuple):
    """What a confidence and a threshold let through, after rounding half-up to two places.

    Of the ``n_passing`` of ``n`` answers with a confidence ``n_labelled`` have a label. ``coverage`` and
    ``accuracy`` lie in [0, 1], higher is better, NaN without a case; ``low, high`` is Wilson's 95 % interval
    of the accuracy.
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
    """Return what a threshold lets through; ``correct`` is 1, 0 or NaN, ``confidence`` in [0, 1] or NaN."""
    passes = half_up(confidence) >= threshold
    n, n_passing = int(np.count_nonzero(~np.isnan(confidence))), int(passes.sum())
    right = correct[passes & ~np.isnan(correct)]
    accuracy = float(right.mean()) if right.size else math.nan
    coverage = n_passing / n if n else math.nan
    counts = n, n_passing, right.size, int(right.sum())
    return WhatIf(threshold, *counts, coverage, accuracy, *wilson_interval(accuracy, right.size))
