"""How coverage and set size come out over many random splits of the labels, beside the exact band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.arrays import Bools, Floats
from core.conformal.arguments import column
from core.conformal.coverage import coverage_band
from core.conformal.split import threshold_rank

N_SPLITS = 200
MOST = 1_000  # cases that are split; of more, some are drawn
ALPHAS = tuple(round(step / 50, 2) for step in range(1, 26))
BAND = 0.95


@dataclass(frozen=True, eq=False, slots=True)
class Splits:
    """Half of the labels calibrates, the other half tests, many times.

    Attributes
    ----------
    n_calibration, n_test : int
        Cases in each half.
    alphas : tuple of float
        Error rates, rising.
    coverage : ndarray, shape (n_splits, n_alphas)
        Share of the tested half that is covered.
    finite : ndarray of bool, shape (n_splits, n_alphas)
        Whether the threshold is finite.
    size : ndarray, shape (n_splits, n_alphas), or None
        Mean size of the sets in the tested half.
    largest : float
        Mean number of groups of samples, which is the size with an infinite threshold; NaN without sets.
    """

    n_calibration: int
    n_test: int
    alphas: tuple[float, ...]
    coverage: Floats
    finite: Bools
    size: Floats | None = None
    largest: float = math.nan

    def to_frame(self) -> pd.DataFrame:
        """Return one row per error rate.

        Columns: ``alpha``; ``low, high``, the exact band (95 %) for scores without ties; ``mean``, the mean
        coverage, and ``mean_low, mean_high``, the middle 95 % of the splits; ``finite``, the share of splits
        with a finite threshold: without one nothing is promised; ``size, size_low, size_high`` likewise
        (missing without sets).
        """
        bands = [coverage_band(self.n_calibration, alpha, BAND, self.n_test) for alpha in self.alphas]
        low, high = np.array(bands, dtype=np.float64).reshape(-1, 2).T
        frame = pd.DataFrame({"alpha": self.alphas, "low": low, "high": high})
        frame["finite"] = self.finite.mean(axis=0)
        for name, found in (("mean", self.coverage), ("size", self.size)):
            if found is None:
                found = np.full(self.coverage.shape, math.nan)
            frame[name] = found.mean(axis=0)
            frame[f"{name}_low"], frame[f"{name}_high"] = np.quantile(found, [0.025, 0.975], axis=0)
        return frame


def repeated_splits(
    scores: ArrayLike,
    groups: Sequence[ArrayLike] | None = None,
    alphas: Sequence[float] = ALPHAS,
    n_splits: int = N_SPLITS,
    seed: int = 0,
) -> Splits | None:
    """Calibrate on a random half of the labelled cases and test on the other, ``n_splits`` times.

    A random split makes both halves exchangeable, so without ties the number covered is exactly
    beta-binomial: that a drawn coverage follows the band shows that the threshold is right, not that new
    questions will be like these. For that, see `core.conformal.drift`.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Of the labelled cases; +inf is never covered; NaN is left out.
    groups : sequence of n array_like, optional
        Scores of all groups of samples of each case: then the size of a set is the number that score at most
        the threshold.
    alphas : sequence of float
        Error rates.
    n_splits, seed : int
        Same seed, same splits. Of more than 1,000 cases as many are drawn once.

    Returns
    -------
    Splits or None
        None for fewer than two cases. Cost: n_splits · n · the number of different thresholds.

    Examples
    --------
    >>> found = repeated_splits(range(40), alphas=[0.25], n_splits=50)
    >>> found.n_calibration, found.n_test, bool(0.7 < found.coverage.mean() < 0.85)
    (20, 20, True)
    """
    values = column("scores", scores)
    known = np.flatnonzero(~np.isnan(values))
    rng = np.random.default_rng(seed)
    if known.size > MOST:
        known = rng.choice(known, MOST, replace=False)
    if known.size < 2:
        return None
    n, half = known.size, known.size // 2
    order = rng.permuted(np.tile(np.arange(n), (n_splits, 1)), axis=1)
    own = values[known]
    calibrating = np.sort(own[order[:, :half]], axis=1)
    tested = np.zeros((n_splits, n))
    np.put_along_axis(tested, order[:, half:], 1, axis=1)
    # Whatever the split, a threshold is one of the scores, or infinite.
    levels = np.unique([*own, math.inf])
    sizes = None if groups is None else np.array([_at_most(groups[i], levels) for i in known.tolist()])
    covered = tested @ ((own[:, None] <= levels) & (own < math.inf)[:, None]) / (n - half)
    counted = None if sizes is None else tested @ sizes / (n - half)
    ranks = [threshold_rank(half, alpha) for alpha in alphas]
    found = [calibrating[:, k - 1] if k <= half else np.full(n_splits, math.inf) for k in ranks]
    thresholds = np.column_stack(found)
    places = np.searchsorted(levels, thresholds)
    coverage = np.take_along_axis(covered, places, axis=1)
    size = None if counted is None else np.take_along_axis(counted, places, axis=1)
    largest = math.nan if sizes is None else float(sizes[:, -1].mean())
    return Splits(half, n - half, tuple(alphas), coverage, thresholds < math.inf, size, largest)


def _at_most(scores: ArrayLike, levels: Floats) -> Floats:
    return np.searchsorted(np.sort(column("groups", scores)), levels, "right").astype(np.float64)
