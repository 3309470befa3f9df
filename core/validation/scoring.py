"""The confidence in an answer, from the number of its passages and what the validators said."""

from __future__ import annotations

from collections.abc import Iterable

from core.context_score import ContextScore, Failure, context_score
from core.validation.types import Code, Verdict

_FAILURES = {Code.MISSING_CITATION: Failure.MISSING_CITATION, Code.LOW_OVERLAP: Failure.LOW_OVERLAP}
_UNGROUNDED = ("no passage supports the answer", "and no uncertainty is stated: 0.1 in all")


def scored(n_passages: int, verdicts: Iterable[Verdict] | None) -> ContextScore:
    """Return the context score of an answer's gravest failure, with its reasons.

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
    ContextScore
        A rule of thumb (`core.context_score.context_score`), not a probability.
    """
    if verdicts is None:
        return context_score(n_passages, None)
    failed = [verdict for verdict in verdicts if verdict.passed is False]
    if any(verdict.validator == "ConfidenceValidator" for verdict in failed):
        found = context_score(0, False, [Failure.MISSING_UNCERTAINTY])
        if not n_passages:
            return found
        said = zip(found.reasons, _UNGROUNDED, strict=True)
        return ContextScore(found.score, tuple(one._replace(sentence=text) for one, text in said))
    if not failed:
        return context_score(n_passages, True)
    kinds = {_FAILURES.get(verdict.reason.code, Failure.OTHER) for verdict in failed}
    return min((context_score(n_passages, False, [one]) for one in kinds), key=lambda one: one.score)
