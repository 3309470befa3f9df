"""How far the coverage that a calibration set really gives may lie from 1 − α."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv

from core.arrays import Floats
from core.conformal.arguments import rate
from core.conformal.split import threshold_rank
from core.errors import InputError


def coverage_band(
    n: int, alpha: float, level: float = 0.95, n_test: int | None = None
) -> tuple[float, float]:
    """Return the exact central range of the realised coverage of a threshold from n labels.

    1 − α is the mean over calibration sets; one set gives Beta(k, n + 1 − k), k = ⌈(n+1)(1−α)⌉, for scores
    without ties (with ties the coverage is higher).

    Parameters
    ----------
    n : int
        Calibration labels.
    alpha : float
        Between 0 and 1.
    level : float
        Probability of the band, between 0 and 1; half of the rest on either side.
    n_test : int, optional
        Share covered among so many test cases (beta-binomial), at least 1; without, among endlessly many.

    Returns
    -------
    (low, high) : tuple of float
        Shares in [0, 1]; both 1 where the threshold is infinite. With ``n_test`` the band holds at least
        ``level``.

    Raises
    ------
    InputError
        An argument is outside its range.

    References
    ----------
    Vovk 2012, arXiv 1209.2673; Angelopoulos & Bates 2021, arXiv 2107.07511, section 3.2.

    Examples
    --------
    >>> [round(end, 3) for end in coverage_band(19, 0.1)]
    [0.74, 0.987]
    """
    ends = float((1 - rate("level", level)) / 2), float((1 + rate("level", level)) / 2)
    if n < 0 or (n_test is not None and n_test < 1):
        raise InputError(f"n must be at least 0 and n_test at least 1, got {n} and {n_test}.")
    k = threshold_rank(n, alpha)
    if k > n:
        return 1.0, 1.0
    if n_test is None:
        low, high = betaincinv(k, n + 1 - k, ends)
    else:
        from scipy.stats import betabinom

        low, high = betabinom.ppf(ends, n_test, k, n + 1 - k) / n_test
    return float(low), float(high)


def covered_by_chance(parts: Sequence[tuple[int, int]], alpha: float) -> Floats:
    """Return how likely each number of tested cases is covered, where thresholds keep their promise.

    Parameters
    ----------
    parts : sequence of (int, int)
        Labels of each threshold and the cases that it tests; every threshold is finite.
    alpha : float
        Between 0 and 1.

    Returns
    -------
    ndarray, shape (n_test + 1,)
        Probabilities of 0, 1 … n_test: beta-binomial for one threshold, a sum of such for several. Exact for
        scores without ties; with ties more is covered.

    Examples
    --------
    >>> covered_by_chance([(9, 1)], 0.1).round(3).tolist(), covered_by_chance([(9, 1), (9, 1)], 0.1).size
    ([0.1, 0.9], 3)
    """
    from scipy.signal import fftconvolve
    from scipy.stats import betabinom

    found = np.ones(1)
    for n, n_test in parts:
        k = threshold_rank(n, alpha)
        one = betabinom.pmf(np.arange(n_test + 1), n_test, k, n + 1 - k)
        found = one if found.size == 1 else np.maximum(fftconvolve(found, one), 0.0)
    return np.asarray(found, dtype=np.float64)


def shortfall(n_covered: int, parts: Sequence[tuple[int, int]], alpha: float) -> float:
    """Return how likely so few or fewer are covered by chance; NaN where nothing is tested.

    Examples
    --------
    >>> round(shortfall(0, [(9, 1)], 0.1), 3), shortfall(0, [], 0.1)
    (0.1, nan)
    """
    if not sum(n_test for _, n_test in parts):
        return math.nan
    return min(1.0, float(covered_by_chance(parts, alpha)[: n_covered + 1].sum()))
