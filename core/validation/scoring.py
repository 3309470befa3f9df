"""The confidence score of an answer, from the number of its passages and what the validators said."""

from __future__ import annotations

from collections.abc import Iterable

from core.context_score import Failure, context_score
from core.validation.types import Code, Verdict

_FAILURES = {Code.MISSING_CITATION: Failure.MISSING_CITATION, Code.LOW_OVERLAP: Failure.LOW_OVERLAP}


def confidence_score(n_passages: int, verdicts: Iterable[Verdict] | None) -> float:
    """Return the confidence in an answer: `core.context_score.context_score` of its gravest failure.

    Where `ConfidenceValidator` failed the answer, no passage vouches for it, so it counts as one without
    passages.

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
    if verdicts is None:
        return context_score(n_passages, None).score
    failed = [verdict for verdict in verdicts if verdict.passed is False]
    if any(verdict.validator == "ConfidenceValidator" for verdict in failed):
        return context_score(0, False, [Failure.MISSING_UNCERTAINTY]).score
    if not failed:
        return context_score(n_passages, True).score
    kinds = {_FAILURES.get(verdict.reason.code, Failure.OTHER) for verdict in failed}
    return min(context_score(n_passages, False, [one]).score for one in kinds)
