"""All validators on one answer, and the call for a program that serves answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from core.context_score import ContextScore, Failure, context_score
from core.errors import InputError
from core.text.language import Language, language, language_named
from core.validation.types import Case, Code, ValidationOutcome, Validator, Verdict
from core.validation.validators import (
    CitationRequired,
    ConfidenceValidator,
    EthicsAdapter,
    EvidenceOverlap,
    Guard,
    NumericUnits,
)

ENABLE, THRESHOLD = "ENABLE_VALIDATORS", "VALIDATOR_EVIDENCE_THRESHOLD"
_ON, _OFF = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
DEFAULT_THRESHOLD = 0.01
_LONGEST_QUESTION = 120  # characters in a suggestion
_UNGROUNDED = {
    Code.LOW_OVERLAP, Code.MISSING_UNCERTAINTY, Code.MISSING_UNCERTAINTY_NO_CONTEXT, Code.OVERCONFIDENT,
}  # fmt: skip
_FAILURES = {Code.MISSING_CITATION: Failure.MISSING_CITATION, Code.LOW_OVERLAP: Failure.LOW_OVERLAP}
_WORDS_UNGROUNDED = ("no passage supports the answer", "and no uncertainty is stated: 0.1 in all")
# What is said of an answer and in its place, by language.
TEXTS: Mapping[Language, Mapping[str, str]] = json.loads(
    files(__package__).joinpath("wording.json").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class ValidatorChain:
    """Validators in the order of their verdicts; all of them are asked."""

    validators: Sequence[Validator]

    def check(self, case: Case) -> tuple[Verdict, ...]:
        """Return the verdict of each validator."""
        return tuple(validator.check(case) for validator in self.validators)


def default_chain(
    threshold: float = DEFAULT_THRESHOLD, guard: Guard | None = None, citations: bool = True
) -> ValidatorChain:
    """Return the five validators with their defaults; one threshold says what is no ground at all."""
    return ValidatorChain(
        (
            CitationRequired(citations),
            EvidenceOverlap(threshold),
            NumericUnits(),
            ConfidenceValidator(threshold=threshold),
            EthicsAdapter(guard),
        )
    )


def validate(
    question: str,
    answer: str,
    passages: Sequence[str],
    lang: str | None = None,
    *,
    chain: ValidatorChain | None = None,
) -> ValidationOutcome:
    """Check an answer against its passages, without a model.

    Parameters
    ----------
    question, answer : str
        As asked and as answered.
    passages : sequence of str
        What was retrieved, in the order in which the answer cites it; blank ones count as none.
    lang : str, optional
        "en", "vi", "zh-Hans" (also "zh", "zh-CN") or "zh-Hant" ("zh-TW"): of the suggestions. Detected from
        the question, or the answer where the question is too short. Validators read all of them at once.
    chain : ValidatorChain, optional
        By default all five, with the threshold of the environment variable ``VALIDATOR_EVIDENCE_THRESHOLD``
        (0.01), unless ``ENABLE_VALIDATORS`` is "false".

    Returns
    -------
    ValidationOutcome
        ``passed`` is True where no validator objects.

    Raises
    ------
    InputError
        An environment variable or ``lang`` cannot be used as given.

    Notes
    -----
    No model calls; a few milliseconds for an ordinary answer and five passages (``bench/validation.py``). The
    first call of a process takes half a second longer, to load tables.

    Examples
    --------
    >>> outcome = validate("Who built it?", "It was definitely Brunel.", [])
    >>> outcome.passed, [str(verdict.reason.code) for verdict in outcome.failed]
    (False, ['missing_citation', 'overconfident'])
    """
    spoken = language(question, answer) if lang is None else language_named(lang)
    case = Case(question, answer, tuple(passages))
    if chain is None and not is_on():
        return outcome_of(question, answer, len(case.passages), None, spoken)
    chain = chain or default_chain(least_overlap())
    return outcome_of(question, answer, len(case.passages), chain.check(case), spoken)


def outcome_of(
    question: str, answer: str, n_passages: int, verdicts: tuple[Verdict, ...] | None, lang: Language
) -> ValidationOutcome:
    """Return what verdicts on an answer come to; ``n_passages`` are those with a word."""
    failed = [verdict for verdict in verdicts or () if verdict.passed is False]
    passed = None if verdicts is None else not failed
    score = scored(n_passages, verdicts)
    info: dict[str, Any] = {
        "passed": passed,
        "reasons": [str(verdict.reason.code) for verdict in failed],
        "used_fallback": False,
        "confidence_score": score.score,
        "context_docs_count": n_passages,
    }
    return ValidationOutcome(
        passed, verdicts or (), score, info, _suggestions(question, answer, failed, lang), lang
    )


def _suggestions(question: str, answer: str, failed: Sequence[Verdict], lang: Language) -> tuple[str, ...]:
    """Return what to add to the collection: what the question asks, and numbers without a source."""
    found = []
    question = " ".join(question.split())
    if question and any(verdict.reason.code in _UNGROUNDED for verdict in failed):
        cut = question if len(question) <= _LONGEST_QUESTION else question[: _LONGEST_QUESTION - 1] + "…"
        found.append(TEXTS[lang]["add_sources"].format(cut))
    numbers = dict.fromkeys(
        answer[start:end]
        for verdict in failed
        if verdict.reason.code is Code.UNSUPPORTED_NUMBER
        for start, end in verdict.spans
    )
    if numbers:
        found.append(
            TEXTS[lang]["check_numbers"].format(("、" if lang.startswith("zh") else ", ").join(numbers))
        )
    return tuple(found)


def is_on() -> bool:
    """Tell whether the environment leaves validators on; InputError where it does not say."""
    given = os.environ.get(ENABLE, "").strip().lower() or "true"
    if given not in (*_ON, *_OFF):
        raise InputError(f"{ENABLE} must be true or false, got {os.environ[ENABLE]!r}.")
    return given in _ON


def least_overlap() -> float:
    """Return the overlap that the environment asks for, 0.01 by default; InputError where it is none."""
    given = os.environ.get(THRESHOLD, "").strip()
    try:
        value = float(given) if given else DEFAULT_THRESHOLD
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{THRESHOLD} must be a number from 0 to 1, got {given!r}.")
    return value


def scored(n_passages: int, verdicts: Iterable[Verdict] | None) -> ContextScore:
    """Return the context score of an answer's gravest failure, with its reasons.

    Where `ConfidenceValidator` failed the answer, no passage vouches for it, so it counts as one without
    passages.

    ``n_passages`` are those that hold a word. Without ``verdicts``, as where validators are switched off, it
    is the base alone. A rule of thumb (`core.context_score.context_score`), not a probability.
    """
    if verdicts is None:
        return context_score(n_passages, None)
    failed = [verdict for verdict in verdicts if verdict.passed is False]
    if any(verdict.validator == "ConfidenceValidator" for verdict in failed):
        found = context_score(0, False, [Failure.MISSING_UNCERTAINTY])
        if not n_passages:
            return found
        said = zip(found.reasons, _WORDS_UNGROUNDED, strict=True)
        return ContextScore(found.score, tuple(one._replace(sentence=text) for one, text in said))
    if not failed:
        return context_score(n_passages, True)
    kinds = {_FAILURES.get(verdict.reason.code, Failure.OTHER) for verdict in failed}
    return min((context_score(n_passages, False, [one]) for one in kinds), key=lambda one: one.score)
