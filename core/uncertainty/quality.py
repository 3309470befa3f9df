"""How well each estimator tells wrong answers from right ones, and which estimators can be told apart."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.stats import auroc_difference, holm, ranking_qualities, resamples, risk_coverage


class Quality(NamedTuple):
    """The quality of one estimator on labelled answers; each measure is (value, low, high).

    Attributes
    ----------
    name : str
        Of the estimator.
    n, n_wrong : int
        Answers with a label and a value; wrong ones among them.
    auroc, auprc : tuple of float
        Of finding the wrong answers; chance is 0.5, and the share of wrong answers.
    prr : tuple of float
        Share of the possible gain from answering the surest only; chance is 0.
    aurc, e_aurc : tuple of float
        Mean error rate over all coverages, and its excess over a perfect ranking; lower is better.
    """

    name: str
    n: int
    n_wrong: int
    auroc: tuple[float, float, float]
    auprc: tuple[float, float, float]
    prr: tuple[float, float, float]
    aurc: tuple[float, float, float]
    e_aurc: tuple[float, float, float]


class Pair(NamedTuple):
    """Two estimators compared on the same answers.

    Attributes
    ----------
    first, second : str
        Names; the first has the higher AUROC.
    n : int
        Labelled answers that both could score.
    difference, low, high : float
        AUROC of the first minus that of the second, with its interval.
    p_value : float
        Adjusted by Holm's method for all pairs compared.
    """

    first: str
    second: str
    n: int
    difference: float
    low: float
    high: float
    p_value: float

    @property
    def distinguishable(self) -> bool:
        """Whether the difference is more than chance explains (5 %, all pairs taken together)."""
        return self.p_value < 0.05


def leaderboard(
    uncertainty: Mapping[str, ArrayLike], correct: ArrayLike, n_resamples: int = 1_000, seed: int = 0
) -> list[Quality]:
    """Judge estimators by labelled answers, the best AUROC first.

    Parameters
    ----------
    uncertainty : mapping of str to array_like of shape (n,)
        Of each estimator: higher = more uncertain, NaN = undefined. Give the trivial baselines too.
    correct : array_like of shape (n,)
        Whether each answer is right; NaN where unknown.
    n_resamples, seed : int
        Of the bootstrap.

    Returns
    -------
    list of Quality
        Measures are NaN where all or none of the answers are right. Estimators without a value are last.

    Examples
    --------
    >>> best, other = leaderboard({"a": [3, 1, 2, 4], "b": [1, 2, 3, 4]}, [0, 1, 1, 0])
    >>> best.name, best.auroc[0], other.auroc[0]
    ('a', 1.0, 0.5)
    """
    label = np.asarray(correct, dtype=np.float64)
    found = []
    every = {name: np.asarray(given, dtype=np.float64) for name, given in uncertainty.items()}
    judged = ranking_qualities([-values for values in every.values()], label, n_resamples, seed)
    for (name, values), measures in zip(every.items(), judged, strict=True):
        known = ~np.isnan(values + label)
        found.append(Quality(name, int(known.sum()), int((label[known] == 0).sum()), **measures))
    return sorted(found, key=lambda one: -np.nan_to_num(one.auroc[0], nan=-1.0))


def comparisons(uncertainty: Mapping[str, ArrayLike], correct: ArrayLike) -> list[Pair]:
    """Compare every two estimators on the answers that both score.

    Parameters
    ----------
    uncertainty : mapping of str to array_like of shape (n,)
        As for `leaderboard`. The fewer are compared, the smaller a difference can be told from chance.
    correct : array_like of shape (n,)
        Whether each answer is right; NaN where unknown.

    Returns
    -------
    list of Pair
        The p-values are adjusted for all of them; NaN where no comparison was possible.
    """
    label = np.asarray(correct, dtype=np.float64)
    found = []
    for first, second in itertools.combinations(uncertainty, 2):
        a, b = (np.asarray(uncertainty[name], dtype=np.float64) for name in (first, second))
        n = int((~np.isnan(a + b + label)).sum())
        pair = Pair(first, second, n, *auroc_difference(a, b, 1 - label))
        found.append(
            pair._replace(
                first=second, second=first, difference=-pair.difference, low=-pair.high, high=-pair.low
            )
            if pair.difference < 0
            else pair
        )
    adjusted = holm([pair.p_value for pair in found])
    return [pair._replace(p_value=float(p)) for pair, p in zip(found, adjusted, strict=True)]


def risk_coverage_band(
    uncertainty: ArrayLike, correct: ArrayLike, n_resamples: int = 1_000, seed: int = 0, level: float = 0.95
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the risk-coverage curve with a bootstrap band.

    Parameters
    ----------
    uncertainty, correct : array_like of shape (n,)
        As for `leaderboard`, of one estimator.
    n_resamples, seed : int
        Of the bootstrap; without resamples there is no band.
    level : float
        Confidence level in (0, 1), of each point by itself.

    Returns
    -------
    coverage, risk, low, high : ndarray of shape (m,)
        The share answered, the most certain first, and the error rate among these; m answers have both.

    Examples
    --------
    >>> coverage, risk, low, high = risk_coverage_band([0.1, 0.2, 0.9], [1, 1, 0])
    >>> risk.round(2).tolist()
    [0.0, 0.0, 0.33]
    """
    confidence, label = -np.asarray(uncertainty, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    known = ~np.isnan(confidence + label)
    confidence, label = confidence[known], label[known]
    coverage, risk = risk_coverage(confidence, label)
    if label.size < 2 or not n_resamples:
        return coverage, risk, np.full(label.size, np.nan), np.full(label.size, np.nan)
    rng = np.random.default_rng(seed)
    draws = (rng.integers(label.size, size=label.size) for _ in range(resamples(n_resamples, label.size)))
    curves = np.array([risk_coverage(confidence[rows], label[rows])[1] for rows in draws])
    low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return coverage, risk, low, high
