"""Whether the tested shares of a simulated run keep what calibration promises, where no questions differ."""

from __future__ import annotations

import pandas as pd

from core.analyses import RECOVERED, Analyses
from core.conformal.definitions import METRICS
from core.stats import wilson_interval


def recover(diagnosis: Analyses) -> pd.DataFrame:
    """Return each promise and the share that kept it, as `Analyses.recovered` has it.

    The halves of a simulated run are drawn at random, so that each promise holds with a probability of 1 − α
    or a little more; the difference is chance alone.
    """
    found = diagnosis["conformal"]
    rows = []
    for one in found.coverages.values():
        if one.n_test and not one.reason:
            share, known = one.n_covered / one.n_test, METRICS[one.name]
            interval = wilson_interval(share, one.n_test)
            meaning = f"At least the planted share is promised. {known.meaning}"
            rows.append((known.title, 1 - found.alpha, share, *interval, one.n_test, meaning, ""))
    return pd.DataFrame(rows, columns=[*RECOVERED])
