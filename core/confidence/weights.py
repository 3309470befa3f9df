"""Weights of the signals learned from labelled answers, and whether they are better than the default."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.arrays import Bools, Floats
from core.calibration.weighted import Weighting, normalised
from core.confidence.labelled import Labelled
from core.errors import InputError
from core.stats import (
    Interval,
    auroc,
    aurocs,
    bootstrap_interval,
    bootstrap_intervals,
    non_negative_logistic,
)

STEPS = 20  # of the grid: weights of 0, 0.05, … 1
FOLDS = 5
LEVEL = 0.95
_DECIMALS = 9  # equal weighted sums are equal however they were summed

Fit = Callable[[Floats, Bools, Floats], Floats]


@dataclass(frozen=True)
class LearnedWeights:
    """The weights that one method learns from all answers, and what they gain on answers they did not see.

    Weights are at least 0 and sum to 1; NaN where the method finds none. ``intervals`` are of the bootstrap,
    at the level asked; ends of the grid are half a step further out, which is what a grid cannot tell apart.
    ``auroc`` is that of the cross-validated ``confidences``, each answer's by weights learned from other
    questions; ``gain`` is over the default, its interval by bootstrap over questions: the two methods share
    the error that the level allows (Bonferroni).
    """

    method: str
    weights: Mapping[str, float]
    intervals: Mapping[str, Interval]
    auroc: float
    gain: float
    gain_interval: Interval
    confidences: Floats = field(repr=False, compare=False)


@dataclass(frozen=True)
class WeightCalibration:
    """Learned weights, one per method (none where there are too few answers), beside the default.

    ``best`` is the method of the highest AUROC among those whose gain has an interval above 0; None means:
    keep the default, and ``reason`` says why.
    """

    n: int
    n_correct: int
    n_questions: int
    default_auroc: float
    learned: tuple[LearnedWeights, ...]
    best: LearnedWeights | None
    reason: str


def calibrate_weights(
    rows: Labelled,
    default: Weighting,
    n_resamples: int = 2_000,
    n_refits: int = 500,
    seed: int = 0,
    level: float = LEVEL,
) -> WeightCalibration:
    """Learn weights by a grid on the simplex and by logistic regression, and compare them with the default.

    Parameters
    ----------
    rows : Labelled
        The order of its answers does not matter.
    default : Weighting
        The weights to be beaten, and the ranges by which signals are normalised.
    n_resamples, n_refits : int
        Bootstrap resamples of the gain, and fits to resampled answers for the intervals of the weights.
    seed : int
        Of folds and resamples; same seed, same result.
    level : float
        In (0, 1). Where no weights beat the default, it is kept with about this probability or more.

    Returns
    -------
    WeightCalibration
        Cost: `n_refits` fits of each method, some seconds for 500 answers.

    Raises
    ------
    InputError
        The level is outside (0, 1).

    Notes
    -----
    The grid maximises the AUROC, ties nearest the default. Logistic regression has coefficients of at least
    0, since a signal must not lower the confidence, divided by their sum: only their ratios matter to a
    ranking, and a map (`core.calibration.mapping`) sees to the scale. All answers to a question are in the
    same fold and the same resample. The interval of the gain takes the cross-validated confidences as given,
    so it leaves out how they would vary with another training set: on labels that carry no information the
    default was given up in 48 of 1,200 data sets at the level 0.95.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, both excluded; got {level!r}.")
    names = [*default.weights]
    given = np.array([default.weights[name] for name in names])
    unit, correct, question, order = _sorted(rows, default, names)
    start = _score(unit, given)
    counts = correct.size, int(correct.sum()), int(question.max(initial=-1)) + 1
    reason = _shortage(correct, question)
    if reason:
        return WeightCalibration(*counts, auroc(correct, start), (), None, reason)
    fold = _folds(question, correct, seed)

    def learned_by(method: str) -> LearnedWeights:
        fit = METHODS[method]
        weights = fit(unit, correct, given)
        intervals = bootstrap_intervals(
            (unit, correct), lambda x, y: fit(x, y, given), given.size, n_refits, seed, level, question
        )
        if method == "grid":
            half = 0.5 / STEPS
            intervals = [(max(0.0, low - half), min(1.0, high + half)) for low, high in intervals]
        tested = np.full(correct.size, math.nan)
        for out in (fold == number for number in range(FOLDS)):
            tested[out] = _score(unit[out], fit(unit[~out], correct[~out], given))
        shared = 1 - (1 - level) / len(METHODS)
        return LearnedWeights(
            method,
            dict(zip(names, weights.tolist(), strict=True)),
            dict(zip(names, intervals, strict=True)),
            auroc(correct, tested),
            _gain(tested, start, correct),
            bootstrap_interval((tested, start, correct), _gain, n_resamples, seed, shared, question),
            tested[np.argsort(order)],
        )

    learned = tuple(map(learned_by, METHODS))
    significant = [one for one in learned if one.gain_interval[0] > 0]
    best = max(significant, key=lambda one: one.auroc, default=None)
    reason = "" if best else "the gain over the default is not significant"
    return WeightCalibration(*counts, auroc(correct, start), learned, best, reason)


def grid_weights(unit: Floats, correct: Bools, default: Floats) -> Floats:
    """Return the weights in steps of 0.05 with the highest AUROC, of equals nearest the default.

    ``unit``, (n, k), in [0, 1]. NaN with fewer than two classes. Cost: 231 AUROCs for 3 signals.
    """
    grid = simplex(unit.shape[1])
    found = aurocs(correct, np.round(grid @ unit.T, _DECIMALS))
    if np.isnan(found[0]):
        return np.full(unit.shape[1], math.nan)
    best = grid[found >= found.max() - 1e-12]
    chosen: Floats = best[np.round(((best - default) ** 2).sum(axis=1), _DECIMALS).argmin()]
    return chosen


def logistic_weights(unit: Floats, correct: Bools, default: Floats) -> Floats:
    """Return the non-negative coefficients of a logistic regression as shares; the default if all are 0."""
    found, _ = non_negative_logistic(unit, correct)
    total = float(found.sum())
    return found / total if total > 1e-9 or math.isnan(total) else default


METHODS: Mapping[str, Fit] = {"grid": grid_weights, "logistic": logistic_weights}


def simplex(k: int, steps: int = STEPS) -> Floats:
    """Return all weights of k signals that are multiples of 1 / steps and sum to 1.

    >>> simplex(2, 2).tolist(), len(simplex(3))
    ([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]], 231)
    """
    found = [*combinations(range(steps + k - 1), k - 1)]
    bars = np.array(found, dtype=np.int64).reshape(len(found), k - 1)
    return (np.diff(bars, axis=1, prepend=-1, append=steps + k - 1) - 1) / steps


def _gain(tested: Floats, start: Floats, correct: Bools) -> float:
    one, other = aurocs(correct, np.stack([tested, start])).tolist()
    return one - other


def _score(unit: Floats, weights: Floats) -> Floats:
    return np.minimum(1.0, np.round(unit @ weights, _DECIMALS))


def _sorted(
    rows: Labelled, default: Weighting, names: Sequence[str]
) -> tuple[Floats, Bools, NDArray[np.int64], NDArray[np.intp]]:
    """Return signals in [0, 1], labels and questions, in an order that depends on them alone, and it."""
    missing = [name for name in names if name not in rows.signals]
    if missing:
        raise InputError(f"The labelled rows have no signal {', '.join(missing)}.")
    unit = np.column_stack([normalised(rows.signals[name], *default.ranges[name]) for name in names])
    # Strings as an array of objects: one of numpy's own would have the length of the longest everywhere.
    number = {one: i for i, one in enumerate(sorted(set(rows.questions)))}
    question = np.array([number[one] for one in rows.questions], dtype=np.int64)
    order = np.lexsort((rows.correct, *unit.T, question))
    return unit[order], rows.correct[order].astype(bool), question[order], order


def _folds(question: NDArray[np.int64], correct: Bools, seed: int) -> NDArray[np.int64]:
    """Return each answer's fold, all answers to a question together, with about equal accuracy in each."""
    share = np.bincount(question, correct) / np.bincount(question)
    order = np.lexsort((np.random.default_rng(seed).permutation(share.size), share))
    fold = np.empty(share.size, dtype=np.int64)
    fold[order] = np.arange(share.size) % FOLDS
    return fold[question]


def _shortage(correct: Bools, question: NDArray[np.int64]) -> str:
    """Say what is missing for cross-validation; empty where nothing is."""
    of = [np.unique(question[correct == label]).size for label in (True, False)]
    if min(of) >= 2 * FOLDS:
        return ""
    return (
        f"too few labels: {of[0]} questions with a correct and {of[1]} with a wrong answer, "
        f"at least {2 * FOLDS} of each are needed"
    )
