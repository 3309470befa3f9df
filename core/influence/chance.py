"""Where rank agreement falls when the order of use has nothing to do with the order of retrieval."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.influence.metrics import expected_rbo

_EXACT_UP_TO = 8  # 8! = 40,320 orders
_DRAWS = 200_000
_PIECE = 10_000
_MANY = 30  # from here on the band is narrow and 20,000 orders place it well enough
_RBO_DRAWS = 2_000


class ChanceBand(NamedTuple):
    """The null distribution of rho for k passages.

    ``low`` and ``high`` enclose the middle 95 %; ``q95`` is the one-sided 95 % point;
    ``p_below(threshold)`` the probability that a random order falls below a threshold;
    ``mean_rbo`` the rank-biased overlap (p = 0.9) of random orders. All NaN when k < 3.
    """

    k: int
    low: float
    high: float
    q95: float
    mean_rbo: float

    def p_below(self, threshold: float) -> float:
        """Probability that a random order of k passages has rho below ``threshold``."""
        if self.k < 3:
            return math.nan
        # The tolerance keeps "below" strict although rhos are sums of rounded fractions.
        null = _null_distribution(self.k)
        return float(np.searchsorted(null, threshold - 1e-9, side="left") / null.size)


@lru_cache(maxsize=64)
def chance_band(k: int) -> ChanceBand:
    """Return the chance band of rho for questions with k passages.

    Exact (all k! orders) up to k = 8, else seeded random orders: 200,000, above k = 30 20,000.

    Examples
    --------
    >>> band = chance_band(10)
    >>> round(band.q95, 2), round(band.p_below(0.7), 3)
    (0.55, 0.987)
    """
    if k < 3:
        return ChanceBand(k, math.nan, math.nan, math.nan, math.nan)
    null = _null_distribution(k)
    low, high, q95 = np.quantile(null, [0.025, 0.975, 0.95], method="inverted_cdf")
    return ChanceBand(k, float(low), float(high), float(q95), _mean_rbo(k))


@lru_cache(maxsize=64)
def _null_distribution(k: int) -> NDArray[np.float64]:
    """Return the sorted rhos of all orders, or of many random ones."""
    if k <= _EXACT_UP_TO:
        orders = np.array(list(itertools.permutations(range(k))), dtype=np.float64)
        return np.sort(_rho_of_orders(orders))
    generator = np.random.default_rng(k)
    # In pieces, so that a large k does not need a large table.
    pieces = [
        _rho_of_orders(generator.permuted(np.tile(np.arange(k, dtype=np.float64), (_PIECE, 1)), axis=1))
        for _ in range(_DRAWS // _PIECE if k <= _MANY else 2)
    ]
    return np.sort(np.concatenate(pieces))


def _rho_of_orders(orders: NDArray[np.float64]) -> NDArray[np.float64]:
    k = orders.shape[1]
    squares = ((orders - np.arange(k)) ** 2).sum(axis=1)
    return np.asarray(1 - 6 * squares / (k * (k**2 - 1)), dtype=np.float64)


def _mean_rbo(k: int) -> float:
    # The table of one pair has k * k cells.
    draws = max(1, min(_RBO_DRAWS, 4_000_000 // k**2))
    identity = np.tile(np.arange(1, k + 1, dtype=np.float64), (draws, 1))
    shuffled = np.random.default_rng(k).permuted(identity, axis=1)
    return float(expected_rbo(identity, shuffled, 0.9).mean())
