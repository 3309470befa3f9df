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


def influential(influence: ArrayLike, above_noise: ArrayLike | None = None) -> Floats:
    """Return 1 where leaving a passage out changes the answer beyond noise, 0 where not, NaN if unknown."""
    values = _floats(influence, "influence")
    noise = np.full(values.shape, np.nan) if above_noise is None else _floats(above_noise, "above_noise")
    _same_length(values, noise, "above_noise")
    plain = np.where(np.isnan(values), np.nan, values > 0)
    return np.where(np.isnan(noise) | np.isnan(values), plain, noise > 0)


def quadrants(
    influence: ArrayLike,
    above_noise: ArrayLike | None,
    support: ArrayLike,
    threshold: float = DEFAULT_SUPPORT,
) -> Labels:
    """Return the quadrant of every passage; all passages of a run at once if wanted.

    Parameters
    ----------
    influence : array_like of float
        Influence of each passage; None / NaN = not measured.
    above_noise : array_like of bool or None
        Whether the influence exceeds the spread of repeated calls; where that is missing, since no call was
        repeated, any influence above 0 counts.
    support : array_like of float
        For each passage its best support for a relevant claim; NaN where that is unknown or the answer claims
        nothing.
    threshold : float
        In (0, 1]; from this value on a passage supports something.

    Returns
    -------
    ndarray of str
        *used evidence* (influential and supporting), *distractor* (influential, supports nothing),
        *redundant or wasted* (supports, no influence), *idle* (neither), *undefined* where either is unknown.

    Raises
    ------
    ValueError
        The arrays differ in length, or a support or the threshold is out of range.

    Examples
    --------
    >>> quadrants([0.4, 0.3, 0.0], None, [1, 0, float("nan")]).tolist()
    ['used evidence', 'distractor', 'undefined']
    """
    moves, best = influential(influence, above_noise), _floats(support, "support")
    outside = best[(best < 0) | (best > 1)]
    if outside.size:
        raise ValueError(f"support must lie in [0, 1], got {outside[0]}.")
    supports = thresholded(best, threshold)
    _same_length(moves, supports, "support")
    unknown = np.isnan(moves) | np.isnan(supports)
    conditions = [unknown, (moves == 1) & (supports == 1), moves == 1, supports == 1]
    return np.select(conditions, [UNDEFINED, USED, DISTRACTOR, REDUNDANT], IDLE).astype(object)


def quadrant_counts(labels: Iterable[str]) -> pd.DataFrame:
    """Return a row per quadrant and one for *undefined*: ``quadrant, n, share``.

    ``share`` is of the defined ones, and NaN for *undefined* and where nothing is defined.
    """
    found = pd.Series(list(labels), dtype=object).value_counts()
    names = (*QUADRANTS, UNDEFINED)
    strange = next((label for label in found.index if label not in names), None)
    if strange is not None:
        raise ValueError(f"labels must be among {', '.join(names)}, got {strange!r}.")
    n = np.array([int(found.get(name, 0)) for name in names], dtype=np.int64)
    defined = n[:-1].sum()
    shares = n[:-1] / defined if defined else np.full(len(QUADRANTS), np.nan)
    return pd.DataFrame({"quadrant": names, "n": n, "share": [*shares, np.nan]})


def _floats(values: ArrayLike, name: str) -> Floats:
    # A list or a pandas column may hold None or NA where a number is missing.
    given = np.asarray(values, dtype=object)
    if given.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {given.shape}.")
    array = np.full(given.shape, np.nan)
    known = ~pd.isna(given)
    array[known] = given[known].astype(np.float64)
    return array


def _same_length(first: Floats, second: Floats, name: str) -> None:
    if first.shape != second.shape:
        raise ValueError(f"{name} must have {first.size} entries like the others, got {second.size}.")
