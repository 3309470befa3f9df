"""Influence vs support of passages, and confidence vs grounding of answers.

Influence (does the answer change without the passage?) and support (does the passage say what the answer
says?) are measured apart; each of the four combinations asks for another repair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.claims.three_valued import DEFAULT_SUPPORT, thresholded
from core.claims.types import Floats, Labels

USED, DISTRACTOR, REDUNDANT, IDLE = "used evidence", "distractor", "redundant or wasted", "idle"
QUADRANTS = (USED, DISTRACTOR, REDUNDANT, IDLE)
UNDEFINED = "undefined"

SOUND, HALLUCINATION = "confident and grounded", "confident and ungrounded"
HESITANT, WEAK = "unsure but grounded", "unsure and ungrounded"
ANSWER_QUADRANTS = (SOUND, HALLUCINATION, HESITANT, WEAK)
DEFAULT_CONFIDENCE = 0.7


def influential(influence: ArrayLike, above_noise: ArrayLike | None = None) -> Floats:
    """Return 1 where removing a passage changes the answer by more than noise, 0 where not, NaN if unknown.

    Parameters
    ----------
    influence : array_like of float
        Influence of each passage; None / NaN = not measured.
    above_noise : array_like of bool, optional
        Whether the influence exceeds the spread of repeated calls; missing where no call was repeated, and
        there any influence above 0 counts.
    """
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
    influence, above_noise : array_like
        As in `influential`.
    support : array_like of float
        For each passage its best support for a relevant claim, or 0 / 1
        (`ClaimEvidenceMatrix.passage_support`); NaN where that is unknown or the answer claims nothing.
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
    moves = influential(influence, above_noise)
    supports = thresholded(_probabilities(support, "support"), threshold)
    _same_length(moves, supports, "support")
    return _crossed(moves, supports, QUADRANTS)


def quadrant_counts(labels: Sequence[str], names: Sequence[str] = QUADRANTS) -> pd.DataFrame:
    """Return a row per quadrant and one for *undefined*: ``quadrant, n, share``.

    ``share`` is of the defined ones, and NaN for *undefined* and where nothing is defined.
    """
    found = pd.Series(list(labels), dtype=object).value_counts()
    strange = next((label for label in found.index if label not in (*names, UNDEFINED)), None)
    if strange is not None:
        raise ValueError(f"labels must be among {', '.join((*names, UNDEFINED))}, got {strange!r}.")
    n = np.array([int(found.get(name, 0)) for name in (*names, UNDEFINED)], dtype=np.int64)
    defined = n[:-1].sum()
    shares = n[:-1] / defined if defined else np.full(len(names), np.nan)
    return pd.DataFrame({"quadrant": [*names, UNDEFINED], "n": n, "share": [*shares, np.nan]})


def answer_quadrants(
    confidence: ArrayLike | None,
    grounding: ArrayLike,
    confident_from: float = DEFAULT_CONFIDENCE,
    grounded_from: float = DEFAULT_SUPPORT,
) -> Labels:
    """Return confident × grounded for every answer: *confident and ungrounded* is what must be found.

    Parameters
    ----------
    confidence : array_like of float or None
        In [0, 1] for each answer, None / NaN = undefined; None for the whole array where the run has none.
    grounding : array_like of float
        Share of each answer's claims that are supported, None / NaN = undefined.
    confident_from, grounded_from : float
        In (0, 1]; both bounds count as reached.

    Returns
    -------
    ndarray of str
        One of ``ANSWER_QUADRANTS``, or *undefined* where either is unknown.
    """
    grounded = thresholded(_probabilities(grounding, "grounding"), grounded_from)
    if confidence is None:
        confidence = np.full(grounded.shape, np.nan)
    confident = thresholded(_probabilities(confidence, "confidence"), confident_from)
    _same_length(grounded, confident, "confidence")
    return _crossed(confident, grounded, ANSWER_QUADRANTS)


def _crossed(first: Floats, second: Floats, names: Sequence[str]) -> Labels:
    conditions = [
        np.isnan(first) | np.isnan(second),
        (first == 1) & (second == 1),
        first == 1,
        second == 1,
    ]
    return np.select(conditions, [UNDEFINED, *names[:3]], names[3]).astype(object)


def _floats(values: ArrayLike, name: str) -> Floats:
    # A list or a pandas column may hold None or NA where a number is missing.
    given = np.asarray(values, dtype=object)
    if given.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {given.shape}.")
    array = np.full(given.shape, np.nan)
    known = ~pd.isna(given)
    array[known] = given[known].astype(np.float64)
    return array


def _probabilities(values: ArrayLike, name: str) -> Floats:
    array = _floats(values, name)
    outside = array[(array < 0) | (array > 1)]
    if outside.size:
        raise ValueError(f"{name} must lie in [0, 1], got {outside[0]}.")
    return array


def _same_length(first: Floats, second: Floats, name: str) -> None:
    if first.shape != second.shape:
        raise ValueError(f"{name} must have {first.size} entries like the others, got {second.size}.")
