"""The confidence score of an answer, from the number of its passages and what the validators said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from core.validation.types import Code, Verdict

_BASE = (0.2, 0.5, 0.8)  # with 0, 1, and 2 or more passages
_PASSED = 0.1
_UNGROUNDED = 0.1
_PENALTIES = {Code.MISSING_CITATION: 0.2, Code.LOW_OVERLAP: 0.15}
_OTHER = 0.1
_MEDIUM, _HIGH = 0.4, 0.7


def confidence_score(n_passages: int, verdicts: Iterable[Verdict] | None) -> float:
    """Return the confidence in an answer.

    0.2, 0.5 or 0.8 with 0, 1, or 2 and more passages; 0.1 more where all validators passed. 0.1 in all where
    `ConfidenceValidator` failed it. Otherwise the largest of these is taken off: 0.2 for a missing citation,
    0.15 for a low overlap, 0.1 for anything else.

    Parameters
    ----------
    n_passages : int
        Passages that hold a word.
    verdicts : iterable of Verdict or None
        None where validators are switched off: the base alone.

    Returns
    -------
    float
        In [0, 1], higher = more confident. A rule of thumb, not a probability.
    """
    base = _BASE[min(n_passages, 2)]
    if verdicts is None:
        return base
    failed = [verdict for verdict in verdicts if verdict.passed is False]
    if any(verdict.validator == "ConfidenceValidator" for verdict in failed):
        return _UNGROUNDED
    if not failed:
        return round(min(1.0, base + _PASSED), 2)
    taken = max(_PENALTIES.get(verdict.reason.code, _OTHER) for verdict in failed)
    return round(max(0.0, base - taken), 2)


def band(score: float) -> Literal["low", "medium", "high"]:
    """Return the band of a score: low below 0.4, medium below 0.7, else high; no score is between two.

    >>> [band(score) for score in (0.35, 0.4, 0.65, 0.7)]
    ['low', 'medium', 'medium', 'high']
    """
    return "low" if score < _MEDIUM else "medium" if score < _HIGH else "high"
