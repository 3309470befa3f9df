"""A confidence from what an answer had to go on: passages, and which validators it failed; and its band."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from core.errors import InputError

_BASES = (0.2, 0.5, 0.8)


class Failure(StrEnum):
    """What a validator found wrong with an answer, as far as it changes the context score."""

    MISSING_UNCERTAINTY = "missing_uncertainty_no_context"
    MISSING_CITATION = "missing_citation"
    LOW_OVERLAP = "low_overlap"
    OTHER = "other"


class Band(NamedTuple):
    """A range of confidence, told by icon, word and colour."""

    colour: str
    icon: str
    word: str


RED, ORANGE, GREEN = Band("red", "▼", "low"), Band("orange", "◆", "medium"), Band("green", "▲", "high")
NO_BAND = Band("grey", "–", "undefined")


class Adjustment(NamedTuple):
    """One step of a context score: what it is for, and by how much it changes the score."""

    sentence: str
    change: float


@dataclass(frozen=True)
class ContextScore:
    """The context score of one answer.

    Attributes
    ----------
    score : float
        In [0, 1], higher = more confident.
    reasons : tuple of Adjustment
        The base, then every change; they sum to the score, or to less than 0 where it is 0.
    """

    score: float
    reasons: tuple[Adjustment, ...]


def band(confidence: float) -> Band:
    """Return the band of a confidence: red [0, 0.4), orange [0.4, 0.7), green [0.7, 1].

    Raises
    ------
    InputError
        It lies outside [0, 1]. NaN has the band `NO_BAND`.

    Examples
    --------
    >>> [band(one).word for one in (0.39, 0.4, 0.7, float("nan"))]
    ['low', 'medium', 'high', 'undefined']
    """
    if math.isnan(confidence):
        return NO_BAND
    if not 0 <= confidence <= 1:
        raise InputError(f"A confidence lies in [0, 1], got {confidence!r}.")
    # A sum of decimals may be a rounding error below the limit that it is.
    value = round(confidence, 9)
    return RED if value < 0.4 else ORANGE if value < 0.7 else GREEN


def context_score(n_passages: int, passed: bool | None, failures: Collection[Failure] = ()) -> ContextScore:
    """Return the confidence that the number of passages and the validators give, with its reasons.

    0.2 without passages, 0.5 with one, 0.8 with more; + 0.1 where validation passed; 0.1 in all where an
    answer without passages states no uncertainty. Else each kind of failure counts once: a missing citation
    with passages − 0.2, low overlap − 0.15, anything else together − 0.1; clamped to [0, 1].

    Parameters
    ----------
    n_passages : int
        Passages that the answer had.
    passed : bool or None
        Whether validation passed; None where nothing was validated.
    failures : collection of Failure
        What failed; only with ``passed=False``, and none of them counts as some other failure.

    Raises
    ------
    InputError
        A negative number of passages, or failures of an answer that did not fail.

    Examples
    --------
    >>> found = context_score(3, False, [Failure.LOW_OVERLAP])
    >>> found.score
    0.65
    >>> [f"{reason.change:+.2f} {reason.sentence}" for reason in found.reasons]
    ['+0.80 3 passages', '-0.15 little of the answer is in the passages']
    """
    if n_passages < 0:
        raise InputError(f"The number of passages must be at least 0, got {n_passages}.")
    if failures and passed is not False:
        raise InputError("Only an answer that failed validation has failures.")
    base = _BASES[min(n_passages, 2)]
    reasons = [Adjustment(f"{n_passages or 'no'} passage{'' if n_passages == 1 else 's'}", base)]
    if passed:
        reasons.append(Adjustment("validation passed", 0.1))
    elif passed is False:
        reasons += _failed(base, bool(n_passages), set(failures))
    total = round(sum(reason.change for reason in reasons), 9)
    return ContextScore(min(1.0, max(0.0, total)), tuple(reasons))


def _failed(base: float, has_context: bool, failures: set[Failure]) -> list[Adjustment]:
    """Return what the failures change."""
    if Failure.MISSING_UNCERTAINTY in failures and not has_context:
        return [Adjustment("no passages and no uncertainty stated: 0.1 in all", 0.1 - base)]
    found = []
    known = {Failure.LOW_OVERLAP}
    if Failure.MISSING_CITATION in failures and has_context:
        known.add(Failure.MISSING_CITATION)
        found.append(Adjustment("passages, but none is cited", -0.2))
    if Failure.LOW_OVERLAP in failures:
        found.append(Adjustment("little of the answer is in the passages", -0.15))
    if failures - known or not failures:
        found.append(Adjustment("another objection of validation", -0.1))
    return found
