"""Passages that hold the same evidence, or that are needed together: interactions of pairs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from core.arrays import Bools, Floats
from core.attribution.methods import WITH_PAIRS

LEVEL = 0.05
_LEAST = WITH_PAIRS * 9 // 10  # different masks: some are drawn twice
_MOST = 5  # pairs of one question that are told


class Pair(NamedTuple):
    """Two passages, numbered from 0, whose effects do not add up.

    ``interaction`` is what both lose the answer when they are left out together, beyond the sum of what each
    loses it alone, I(ij) − I(i) − I(j), averaged over random subsets of the others: above 0 either is
    enough, below 0 both are needed. ``low`` and ``high`` hold for all pairs of the question together, with
    95 %. ``p_value`` is corrected for the number of pairs looked at.
    """

    first: int
    second: int
    interaction: float
    low: float
    high: float
    p_value: float

    @property
    def either(self) -> bool:
        """Whether either passage is enough; else both are needed."""
        return self.interaction > 0


def enough_for_pairs(masks: Bools) -> bool:
    """Tell whether masks say something of pairs: about `WITH_PAIRS`, or all of them.

    Never of two passages: their four masks leave no error to test against.
    """
    k = masks.shape[1]
    return k > 2 and len(np.unique(masks, axis=0)) >= min(_LEAST, 2**k)


def interacting(masks: Bools, values: Floats, level: float = LEVEL) -> tuple[Pair, ...]:
    """Return the pairs of passages whose effects do not add up, beyond chance, strongest first.

    From about `WITH_PAIRS` random masks on, (n, k), or all of them; of fewer nothing. What single passages
    explain is taken out first; pairs are then added one by one while the best of those left has a p-value
    below ``level`` over their number (Bonferroni). Where only single passages act, a
    pair is found with probability ``level`` at most. All masks without noise leave no error to test against:
    then what is not 0 is reported.

    >>> from core.stats.designs import all_masks
    >>> masks = all_masks(3)
    >>> [(one.first, one.second, one.either) for one in interacting(masks, masks[:, :2].any(axis=1) * 1.0)]
    [(0, 1, True)]
    """
    masks, once = np.unique(masks, axis=0, return_index=True)  # a mask drawn twice was measured once
    values = values[once]
    n, k = masks.shape
    first, second = np.triu_indices(k, 1)
    if not enough_for_pairs(masks) or np.ptp(values) == 0:
        return ()
    z = masks - 0.5
    columns = z[:, first] * z[:, second]
    x = np.column_stack([np.ones(n), z])
    chosen: list[int] = []
    p_values: dict[int, float] = {}
    while len(chosen) < min(_MOST, len(first)):
        free = n - x.shape[1] - 1
        basis, _ = np.linalg.qr(x)
        rest = values - basis @ (basis.T @ values)
        # One number left over fits any pair exactly; only of all masks is that what the pair does.
        exact = free == 0 and n < 2**k
        if free < 0 or exact or np.abs(rest).max() < 1e-9 * np.ptp(values):
            break
        left = columns - basis @ (basis.T @ columns)
        length = np.sqrt((left**2).sum(axis=0))
        usable = length > 1e-9
        usable[chosen] = False
        if not usable.any():
            break
        r = np.zeros(len(first))
        r[usable] = rest @ left[:, usable] / length[usable] / np.sqrt(rest @ rest)
        best = int(np.abs(r).argmax())
        p = min(1.0, _p_value(r[best], free) * len(first))
        if p > level:
            break
        chosen.append(best)
        p_values[best] = p
        x = np.column_stack([x, columns[:, best]])
    if not chosen:
        return ()
    inverse = np.linalg.pinv(x.T @ x)
    beta = inverse @ x.T @ values
    free = n - x.shape[1]
    error = math.sqrt(max(0.0, float(np.sum((values - x @ beta) ** 2))) / free) if free > 0 else math.nan
    found = []
    for place, pair in enumerate(chosen, start=k + 1):
        width = stdtrit(max(free, 1), 1 - level / 2 / len(first)) * error * math.sqrt(inverse[place, place])
        # What leaving both out does beyond the sum is minus the second difference of the score.
        value = -float(beta[place])
        found.append(
            Pair(int(first[pair]), int(second[pair]), value, value - width, value + width, p_values[pair])
        )
    return tuple(found)


def _p_value(r: float, free: int) -> float:
    if abs(r) >= 1 - 1e-12:
        return 0.0
    return float(2 * stdtr(free, -abs(r) * math.sqrt(free / (1 - r * r)))) if free > 0 else 1.0
