"""What validators take and return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from core.context_score import ContextScore
from core.text.abstention import claims_nothing, is_abstention
from core.text.certainty import Certainty, certainty
from core.text.language import Language
from core.text.prose import prose, without_code
from core.text.sentences import Span
from core.text.words import has_words
from core.validation.evidence import is_foreign, overlap


class Code(StrEnum):
    """Why a validator decided as it did."""

    FINE = "fine"
    NOT_APPLICABLE = "not_applicable"
    UNCERTAINTY_EXPRESSED = "uncertainty_expressed"
    MISSING_CITATION = "missing_citation"
    UNKNOWN_CITATION = "unknown_citation"
    LOW_OVERLAP = "low_overlap"
    UNSUPPORTED_NUMBER = "unsupported_number"
    OTHER_LANGUAGE = "other_language"
    MISSING_UNCERTAINTY = "missing_uncertainty"
    MISSING_UNCERTAINTY_NO_CONTEXT = "missing_uncertainty_no_context"
    OVERCONFIDENT = "overconfident"
    EMPTY_ANSWER = "empty_answer"
    GUARD_REJECTED = "guard_rejected"
    GUARD_FAILED = "guard_failed"
    OTHER = "other"  # of a validator that is none of ours


class Severity(StrEnum):
    """How much a verdict matters; the answer behind a critical one must not be shown."""

    NONE = "none"
    WARNING = "warning"
    CRITICAL = "critical"


class Reason(NamedTuple):
    """Why, and the number behind it: an overlap, a count; None where there is no number."""

    code: Code
    value: float | None = None


@dataclass(frozen=True)
class Verdict:
    """What one validator says of an answer.

    ``passed`` is None where the validator could not apply. ``spans`` are ranges of characters of the answer.
    """

    validator: str
    passed: bool | None
    severity: Severity
    reason: Reason
    spans: tuple[Span, ...]
    sentence: str


@dataclass(frozen=True)
class Case:
    """An answer with its question and passages, and what several validators want to know of it."""

    question: str
    answer: str
    given: tuple[str, ...]

    @cached_property
    def passages(self) -> tuple[str, ...]:
        """The passages that hold a word."""
        return tuple(text for text in self.given if has_words(text))

    @cached_property
    def is_empty(self) -> bool:
        """Whether the answer holds no word."""
        return not has_words(self.answer)

    @cached_property
    def spoken(self) -> str:
        """The answer with blanks in place of code; the same places as in the answer."""
        return without_code(self.answer)

    @cached_property
    def prose(self) -> str:
        """The answer with blanks in place of code, citations and list numbers; the same places."""
        return prose(self.answer)

    @cached_property
    def says_something(self) -> bool:
        """Whether there is a word outside code and citations."""
        return has_words(self.prose)

    @cached_property
    def claims_nothing(self) -> bool:
        """Whether the answer only says that the answer is not known."""
        return claims_nothing(self.prose)

    @cached_property
    def certainty(self) -> Certainty:
        """Where the answer hedges, and where it claims to be certain."""
        return certainty(self.prose)

    @cached_property
    def uncertain(self) -> bool:
        """Whether the answer hedges, or says that the answer is not known."""
        return bool(self.certainty.hedges) or is_abstention(self.prose)

    @cached_property
    def overlap(self) -> float | None:
        """Share of the answer's words of content in the best passage; None without any to compare."""
        return overlap(self.prose, self.passages)

    @cached_property
    def is_foreign(self) -> bool:
        """Whether a passage is in another language than the answer, so that few shared words say nothing."""
        return any(is_foreign(self.prose, self.question, passage) for passage in self.passages)


class Validator(Protocol):
    """One check of an answer."""

    def check(self, case: Case) -> Verdict:
        """Return what it says of an answer."""


@dataclass(frozen=True)
class ValidationOutcome:
    """What validation says of an answer.

    ``passed`` is None, and there are no verdicts, where validators are switched off. ``context`` is the
    confidence with its reasons (`core.validation.chain`). ``validation_info`` can be written as JSON.
    """

    passed: bool | None
    verdicts: tuple[Verdict, ...]
    context: ContextScore
    validation_info: Mapping[str, Any]
    learning_suggestions: tuple[str, ...]
    lang: Language = "en"

    @property
    def confidence_score(self) -> float:
        """The confidence, in [0, 1]."""
        return self.context.score

    @property
    def overlap(self) -> float | None:
        """Share of the answer's words that the best passage has; None where they were not compared."""
        return next((one.reason.value for one in self.verdicts if one.validator == "EvidenceOverlap"), None)

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """The verdicts that object to the answer."""
        return tuple(verdict for verdict in self.verdicts if verdict.passed is False)

    @property
    def critical(self) -> bool:
        """Whether the answer must not be shown."""
        return any(verdict.severity is Severity.CRITICAL for verdict in self.failed)

    @property
    def expressed_uncertainty(self) -> bool:
        """Whether the answer says itself that it is not certain."""
        return any(verdict.reason.code is Code.UNCERTAINTY_EXPRESSED for verdict in self.verdicts)
