"""Verdicts as rows of a run, and back: what validation says of one question, when somebody looks at it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from core.rows import rows_of
from core.run import Run
from core.text.language import LANGUAGES, language
from core.text.words import has_words
from core.validation.chain import default_chain, outcome_of
from core.validation.fallback import FallbackHandler, Served
from core.validation.types import Code, Reason, Severity, Verdict

NAME = "validation"
AUTO = "auto"  # language of suggestions and fallback: that of the question
FAILED = "failed"  # reason code of a validator that raised an exception
OURS = tuple(type(one).__name__ for one in default_chain().validators)
_SPAN = re.compile(r"(\d{1,9}):(\d{1,9})", re.ASCII)
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
        spans = tuple(span for text in row["spans"] or () if (span := _span(text)) is not None)
        sentence = _text(row["detail"]) or said
        found.append(Verdict(row["validator"], passed, severity, reason, spans, sentence))
    return tuple(found)


def served(run: Run, query_id: str) -> Served | None:
    """Return what a user would be shown for a question of a run, and all that validation says of its answer.

    Computed from the stored verdicts, for somebody who looks at one question.

    Returns
    -------
    Served or None
        ``original`` is the answer, ``text`` the answer or its fallback, ``outcome`` with ``validation_info``,
        ``learning_suggestions`` and ``context``, whose reasons sum to the confidence. None where the answer
        was not validated.
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


def _span(text: str) -> tuple[int, int] | None:
    found = _SPAN.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None
