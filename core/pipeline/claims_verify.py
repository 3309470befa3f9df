"""Ask a verifier about many questions so that the failure of one touches no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.claims.types import Floats, Verifier
from core.claims.verifiers.features import Group
from core.claims.verifiers.offline import OfflineVerifier, default_verifier
from core.errors import BackendError, Cancelled, InputError, LeadlineError
from core.llm.cache import CacheError
from core.llm.redact import error_text

_LOG = logging.getLogger(__name__)
PASSED_ON = (Cancelled, CacheError)
_NO_ANSWER = "The verifier gave no probability and no reason."


VerifyFunction = Callable[[Sequence[str], Sequence[str]], ArrayLike]


class Scores(NamedTuple):
    """What a verifier said of the claims and passages of one group.

    ``agreement`` is NaN where verdicts were not repeated. ``reason`` says why cells are unscored, if any is.
    """

    probability: Floats
    agreement: Floats
    reason: str | None


class GuardedVerifier:
    """A verifier whose exceptions, odd shapes and odd numbers become unscored cells with a reason.

    Parameters
    ----------
    verifier : Verifier
        Who judges. With ``support_many`` (or ``judge_many``) it is asked about many questions at once, and
        one by one where that fails.
    is_alive : callable
        Whether its model has answered anything by now.
    trusted : bool
        It was opened by this program: a `BackendError` before anything was answered means that its model
        cannot be reached, and is raised at once. Else it is raised where all questions end so.
    """

    def __init__(
        self, verifier: Verifier, is_alive: Callable[[], bool] = lambda: False, trusted: bool = False
    ) -> None:
        self.name = verifier.name
        self.n_scored = 0
        self.n_failed = 0
        self._verifier = verifier
        self._is_alive = is_alive
        self._trusted = trusted

    def ask(self, questions: Sequence[Sequence[Group]]) -> list[list[Scores]]:
        """Judge the groups of each question.

        Raises
        ------
        Cancelled, CacheError
            As the verifier raised them.
        BackendError
            Nothing could be judged because the model cannot be reached.
        """
        if len(questions) > 1 and self._has_many():
            found = self._try(questions)
            if not isinstance(found, Exception):
                return found
        results, errors = [], []
        for groups in questions:
            one = self._try([groups])
            if isinstance(one, Exception):
                errors.append(one)
                results.append([self._failed(group, reason_of(one)) for group in groups])
            else:
                results += one
        if errors and len(errors) == sum(map(bool, questions)) and not self._alive():
            unreachable = [error for error in errors if isinstance(error, BackendError)]
            if len(unreachable) == len(errors):
                raise unreachable[0]
        return results

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return `ask` for one group: the probabilities alone."""
        return self.support_many([(claims, passages)])[0]

    def support_many(self, groups: Sequence[Group]) -> list[Floats]:
        """Return `ask` for one question: the probabilities alone."""
        return [scores.probability for scores in self.ask([groups])[0]]

    def _has_many(self) -> bool:
        return hasattr(self._verifier, "judge_many") or hasattr(self._verifier, "support_many")

    def _alive(self) -> bool:
        return self.n_scored > 0 or self._is_alive()

    def _try(self, questions: Sequence[Sequence[Group]]) -> list[list[Scores]] | Exception:
        """Judge several questions at once; return what went wrong where it did."""
        groups = [group for listed in questions for group in listed if len(group[0]) and len(group[1])]
        try:
            found = iter(self._judged(groups) if groups else ())
        except PASSED_ON:
            raise
        except Exception as error:
            if self._trusted and isinstance(error, BackendError) and not self._alive():
                raise
            _LOG.debug("The verifier %s failed.", self.name, exc_info=True)
            return error
        return [
            [
                next(found) if len(claims) and len(passages) else _nothing(claims, passages)
                for claims, passages in listed
            ]
            for listed in questions
        ]

    def _judged(self, groups: Sequence[Group]) -> list[Scores]:
        verifier = self._verifier
        if hasattr(verifier, "judge_many"):
            judged = [(j.probability, j.agreement, "; ".join(j.reasons)) for j in verifier.judge_many(groups)]
        elif hasattr(verifier, "support_many"):
            judged = [(found, None, "") for found in verifier.support_many(groups)]
        else:
            judged = [(verifier.support(*group), None, "") for group in groups]
        if len(judged) != len(groups):
            raise ValueError(f"it gave {len(judged)} matrices for {len(groups)}")
        return [self._read(group, *found) for group, found in zip(groups, judged, strict=True)]

    def _read(self, group: Group, probability: object, agreement: object, reason: str) -> Scores:
        shape = len(group[0]), len(group[1])
        try:
            found = np.array(probability, dtype=np.float64)
        except (TypeError, ValueError):
            return self._failed(group, "The verifier gave something that is no matrix of numbers.")
        if found.shape != shape:
            return self._failed(group, f"The verifier gave the shape {found.shape}, where {shape} is right.")
        outside = ~np.isnan(found) & ~((found >= 0) & (found <= 1))
        if outside.any():
            reason = f"The verifier gave {found[outside][0]:g}, which is no probability."
            found[outside] = np.nan
        n_failed = int(np.isnan(found).sum())
        self.n_failed += n_failed
        self.n_scored += found.size - n_failed
        agreed = (
            agreement if isinstance(agreement, np.ndarray) and agreement.shape == shape else np.nan * found
        )
        return Scores(found, agreed, (reason or _NO_ANSWER) if n_failed else None)

    def _failed(self, group: Group, reason: str) -> Scores:
        shape = len(group[0]), len(group[1])
        self.n_failed += shape[0] * shape[1]
        return Scores(np.full(shape, np.nan), np.full(shape, np.nan), reason)


class FunctionVerifier:
    """A verifier that is a user's own function of claims and passages."""

    def __init__(self, function: VerifyFunction) -> None:
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self._function = function

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return what the function returns."""
        return np.asarray(self._function(claims, passages), dtype=np.float64)


def as_verifier(verifier: Verifier | VerifyFunction) -> Verifier:
    """Return a verifier as it is, and a function as one; InputError for anything else."""
    if not hasattr(verifier, "support"):
        if callable(verifier):
            return FunctionVerifier(verifier)
        raise InputError(
            f"verifier must be a Verifier or a function of claims and passages, got {verifier!r}."
        )
    if not isinstance(getattr(verifier, "name", None), str):
        raise InputError(f"verifier must have a name, a text that says who judged; {verifier!r} has none.")
    return cast(Verifier, verifier)


def like_sentences(verifier: Verifier, groups: Sequence[Group]) -> list[NDArray[np.int64]]:
    """Return for each group the place of the sentence of each passage that is most like each claim.

    The offline verifier measures it anyway; beside any other one the packaged embedder does. (-1, -1) where
    there is none, or nothing to measure with: it is shown to readers, and nothing rests on it.
    """
    try:
        measuring = verifier if isinstance(verifier, OfflineVerifier) else default_verifier()
        return [measured.sentences for measured in measuring.measure(groups)]
    except Exception:
        _LOG.debug("No sentences could be found.", exc_info=True)
        return [np.full((len(claims), len(passages), 2), -1, dtype=np.int64) for claims, passages in groups]


def _nothing(claims: Sequence[str], passages: Sequence[str]) -> Scores:
    return Scores(np.zeros((len(claims), len(passages))), np.zeros((len(claims), len(passages))), None)


def reason_of(error: Exception, who: str = "The verifier") -> str:
    """Return in one sentence why there is no result."""
    if isinstance(error, LeadlineError):
        return str(error)
    # Foreign code may put an address or a key into its message.
    return f"{who} failed ({error_text(error)})."
