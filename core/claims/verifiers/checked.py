"""Any verifier made safe: a failure is an unscored cell with a reason, never "not supported"."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from core.claims.matrix import DEFAULT_SUPPORT
from core.claims.types import ClaimGroup, Floats, Ints, Judgement, Verifier
from core.claims.verifiers.offline import OfflineVerifier, default_verifier
from core.errors import BackendError, Cancelled, InputError, LeadlineError
from core.llm.cache import CacheError
from core.llm.redact import error_text

_LOG = logging.getLogger(__name__)
_NO_ANSWER = "The verifier gave no probability and no reason."

VerifyFunction = Callable[[Sequence[str], Sequence[str]], ArrayLike]


class VerifierError(LeadlineError):
    """A verifier failed on some claims and passages."""


class CheckedVerifier:
    """A verifier whose malformed results become unscored cells with a reason; ``n_failed`` counts them.

    ``is_alive``: it is known to work; until it has scored anything else, a `BackendError` is raised as it is.
    """

    def __init__(self, verifier: Verifier, is_alive: bool = False) -> None:
        self.name = verifier.name
        self.n_failed = 0
        self._verifier = verifier
        self._is_alive = is_alive

    def judge(self, groups: Sequence[ClaimGroup]) -> list[Judgement]:
        """Judge each group; a failure is a `VerifierError`, unless the model cannot be reached."""
        real = [group for group in groups if len(group[0]) and len(group[1])]
        try:
            found = iter(self._judged(real) if real else ())
        except (Cancelled, CacheError):
            raise
        except Exception as error:
            if isinstance(error, BackendError) and not self._is_alive:
                raise
            # Foreign code may put an address or a key into its message.
            foreign = f"The verifier failed ({error_text(error)})."
            raise VerifierError(str(error) if isinstance(error, LeadlineError) else foreign) from error
        nothing = (np.zeros((len(claims), len(passages))) for claims, passages in groups)
        return [next(found) if empty.size else Judgement(empty, empty, None) for empty in nothing]

    def _judged(self, groups: Sequence[ClaimGroup]) -> list[Judgement]:
        verifier: Any = self._verifier
        if hasattr(verifier, "judge_many"):
            judged = list(verifier.judge_many(groups))
        elif hasattr(verifier, "support_many"):
            judged = [(found, None, None) for found in verifier.support_many(groups)]
        else:
            return [self._checked(group, verifier.support(*group), None, None) for group in groups]
        if len(judged) != len(groups):
            raise ValueError(f"it gave {len(judged)} matrices for {len(groups)}")
        return [self._checked(group, *found) for group, found in zip(groups, judged, strict=True)]

    def _checked(
        self, group: ClaimGroup, probability: object, agreement: object, reason: str | None
    ) -> Judgement:
        shape = len(group[0]), len(group[1])
        try:
            found = np.array(probability, dtype=np.float64)
        except (TypeError, ValueError):
            found = np.full(shape, np.nan)
            reason = "The verifier gave something that is no matrix of numbers."
        if found.shape != shape:
            reason = f"The verifier gave the shape {found.shape}, where {shape} is right."
            found = np.full(shape, np.nan)
        outside = ~np.isnan(found) & ~((found >= 0) & (found <= 1))
        if outside.any():
            reason = f"The verifier gave {found[outside][0]:g}, which is no probability."
            found[outside] = np.nan
        n_failed = int(np.isnan(found).sum())
        self.n_failed += n_failed
        self._is_alive |= n_failed < found.size
        if not (isinstance(agreement, np.ndarray) and agreement.shape == shape):
            agreement = np.full(shape, np.nan)
        return Judgement(found, agreement, (reason or _NO_ANSWER) if n_failed else None)


class FunctionVerifier:
    """A user's own function of claims and passages as a verifier."""

    def __init__(self, function: VerifyFunction) -> None:
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self._function = function

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return what the function returns."""
        return np.asarray(self._function(claims, passages), dtype=np.float64)


def as_verifier(verifier: Verifier | VerifyFunction) -> Verifier:
    """Return a verifier as it is, and a function wrapped as one; InputError for anything else."""
    if not hasattr(verifier, "support"):
        if callable(verifier):
            return FunctionVerifier(verifier)
        raise InputError(
            f"verifier must be a Verifier or a function of claims and passages, got {verifier!r}."
        )
    if not isinstance(getattr(verifier, "name", None), str):
        raise InputError(f"verifier must have a name, a text that says who judged; {verifier!r} has none.")
    return cast(Verifier, verifier)


def most_alike_sentences(verifier: Verifier, groups: Sequence[ClaimGroup]) -> list[Ints]:
    """Return for each group the place of the sentence of each passage that is most like each claim.

    (-1, -1) where there is none, or nothing to measure with: readers see it, but no number depends on it.
    """
    try:
        measuring = verifier if isinstance(verifier, OfflineVerifier) else default_verifier()
        return [measured.sentences for measured in measuring.measure(groups)]
    except Exception:
        _LOG.debug("No sentences could be found.", exc_info=True)
        return [np.full((len(claims), len(passages), 2), -1, dtype=np.int64) for claims, passages in groups]


Joint = tuple[int, tuple[int, int], float]
_TOP = 3  # passages that pairs are made of


def joint_support(
    claims: Sequence[str], passages: Sequence[str], M: Floats, verifier: CheckedVerifier
) -> list[Joint]:
    """Find the pairs of passages that support a claim which neither supports alone.

    Only claims that have a score and no support are tried, with the pairs among the three passages most
    likely to support them: at most three judgements for each. Claim, (i < j), probability: by claim, best
    first.
    """
    tried = [(c, pairs) for c, row in enumerate(M) if (pairs := _pairs(row))]
    together = [[f"{passages[i].rstrip()}\n\n{passages[j].lstrip()}" for i, j in pairs] for _, pairs in tried]
    groups = [([claims[c]], texts) for (c, _), texts in zip(tried, together, strict=True)]
    found: list[Joint] = []
    for (c, pairs), scores in zip(tried, verifier.judge(groups), strict=True):
        of_pairs = zip(pairs, scores.probability[0], strict=True)
        good = [(c, pair, float(p)) for pair, p in of_pairs if p >= DEFAULT_SUPPORT]
        found += sorted(good, key=lambda joint: -joint[2])
    return found


def _pairs(row: Floats) -> list[tuple[int, int]]:
    scored = np.flatnonzero(~np.isnan(row))
    if scored.size < 2 or row[scored].max() >= DEFAULT_SUPPORT:
        return []
    best = scored[np.argsort(-row[scored], kind="stable")][:_TOP]
    return list(combinations(sorted(int(i) for i in best), 2))
