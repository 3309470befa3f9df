"""The headline numbers of a run, under the names that scripts and CI jobs rely on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from core.influence.analysis import InfluenceAnalysis
from core.influence.chance import chance_band
from core.influence.definitions import MODES
from core.stats import mean_interval


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
        "rho_ci": list(mean_interval(rho, lower=-1.0, upper=1.0)) if rho.size > 1 else None,
        "p_random_divergent": _mean(defined["k"].map(weights)),
        "mean_dominance": _mean(q["dominance"]),
        "n_dominance": int(q["dominance"].notna().sum()),
        "mean_entropy": _mean(q["entropy"]),
        "mean_noise_quantile": _mean(q["noise_quantile"]),
        "n_noise_quantile": int(q["noise_quantile"].notna().sum()),
        "failure_modes": {name: int(q[name].sum()) for name in MODES},
        "failure_modes_tested": dict(analysis.testable),
    }


def _mean(values: pd.Series | np.ndarray) -> float | None:
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return _value(known.mean()) if known.size else None


def _value(number: float) -> float | None:
    return None if math.isnan(number) else float(number)
