"""Whether new questions still look like the calibration set: an alarm that may be watched continuously.

Both functions raise InputError where an argument is outside its range.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.conformal.split import column, rate
from core.errors import InputError

BETS = np.array([-1.0, 0.0, 1.0])
JUMP = 0.01


@dataclass(frozen=True)
class Drift:
    """A test martingale along p-values, of which ``n`` are known: the logarithm of the capital after each.

    High = the stream does not look uniform; ``alarm`` is the first place where it reaches 1/level, or None.
    """

    log_martingale: Floats
    alarm: int | None
    n: int
    level: float


def online_p_values(scores: ArrayLike, new: ArrayLike, seed: int) -> Floats:
    """Return the randomised p-value of each new score among the calibration scores and all new ones before.

    Only these are independent and uniform if calibration and new cases are exchangeable: p-values against the
    calibration set alone share its chance deviations.

    Parameters
    ----------
    scores, new : array_like, shapes (n,) and (m,)
        Of the calibration cases (NaN is left out), and of new cases in order of time.
    seed : int
        Draws the place within ties; same seed, same p-values.

    Returns
    -------
    ndarray, shape (m,)
        In (0, 1], low = higher than most before; NaN where the score is (Vovk et al. 2005, section 7.1).

    Examples
    --------
    >>> first, second = online_p_values([1, 2, 3, 4], [5, 4.5], seed=0)
    >>> bool(0 < first <= 1 / 5), bool(1 / 6 < second <= 2 / 6)
    (True, True)
    """
    known, asked = column("scores", scores), column("new", new)
    before = sorted(known[~np.isnan(known)].tolist())
    places = 1 - np.random.default_rng(seed).random(asked.size)
    found = np.full(asked.size, math.nan)
    for i, (score, place) in enumerate(zip(asked.tolist(), places.tolist(), strict=True)):
        if not math.isnan(score):
            above = len(before) - bisect_right(before, score)
            equal = len(before) - bisect_left(before, score) - above
            found[i] = (above + place * (equal + 1)) / (len(before) + 1)
            insort(before, score)
    return found


def drift_martingale(p_values: ArrayLike, level: float = 0.05) -> Drift:
    """Bet against p-values being uniform, and raise an alarm when the capital reaches 1/level.

    The Simple Jumper: capital is spread over bets ``1 + ε (p − 1/2)`` with ε = −1 (low p-values: scores have
    become higher), 0 and 1 (lower); before each p-value 1 % of it is spread evenly again, so that a shift is
    found also after a long quiet time. If the p-values are uniform and independent, the capital ever reaches
    1/level with probability at most level (Ville 1939), however often one looks.

    Parameters
    ----------
    p_values : array_like, shape (m,)
        Of `online_p_values`, in order of time; NaN is passed over. Those without a seed are too high on
        average, which alone would raise an alarm.
    level : float
        Probability of a false alarm, ever; between 0 and 1 (Vovk et al. 2021, arXiv 2102.10439).

    Examples
    --------
    >>> drift_martingale([0.01] * 12).alarm  # the capital is then about 1.49¹¹ / 3 = 27
    10
    """
    p, limit = column("p_values", p_values), -math.log(rate("level", level))
    if ((p < 0) | (p > 1)).any():
        raise InputError("p_values must lie from 0 to 1.")
    capital, grown = np.full(BETS.size, 1 / BETS.size), 0.0
    path = np.empty(p.size)
    for i, one in enumerate(p.tolist()):
        if not math.isnan(one):
            capital = (1 - JUMP) * capital + JUMP * capital.sum() / BETS.size
            capital = capital * (1 + BETS * (one - 0.5))
            # Kept at a sum of 1 and its logarithm beside it: the capital itself may exceed any float.
            grown += math.log(capital.sum())
            capital = capital / capital.sum()
        path[i] = grown
    reached = np.flatnonzero(path >= limit)
    alarm = int(reached[0]) if reached.size else None
    return Drift(path, alarm, int(np.count_nonzero(~np.isnan(p))), level)
