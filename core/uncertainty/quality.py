"""How well each estimator finds wrong answers, and which estimators can be told apart."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.stats import (
    FEWEST_OF_EACH,
    auprc,
    aurc,
    auroc_difference,
    auroc_interval,
    auroc_p_value,
    e_aurc,
    holm,
    prr,
    risk_coverage,
    wilson_interval,
)
from core.text.display import count


class EstimatorQuality(NamedTuple):
    """The quality of one estimator on labelled answers.

    ``n`` answers have a label and a value, ``n_wrong`` of them are wrong. ``auroc`` (value, low, high) of
    finding the wrong answers; chance is 0.5. ``p_value`` of "it has nothing to do with correctness",
    two-sided, adjusted by Holm's method for all estimators. ``auprc`` of finding the wrong answers; chance is
    their share. ``prr``: share of the possible gain from answering the surest only; chance is 0. ``aurc``:
    mean error rate over all coverages, ``e_aurc`` its excess over a perfect ranking; lower is better.
    """

    name: str
    n: int
    n_wrong: int
    auroc: tuple[float, float, float]
    p_value: float
    auprc: float
    prr: float
    aurc: float
    e_aurc: float


class EstimatorPair(NamedTuple):
    """Two estimators compared on the same answers.

    The ``first`` has the higher AUROC; ``n`` labelled answers have a value of both. ``difference`` of their
    AUROCs with its interval; ``p_value`` adjusted by Holm's method for all pairs compared.
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


def leaderboard(uncertainty: Mapping[str, ArrayLike], correct: ArrayLike) -> list[EstimatorQuality]:
    """Judge estimators by labelled answers, the best AUROC first.

    ``uncertainty`` of each estimator, (n,): higher = more uncertain, NaN = undefined; give the trivial
    baselines too. ``correct``, (n,): whether each answer is right; NaN where unknown. Measures but AURC are
    NaN where all or none are right. Estimators without a value are last.

    >>> best, other = leaderboard({"a": [3, 1, 2, 4], "b": [1, 2, 3, 4]}, [0, 1, 1, 0])
    >>> best.name, best.auroc[0], other.auroc[0]
    ('a', 1.0, 0.5)
    """
    label = np.asarray(correct, dtype=np.float64)
    found = []
    for name, given in uncertainty.items():
        values = np.asarray(given, dtype=np.float64)
        known = ~np.isnan(values + label)
        values, right = values[known], label[known]
        measures = (measure(-values, right) for measure in (prr, aurc, e_aurc))
        found.append(
            EstimatorQuality(
                name, right.size, int((right == 0).sum()), auroc_interval(1 - right, values),
                auroc_p_value(1 - right, values), auprc(1 - right, values), *measures,
            )
        )  # fmt: skip
    adjusted = holm([one.p_value for one in found]).tolist()
    found = [one._replace(p_value=p) for one, p in zip(found, adjusted, strict=True)]
    return sorted(found, key=lambda one: -np.nan_to_num(one.auroc[0], nan=-1.0))


def comparisons(uncertainty: Mapping[str, ArrayLike], correct: ArrayLike) -> list[EstimatorPair]:
    """Compare every two estimators on the answers that both score.

    Takes what `leaderboard` does; the fewer are compared, the smaller a difference can be told from chance.
    The p-values are adjusted for all pairs; NaN where no comparison was possible, as with fewer than
    `core.stats.FEWEST_OF_EACH` right or wrong answers.
    """
    label = np.asarray(correct, dtype=np.float64)
    found = []
    for first, second in itertools.combinations(uncertainty, 2):
        a, b = (np.asarray(uncertainty[name], dtype=np.float64) for name in (first, second))
        n = int((~np.isnan(a + b + label)).sum())
        pair = EstimatorPair(first, second, n, *auroc_difference(1 - label, a, b))
        found.append(
            pair._replace(
                first=second, second=first, difference=-pair.difference, low=-pair.high, high=-pair.low
            )
            if pair.difference < 0
            else pair
        )
    adjusted = holm([pair.p_value for pair in found])
    return [pair._replace(p_value=float(p)) for pair, p in zip(found, adjusted, strict=True)]


def told_apart(n_apart: int, n_pairs: int, n: int, n_wrong: int) -> str:
    """Say how many pairs of estimators differ beyond chance, or what it takes to compare them.

    >>> print(told_apart(0, 36, 60, 3))
    The estimators are not compared in pairs: with 57 correct and 3 incorrect answers chance alone would
    separate some. It takes 15 of each.
    """
    if min(n - n_wrong, n_wrong) < FEWEST_OF_EACH:
        return (
            f"The estimators are not compared in pairs: with {n - n_wrong:,} correct and "
            f"{count(n_wrong, 'incorrect answer')} chance alone would separate some. "
            f"It takes {FEWEST_OF_EACH} of each."
        )
    verb = "differs" if n_apart == 1 else "differ"
    return (
        f"{n_apart:,} of {count(n_pairs, 'pair')} of estimators {verb} beyond chance on these answers "
        "(AUROC, p-values adjusted for all pairs)."
    )


def risk_coverage_band(
    uncertainty: ArrayLike, correct: ArrayLike, level: float = 0.95
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the risk-coverage curve with the score interval (Wilson) of each of its error rates.

    Of one estimator, as for `leaderboard`; ``level`` is that of each point by itself. Coverage, the share
    answered, the most certain first; the error rate among these; its low and high end: each of shape (m,), of
    the m answers that have both.

    >>> coverage, risk, low, high = risk_coverage_band([0.1, 0.2, 0.9], [1, 1, 0])
    >>> risk.round(2).tolist(), high.round(2).tolist()
    ([0.0, 0.0, 0.33], [0.79, 0.66, 0.79])
    """
    coverage, risk = risk_coverage(-np.asarray(uncertainty, dtype=np.float64), correct)
    ends = [wilson_interval(share, n, level) for n, share in enumerate(risk.tolist(), start=1)]
    low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    return coverage, risk, low, high
