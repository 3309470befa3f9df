"""Values cut to what a figure can show: ranges of a round width for bars, some places of a long line."""

from __future__ import annotations

import math

import numpy as np

from core.charts.theme import Floats

BARS = 12
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def round_edges(low: float, high: float) -> Floats:
    """Return the ends of about twelve ranges of a round width that hold all values; low < high."""
    power = 10.0 ** math.floor(math.log10((high - low) / BARS))
    step = next(one * power for one in _STEPS if one * power * BARS >= high - low)
    first, last = math.floor(low / step), math.ceil(high / step)
    # Rounded, so that a value of 0.3 and an end of 0.3 are the same number.
    edges = np.array([float(f"{i * step:.12g}") for i in range(first, max(last, first + 1) + 1)])
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)
    return np.unique(edges)


def thinned(n: int, most: int = 400) -> list[int]:
    """Return at most ``most`` places of n, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)).tolist() if n else []
