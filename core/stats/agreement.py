"""How far two people agree beyond chance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from core.arrays import Floats
from core.stats.intervals import UNDEFINED, Interval

FEWEST_SHARED = 2


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement of two people on the same n cases.

    Attributes
    ----------
    value : float
        Cohen's κ in [-1, 1]; 0 where they agree as often as chance gives, NaN where undefined.
    interval : tuple of float
        Of ``level``, around ``value``.
    n : int
        Cases that both judged.
    agreed : float
        Share of cases in which both say the same.
    by_chance : float
        That share if each judged at random as often as they did.
    reason : str
        Why κ is undefined, else empty.
    """

    value: float
    interval: Interval
    n: int
    agreed: float
    by_chance: float
    reason: str = ""


def cohen_kappa(a: Sequence[Hashable], b: Sequence[Hashable], level: float = 0.95) -> Kappa:
    """Return Cohen's κ of two people's judgements of the same cases (Cohen 1960).

    The standard error is that of Fleiss, Cohen and Everitt (1969), of the counts with two more cases, spread
    evenly over the cells: without them the interval has no width where all cases agree, and few cases
    give one that misses κ far too often. It holds κ in 91 to 100 % of samples (simulated with κ from 0 to
    0.95, 10 to 200 cases, and a rarest category of 10 to 50 %).

    Parameters
    ----------
    a, b : sequence
        One category for each case, in the same order.
    level : float
        Of the interval.

    Returns
    -------
    Kappa
        Undefined with fewer than two cases, and where both use one category only.

    Raises
    ------
    ValueError
        The sequences differ in length.

    Examples
    --------
    >>> both = cohen_kappa(["yes", "yes", "no", "no", "no"], ["yes", "no", "no", "no", "no"])
    >>> round(both.value, 3), both.agreed, round(both.by_chance, 2), both.n
    (0.545, 0.8, 0.56, 5)
    """
    if len(a) != len(b):
        raise ValueError(f"both must judge the same cases, not {len(a)} and {len(b)}")
    n, names = len(a), {name: i for i, name in enumerate(dict.fromkeys([*a, *b]))}
    if n < FEWEST_SHARED:
        return Kappa(math.nan, UNDEFINED, n, math.nan, math.nan, "fewer than 2 cases judged by both")
    counts = np.zeros((len(names), len(names)))
    np.add.at(counts, ([names[one] for one in a], [names[one] for one in b]), 1)
    if len(names) == 1:
        return Kappa(math.nan, UNDEFINED, n, 1.0, 1.0, "both use one category only")
    value, agreed, by_chance, _ = _kappa(counts)
    middle, *_, error = _kappa(counts + 2 / len(names) ** 2)
    half = float(ndtri((1 + level) / 2)) * error
    interval = max(-1.0, min(value, middle - half)), min(1.0, max(value, middle + half))
    return Kappa(value, interval, n, agreed, by_chance)


def _kappa(counts: Floats) -> tuple[float, float, float, float]:
    """Return κ, the share of agreement, that by chance, and the standard error of κ."""
    n = counts.sum()
    p = counts / n
    rows, columns, same = p.sum(axis=1), p.sum(axis=0), np.diag(p)
    agreed, chance = float(same.sum()), float(rows @ columns)
    kappa = (agreed - chance) / (1 - chance)
    on = (same * (1 - (rows + columns) * (1 - kappa)) ** 2).sum()
    apart = p * (columns[:, None] + rows[None, :]) ** 2
    off = (1 - kappa) ** 2 * (apart.sum() - np.diag(apart).sum())
    variance = (on + off - (kappa - chance * (1 - kappa)) ** 2) / (n * (1 - chance) ** 2)
    return kappa, agreed, chance, math.sqrt(max(0.0, float(variance)))
