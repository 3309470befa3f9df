"""What is shown in place of an answer that must not be shown, and verdicts as rows of a run, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pandas as pd

from core.rows import rows_of
from core.run import Run
from core.text.folding import folded
from core.text.language import LANGUAGES, language, language_named
from core.text.sentences import read_span
from core.text.words import has_words, words
from core.validation.chain import TEXTS, default_chain, outcome_of
from core.validation.types import Code, Reason, Severity, ValidationOutcome, Verdict

MAX_SHARED_WORDS = 4  # in a row, with the rejected answer; ideographs are words


@dataclass(frozen=True)
class Wording:
    """The fallback in one language: why there is no answer, by what was found wrong, and what to try."""

    no_ground: str
    rejected: str
    empty: str
    advice: str


_REJECTED = {Code.GUARD_REJECTED, Code.GUARD_FAILED}


@dataclass(frozen=True)
class Served:
    """What a user is shown, and beside it, for the engineer alone, the answer as it was."""

    text: str
    original: str
    used_fallback: bool
    outcome: ValidationOutcome


@dataclass(frozen=True)
class FallbackHandler:
    """Replaces answers that a validator calls critical; others are served as they are.

    ``wording`` replaces the words of a language by those of a product. The fallback holds nothing of question
    or answer, and shares no five words in a row with the rejected answer (ideographs count as words): what of
    the wording would do so, as where the answer quotes it, is left out.
    """

    wording: Mapping[str, Wording] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wording = {language_named(name, "A language of wording"): own for name, own in self.wording.items()}
        object.__setattr__(self, "wording", wording)

    def get_fallback_answer(
        self,
        original_answer: str,
        validation_result: ValidationOutcome,
        ctx_docs: Sequence[object] = (),  # noqa: ARG002
        user_question: str = "",  # noqa: ARG002
        detected_lang: str | None = None,
    ) -> str:
        """Return what to show for an answer: `serve` by another name, for programs that call this one.

        ``ctx_docs`` and ``user_question`` are not used: what they say of the answer is in its validation.
        """
        return self.serve(original_answer, validation_result, detected_lang).text

    def serve(self, answer: str, outcome: ValidationOutcome, lang: str | None = None) -> Served:
        """Return what to show for an answer; ``lang`` is that of the outcome by default.

        InputError where ``lang`` is no language that this project speaks.
        """
        if not outcome.critical:
            return Served(answer, answer, False, outcome)
        noted = replace(outcome, validation_info={**outcome.validation_info, "used_fallback": True})
        return Served(self.text(answer, outcome, lang), answer, True, noted)

    def text(self, answer: str, outcome: ValidationOutcome, lang: str | None = None) -> str:
        """Return the fallback for a rejected answer."""
        spoken = outcome.lang if lang is None else language_named(lang)
        texts = TEXTS[spoken]
        said = self.wording.get(spoken) or Wording(**{one.name: texts[one.name] for one in fields(Wording)})
        codes = {verdict.reason.code for verdict in outcome.failed}
        why = said.empty if Code.EMPTY_ANSWER in codes else said.no_ground
        why = said.rejected if codes & _REJECTED else why
        # The last has at most four words, so that it can share no five with any answer.
        both = why + ("" if spoken.startswith("zh") else " ") + said.advice
        return next((t for t in (both, why, said.advice) if not shares_words(t, answer)), texts["last"])


def shares_words(text: str, other: str, n: int = MAX_SHARED_WORDS + 1) -> bool:
    """Tell whether two texts have ``n`` words in a row in common, written in any case, accents or script.

    >>> shares_words("it was built by Brunel in 1866", "Built by Brunel in 1866!")
    True
    """
    ours, theirs = words(folded(text)), words(folded(other))
    known = {tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1)}
    return any(tuple(ours[i : i + n]) in known for i in range(len(ours) - n + 1))


NAME = "validation"
AUTO = "auto"  # language of suggestions and fallback: that of the question
FAILED = "failed"  # reason code of a validator that raised an exception
OURS = tuple(type(one).__name__ for one in default_chain().validators)
_CODES = {str(code): code for code in Code}
_NO_FAILURES = (Code.FINE, Code.NOT_APPLICABLE, Code.OTHER_LANGUAGE, Code.UNCERTAINTY_EXPRESSED)
_SEVERITIES = {str(severity): severity for severity in Severity}


def verdict_rows(query_id: str, verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """Return verdicts as rows of the table ``verdicts``; `verdicts_of` reads them."""
    return [
        {
            "query_id": query_id,
            "validator": one.validator,
            "passed": one.passed,
            "severity": str(one.severity),
            "reason": str(one.reason.code),
            "value": one.reason.value,
            "spans": [f"{start}:{end}" for start, end in one.spans],
            "detail": one.sentence,
        }
        for one in verdicts
    ]


def rows_of_failure(query_id: str, reason: str) -> list[dict[str, Any]]:
    """Return rows that say why nothing is known of an answer; ``reason`` is one sentence."""
    return [{"query_id": query_id, "validator": name, "reason": FAILED, "detail": reason} for name in OURS]


def verdicts_of(rows: Iterable[Mapping[str, Any]]) -> tuple[Verdict, ...]:
    """Return the verdicts in rows of one question, those of unknown validators among them.

    A reason that is none of ours is `Code.OTHER`, with its own words in the sentence; a failure without a
    known severity is a warning. Spans that cannot be read are left out.
    """
    found = []
    for row in rows:
        passed = None if pd.isna(row["passed"]) else bool(row["passed"])
        said, severity = _text(row["reason"]), _SEVERITIES.get(_text(row["severity"]).lower())
        if severity is None or passed is not False:
            severity = Severity.WARNING if passed is False else Severity.NONE
        value = None if pd.isna(row["value"]) else float(row["value"])
        code = _CODES.get(said, Code.OTHER)
        reason = Reason(Code.OTHER if passed is False and code in _NO_FAILURES else code, value)
        spans = tuple(span for text in row["spans"] or () if (span := read_span(text)) is not None)
        sentence = _text(row["detail"]) or said
        found.append(Verdict(row["validator"], passed, severity, reason, spans, sentence))
    return tuple(found)


def served(run: Run, query_id: str) -> Served | None:
    """Return what a user would be shown for a question of a run, and all that validation says of its answer.

    Computed from the stored verdicts: ``original`` is the answer, ``text`` the answer or its fallback. None
    where the answer was not validated.
    """
    rows = rows_of(run["verdicts"], query_id).to_dict("records")
    query = rows_of(run.queries, query_id).iloc[0]
    if not is_validated(rows) or pd.isna(query["answer"]):
        return None
    passages = rows_of(run.passages, query_id)["text"]
    options = run.manifest.get("steps", {}).get(NAME, {}).get("options", {})
    lang = options.get("lang")
    outcome = outcome_of(
        query["question"],
        query["answer"],
        n_given(passages),
        verdicts_of(rows),
        lang if lang in LANGUAGES else language(query["question"], query["answer"]),
    )
    return FallbackHandler().serve(query["answer"], outcome)


def is_validated(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether rows of one question hold verdicts, and no validator raised an exception."""
    return bool(rows) and not any(row["reason"] == FAILED and row["validator"] in OURS for row in rows)


def n_given(passages: Iterable[object]) -> int:
    """Return how many passages hold a word; all of them where no text is known."""
    listed = list(passages)
    known = [text for text in listed if isinstance(text, str)]
    return sum(map(has_words, known)) if known else len(listed)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
