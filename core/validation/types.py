"""What validators take and return, and how much of an answer is in the words of its best passage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import regex

from core.context_score import ContextScore
from core.text.abstention import Certainty, certainty, claims_nothing, is_abstention
from core.text.folding import folded
from core.text.language import Language, identifier
from core.text.numbers import is_vietnamese
from core.text.prose import prose, without_code
from core.text.reading import read
from core.text.sentences import Span
from core.text.words import has_words, words

_HAN = regex.compile(r"\p{Han}")
# These answer a question and show nothing by themselves.
_POLAR = frozenset("yes true false right có đúng sai phải vâng ạ 对 否 错".split())
_SCRIPTS = {
    name: regex.compile(rf"\p{{{name}}}")
    for name in ("Latin", "Han", "Hiragana", "Katakana", "Cyrillic", "Arabic", "Hangul", "Thai", "Devanagari",
                 "Greek", "Hebrew")
}  # fmt: skip
_JAPANESE = ("Hiragana", "Katakana")
# Languages in Latin letters; of fewer, those that are told apart are surer.
_LATIN = "en vi fr de es it pt nl sv da pl cs hu ro tr id fi".split()
_SURE = 0.95  # probability of a language; below it, as of names, the text may be in any
_ENOUGH = 500  # characters


def overlap(answer: str, passages: Sequence[str]) -> float | None:
    """Return the share of the answer's words of content that one passage has: the largest of the passages.

    Stems in English, syllables in Vietnamese, pairs of ideographs in Chinese (single ones occur in any text),
    numbers by value. Each word counts once. None without a passage or a word of content.

    >>> overlap("Unwin built the bridge.", ["Bridges were designed by Unwin.", "Coffee"])
    0.6666666666666666
    """
    said = set(_units(answer)) - _POLAR
    if not said or not passages:
        return None
    return max(len(said & _known(passage)) for passage in passages) / len(said)


def is_foreign(answer: str, question: str, passage: str) -> bool:
    """Tell whether a passage is in another language than an answer; False where that is not sure.

    By their scripts, else by py3langid and letters that only Vietnamese has. An answer too short for that,
    such as a name, is taken to be in the language of its question.

    >>> passage = "The bridge was built by the engineers."
    >>> is_foreign("Cầu do Unwin xây.", "Ai xây cầu?", passage), is_foreign("Unwin", "Who built it?", passage)
    (True, False)
    """
    (script, said), (other_script, other) = _spoken(answer), _spoken(passage)
    if not (script and other_script):  # numbers are of no language
        return False
    said = said or _spoken(question)[1]
    return script != other_script or bool(said and other and said != other)


@lru_cache(maxsize=4096)
def _spoken(text: str) -> tuple[str, str]:
    """Return the script and the language of a text, each "" where it is not sure."""
    text = text[:_ENOUGH]
    found = Counter(
        name for word in words(text) for name, letters in _SCRIPTS.items() if letters.search(word)
    )
    script = found.most_common(1)[0][0] if found else ""
    if script != "Latin":  # Japanese has ideographs, too
        script = "Japanese" if any(name in found for name in _JAPANESE) else script
        return script, script
    language, p = identifier(*_LATIN).classify(text)
    return script, str(language) if p >= _SURE else "vi" if is_vietnamese(folded(text)) else ""


@lru_cache(maxsize=4096)
def _known(passage: str) -> frozenset[str]:
    return frozenset(_units(passage))


def _units(text: str) -> Iterable[str]:
    """Return the stems of the words of content, ideographs as pairs of neighbours or alone."""
    tokens = [token for token in read(text) if token.content]
    joined = False  # with the ideograph before it
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        han = not token.stem.isascii() and _HAN.fullmatch(token.stem)
        if han and after is not None and after.start == token.end and _HAN.fullmatch(after.stem):
            yield token.stem + after.stem
            joined = True
            continue
        if not (han and joined):
            yield token.stem
        joined = False


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
