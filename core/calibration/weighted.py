"""One confidence from several signals: their weighted sum, each brought to [0, 1] by its declared range."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.errors import InputError
from core.stats import wilson_interval

WEIGHTS: Mapping[str, float] = MappingProxyType({"similarity": 0.45, "lexical": 0.35, "llm": 0.20})
RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"similarity": (0.0, 1.0), "lexical": (0.0, 100.0), "llm": (0.0, 1.0)}
)
THRESHOLD = 0.6
THRESHOLD_VARIABLE = "RAG_CONFIDENCE_THRESHOLD"
_FEWEST, _NARROW = 5, 0.05  # values, and the part of the range that they must leave
_DIGITS = 9  # more than any decimal that is rounded here, fewer than a float has


@dataclass(frozen=True)
class Weighting:
    """How signals become one confidence; InputError where a part is not as it must be.

    Weights are at least 0 and sum to 1; a range, the values that mean confidence 0 and 1, is there for every
    signal with a weight. An answer passes from the ``threshold`` in [0, 1] on.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=lambda: RANGES)
    threshold: float = THRESHOLD

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            if not (math.isfinite(weight) and weight >= 0):
                raise InputError(f"The weight of {name} must be a number of at least 0, got {weight!r}.")
            low, high = self.ranges.get(name, (math.nan, math.nan))
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise InputError(f"The range of {name} must be two numbers, low < high, got {(low, high)!r}.")
        if abs(sum(self.weights.values()) - 1) > 1e-6:
            raise InputError(f"The weights must sum to 1, got {sum(self.weights.values()):.6g}.")
        if not 0 <= self.threshold <= 1:
            raise InputError(f"The threshold must lie in [0, 1], got {self.threshold!r}.")


@dataclass(frozen=True)
class Confidence:
    """The confidence of an answer: ``score`` in [0, 1], higher = more confident, half-up to 2 places.

    ``components`` is each signal in [0, 1], rounded likewise, NaN where missing; ``contributions`` weight
    times signal, not rounded. ``passes`` is whether the score, as rounded, reaches the threshold. Where the
    score is undefined it is NaN, ``passes`` None, and ``reason`` says why.
    """

    score: float
    components: Mapping[str, float]
    contributions: Mapping[str, float]
    weights: Mapping[str, float]
    threshold: float
    passes: bool | None
    reason: str


@dataclass(frozen=True)
class RangeWarning:
    """The values of a signal are far from its declared range: those outside count as its nearest end."""

    n: int
    n_outside: int
    sentence: str


def configured(
    weights: Mapping[str, float] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    threshold: float | None = None,
) -> Weighting:
    """Return the weighting of a call: what is given, else the environment, else the defaults.

    Parameters
    ----------
    weights : mapping of str to float, optional
        All weights; signals that are not named have none.
    ranges : mapping of str to (float, float), optional
        Declared ranges that differ from the defaults, and those of further signals.
    threshold : float, optional
        By default that of the environment variable ``RAG_CONFIDENCE_THRESHOLD``, else 0.6.

    Raises
    ------
    InputError
        One of them is unusable, the variable included.
    """
    if threshold is None:
        given = os.environ.get(THRESHOLD_VARIABLE, "").strip()
        try:
            threshold = float(given) if given else THRESHOLD
        except ValueError:
            threshold = math.nan
        if not 0 <= threshold <= 1:
            raise InputError(f"{THRESHOLD_VARIABLE} must be a number in [0, 1], got {given!r}.")
    return Weighting(WEIGHTS if weights is None else weights, {**RANGES, **(ranges or {})}, threshold)


def calculate_confidence(
    similarity: float | None,
    lexical: float | None,
    llm: float | None,
    weights: Mapping[str, float] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    threshold: float | None = None,
) -> Confidence:
    """Return ``0.45 · similarity + 0.35 · lexical / 100 + 0.20 · llm`` and what led there.

    Parameters
    ----------
    similarity : float or None
        Mean cosine of the best passages, declared as 0 to 1.
    lexical : float or None
        BM25 of the best passages, declared as 0 to 100.
    llm : float or None
        Confidence that the model states, declared as 0 to 1.
    weights, ranges, threshold
        As for `configured`.

    Returns
    -------
    Confidence
        Each signal is clamped to [0, 1] after normalisation. Undefined, with a reason, where a signal with a
        weight is missing (None, NaN or infinite): a sum of the others would be another score, to which
        neither the threshold nor a calibration applies. Who has only two signals gives the third weight 0.

    Raises
    ------
    InputError
        As `configured`.

    Examples
    --------
    >>> found = calculate_confidence(0.89, 38.5, 0.92)
    >>> found.score, dict(found.components), found.passes
    (0.72, {'similarity': 0.89, 'lexical': 0.39, 'llm': 0.92}, True)
    """
    signals = {"similarity": similarity, "lexical": lexical, "llm": llm}
    weighting = configured(weights, ranges, threshold)
    weights = weighting.weights
    unit = {name: normalised(_number(signals.get(name)), *weighting.ranges[name])[()] for name in weights}
    missing = [name for name, weight in weights.items() if weight and math.isnan(unit[name])]
    contributions = {name: weight * float(unit[name]) if weight else 0.0 for name, weight in weights.items()}
    score = math.nan if missing else float(half_up(min(1.0, sum(contributions.values()))))
    return Confidence(
        score,
        MappingProxyType({name: float(half_up(value)) for name, value in unit.items()}),
        MappingProxyType(contributions),
        MappingProxyType(dict(weights)),
        weighting.threshold,
        None if missing else score >= weighting.threshold,
        f"no value for {', '.join(missing)}" if missing else "",
    )


def confidences(signals: Mapping[str, ArrayLike], weighting: Weighting) -> Floats:
    """Return the confidence (n,) of many answers, not rounded; NaN where a signal with a weight is missing.

    ``signals``, each (n,) in its own unit, must have every one with a weight, else InputError. In [0, 1].
    """
    parts = []
    for name, weight in weighting.weights.items():
        if weight:
            if name not in signals:
                raise InputError(f"There is no signal {name}; there are {', '.join(signals) or 'none'}.")
            parts.append(weight * normalised(signals[name], *weighting.ranges[name]))
    return np.minimum(1.0, np.sum(parts, axis=0))


def normalised(values: ArrayLike, low: float, high: float) -> Floats:
    """Return values as shares of a declared range, clamped to [0, 1]; NaN where they are not finite."""
    given = np.asarray(values, dtype=np.float64)
    return np.clip((np.where(np.isfinite(given), given, np.nan) - low) / (high - low), 0.0, 1.0)


def half_up(values: ArrayLike, places: int = 2) -> Floats:
    """Return values of at least 0 rounded as by hand: a 5 goes up, as 0.385 to 0.39; NaN stays.

    >>> half_up([0.385, 0.125, 0.71925]).tolist(), round(0.385, 2), round(0.125, 2)
    ([0.39, 0.13, 0.72], 0.39, 0.12)
    """
    scaled = np.asarray(values, dtype=np.float64) * 10**places
    # What is .5 in decimals may be .49999… as a float.
    return np.floor(np.round(scaled, _DIGITS) + 0.5) / 10**places


def range_warning(
    values: ArrayLike, declared: tuple[float, float], name: str = "signal"
) -> RangeWarning | None:
    """Tell whether the values of a signal contradict its declared range; what is not finite is left out.

    A value is outside, or at least 5 values all lie in the lowest twentieth: they say "no confidence"
    whatever they are, as a cosine does that is declared as BM25. All values at the upper end are no
    contradiction: models are often sure.

    >>> print(range_warning([0.71, 0.83, 0.9, 0.88, 0.79], (0, 100), "lexical").sentence)
    lexical is declared as 0 to 100, but all 5 values lie between 0.71 and 0.9: it looks like a share or a
    cosine. Declare its real range.
    """
    given = np.asarray(values, dtype=np.float64)
    known = given[np.isfinite(given)]
    if not known.size:
        return None
    low, high = declared
    least, most = float(known.min()), float(known.max())
    n_outside = int(np.count_nonzero((known < low) | (known > high)))
    said = f"{name} is declared as {low:g} to {high:g}, but "
    if n_outside:
        said += f"{n_outside} of {known.size} values lie outside, from {least:.3g} to {most:.3g}"
    elif known.size >= _FEWEST and most - low < (high - low) * _NARROW:
        said += f"all {known.size} values lie between {least:.3g} and {most:.3g}"
        said += ": it looks like a share or a cosine" if least >= 0 and most <= 1 < high else ""
    else:
        return None
    return RangeWarning(known.size, n_outside, f"{said}. Declare its real range.")


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


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
