"""The headline numbers of a run, under the names that scripts and CI jobs rely on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student_t

from core.influence.analysis import InfluenceAnalysis
from core.influence.chance import chance_band
from core.influence.definitions import MODES


def summary(analysis: InfluenceAnalysis) -> dict[str, Any]:
    """Return the headline numbers of a run as plain JSON values.

    Parameters
    ----------
    analysis : InfluenceAnalysis
        What `analyse` made of it.

    Returns
    -------
    dict
        Every mean rests on the questions where its number is defined; ``n_defined`` and
        ``undefined_reasons`` say how many those are and why the others are not. Numbers without a
        value, and analyses that were not run, are None. ``rho_ci`` is the 95 % t interval of the
        mean over questions (None below 2). ``p_random_divergent`` is the share of *random* orders
        that the threshold would call divergent, averaged over the defined questions.
    """
    q, defined = analysis.queries, analysis.defined
    rho = defined["rho"].to_numpy()
    below = [chance_band(int(k)).p_below(analysis.threshold) for k in defined["k"].unique()]
    weights = dict(zip(defined["k"].unique(), below, strict=True))
    return {
        "threshold": analysis.threshold,
        "n_defined": len(defined),
        "n_undefined": len(q) - len(defined),
        "undefined_reasons": {str(k): int(v) for k, v in q["reason"].value_counts().items()},
        "n_divergent": int((q["label"] == "Divergent").sum()),
        "n_aligned": int((q["label"] == "Aligned").sum()),
        "mean_rho": _mean(rho),
        "median_rho": _value(np.median(rho)) if rho.size else None,
        "rho_ci": mean_interval(rho, lower=-1.0, upper=1.0),
        "p_random_divergent": _mean(defined["k"].map(weights)),
        "mean_dominance": _mean(q["dominance"]),
        "n_dominance": int(q["dominance"].notna().sum()),
        "mean_entropy": _mean(q["entropy"]),
        "mean_noise_quantile": _mean(q["noise_quantile"]),
        "n_noise_quantile": int(q["noise_quantile"].notna().sum()),
        "failure_modes": {name: int(q[name].sum()) for name in MODES},
        "failure_modes_tested": dict(analysis.testable),
    }


def mean_interval(
    values: np.ndarray, level: float = 0.95, lower: float = -math.inf, upper: float = math.inf
) -> list[float] | None:
    """Student's t interval of a mean, as [low, high] within the bounds of the values; None for n < 2."""
    n = len(values)
    if n < 2:
        return None
    half = float(student_t.ppf((1 + level) / 2, n - 1)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    centre = float(np.mean(values))
    return [max(lower, centre - half), min(upper, centre + half)]


def wilson_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n >= 1 cases (Wilson 1927).

    For the mean of other values in [0, 1] it is on the safe side: no such mean varies more than a share.
    """
    z = 1.959964
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def _mean(values: pd.Series | np.ndarray) -> float | None:
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return _value(known.mean()) if known.size else None


def _value(number: float) -> float | None:
    return None if math.isnan(number) else float(number)
