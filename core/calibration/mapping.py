"""From a confidence to a probability: Platt scaling and isotonic regression, and what they change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from core.arrays import Floats
from core.errors import InputError
from core.stats import (
    aurc,
    auroc,
    brier_score,
    expected_calibration_error,
    isotonic_fit,
    known_pairs,
    maximum_calibration_error,
    platt_fit,
)

KINDS = ("none", "platt", "isotonic")
_FOLDS = 5


@dataclass(frozen=True)
class ConfidenceMap:
    """A function from confidence to probability.

    ``none`` (the confidence itself), ``platt`` with slope and intercept, or ``isotonic`` with knots, x rising
    and y not falling in [0, 1]. InputError for another kind, or parts that are not those of the kind.
    """

    kind: str = "none"
    slope: float = 0.0
    intercept: float = 0.0
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"There is no map {self.kind!r:.40}; there are {', '.join(KINDS)}.")
        line, knots = (self.slope, self.intercept), (*self.x, *self.y)
        if (self.kind == "isotonic") != bool(self.x) or len(self.x) != len(self.y):
            raise InputError("x and y of a map must be of equal length, and empty but for isotonic.")
        if not all(map(math.isfinite, line)) or (self.kind != "platt" and any(line)):
            raise InputError("slope and intercept of a map must be numbers, and 0 but for platt.")
        if not all(0 <= one <= 1 for one in knots):
            raise InputError("x and y of a map must lie in [0, 1].")
        if any(a >= b for a, b in pairwise(self.x)) or any(a > b for a, b in pairwise(self.y)):
            raise InputError("x of a map must rise, and y must not fall.")

    def __call__(self, confidence: ArrayLike) -> Floats:
        """Return the probability of each confidence, of the same shape; NaN stays."""
        given = np.asarray(confidence, dtype=np.float64)
        if self.kind == "platt":
            return np.asarray(expit(self.slope * given + self.intercept), dtype=np.float64)
        if self.kind == "isotonic":
            return np.asarray(np.interp(given, self.x, self.y), dtype=np.float64)
        return given


NO_MAP = ConfidenceMap()


@dataclass(frozen=True)
class ConfidenceQuality:
    """How well a confidence tells correct from wrong answers, in [0, 1]; but for auroc lower is better."""

    n: int
    ece: float
    mce: float
    brier: float
    auroc: float
    aurc: float


@dataclass(frozen=True)
class Mapped:
    """A map fitted to all answers (``none``, with a ``reason``, where it cannot be), and what it changes.

    ``after`` is the quality of the cross-validated probability: each answer's by a map fitted to others.
    """

    map: ConfidenceMap
    before: ConfidenceQuality
    after: ConfidenceQuality
    reason: str


def quality(confidence: ArrayLike, correct: ArrayLike) -> ConfidenceQuality:
    """Return every measure of a confidence in [0, 1]; NaN of it or of ``correct`` (1, 0) is left out."""
    p, right = known_pairs(confidence, correct)
    order = np.round(p, 9)  # ties are ties however they were summed
    return ConfidenceQuality(
        p.size,
        expected_calibration_error(p, right),
        maximum_calibration_error(p, right),
        brier_score(p, right),
        auroc(right, order),
        aurc(order, right),
    )


def fit_map(confidence: ArrayLike, correct: ArrayLike, kind: str) -> ConfidenceMap:
    """Fit a map; ``none`` where all or none are correct, or it would reverse the order."""
    if kind == "platt":
        slope, intercept = platt_fit(confidence, correct)
        return ConfidenceMap("platt", slope, intercept) if slope > 0 else ConfidenceMap()
    if kind == "isotonic":
        x, y = isotonic_fit(confidence, correct)
        return (
            ConfidenceMap("isotonic", x=tuple(x.tolist()), y=tuple(y.tolist())) if x.size else ConfidenceMap()
        )
    return ConfidenceMap(kind)


def calibrate_map(confidence: ArrayLike, correct: ArrayLike, kind: str, seed: int = 0) -> Mapped:
    """Fit a map and tell what it changes on answers that it was not fitted to, in five folds; cost: six fits.

    ``platt`` (two numbers) is for few labels, ``isotonic`` (any rising function) for hundreds. The order of
    the answers does not matter. Undefined, with a reason, below 10 correct and 10 wrong answers.
    """
    p, right = known_pairs(confidence, correct)
    order = np.lexsort((p, right))
    p, right = p[order], right[order]
    before, n_right = quality(p, right), int(right.sum())
    if min(n_right, p.size - n_right) < 2 * _FOLDS:
        reason = (
            f"too few labels: {n_right} correct and {p.size - n_right} wrong, at least {2 * _FOLDS} of each"
        )
        return Mapped(ConfidenceMap(), before, ConfidenceQuality(0, *[math.nan] * 5), f"{reason} are needed")
    fold, tested = np.empty(p.size, dtype=np.int64), np.full(p.size, math.nan)
    shuffled = np.lexsort((np.random.default_rng(seed).permutation(p.size), right))
    fold[shuffled] = np.arange(p.size) % _FOLDS
    for number in range(_FOLDS):
        out = fold == number
        tested[out] = fit_map(p[~out], right[~out], kind)(p[out])
    return Mapped(fit_map(p, right, kind), before, quality(tested, right), "")
