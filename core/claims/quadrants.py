"""Influence vs support of passages.

Influence (does the answer change without the passage?) and support (does the passage say what the answer
says?) are measured apart; each of the four combinations asks for another repair.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.claims.matrix import DEFAULT_SUPPORT, thresholded
from core.claims.types import Floats, Labels

USED, DISTRACTOR, REDUNDANT, IDLE = "used evidence", "distractor", "redundant or wasted", "idle"
QUADRANTS = (USED, DISTRACTOR, REDUNDANT, IDLE)
UNDEFINED = "undefined"


def quadrants(
    influence: ArrayLike,
    above_noise: ArrayLike | None,
    support: ArrayLike,
    threshold: float = DEFAULT_SUPPORT,
) -> Labels:
    """Return the quadrant of every passage; all passages of a run at once if wanted.

    ``influence`` is None / NaN where it was not measured. ``above_noise`` says whether it exceeds the spread
    of repeated calls; where that is missing any influence above 0 counts. ``support``, in [0, 1], is the best
    for a relevant claim; NaN where that is unknown or the answer claims nothing. From ``threshold``, in
    (0, 1], on a passage supports something.

    Returns
    -------
    ndarray of str
        *used evidence* (influential and supporting), *distractor* (influential, supports nothing),
        *redundant or wasted* (supports, no influence), *idle* (neither), *undefined* where either is unknown.

    Examples
    --------
    >>> quadrants([0.4, 0.3, 0.0], None, [1, 0, float("nan")]).tolist()
    ['used evidence', 'distractor', 'undefined']
    """
    values = _floats(influence)
    noise = np.full(values.shape, np.nan) if above_noise is None else _floats(above_noise)
    supports = thresholded(_floats(support), threshold)
    unknown = np.isnan(values) | np.isnan(supports)
    moves = np.where(np.isnan(noise), values, noise) > 0
    conditions = [unknown, moves & (supports == 1), moves, supports == 1]
    return np.select(conditions, [UNDEFINED, USED, DISTRACTOR, REDUNDANT], IDLE).astype(object)


def quadrant_counts(labels: Iterable[str]) -> pd.DataFrame:
    """Return ``quadrant, n, share`` (of the defined) per quadrant and for *undefined* (share NaN)."""
    found = pd.Series(list(labels), dtype=object).value_counts()
    names = (*QUADRANTS, UNDEFINED)
    n = np.array([int(found.get(name, 0)) for name in names], dtype=np.int64)
    defined = n[:-1].sum()
    shares = n[:-1] / defined if defined else np.full(len(QUADRANTS), np.nan)
    return pd.DataFrame({"quadrant": names, "n": n, "share": [*shares, np.nan]})


def _floats(values: ArrayLike) -> Floats:
    """Return numbers, NaN where one is missing: a list or a pandas column may hold None or NA."""
    return pd.Series(values, dtype=object).astype("Float64").to_numpy(np.float64, na_value=np.nan)
