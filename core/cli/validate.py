"""The command that validates one answer from standard input: a gate for scripts and serving paths."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from core.cli.output import print_json, print_text
from core.errors import InputError
from core.sources.content import looks_like_json, read_content
from core.sources.encoding import to_utf8
from core.text.display import count, number, shorten
from core.validation import FallbackHandler, Served, observe, validate
from core.validation.store import MetricsStore

_NAME, _MAX_BYTES = "Standard input", 10_000_000
_WANTED = '{"question": …, "answer": …, "passages": [text, …]}'


def validate_answer(
    metrics: Annotated[
        str | None, typer.Option("--metrics", help="File that counts the validated answers over time.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Validate one answer, given as JSON on standard input, without a model: exit status 1 where it fails.

    The JSON object has question, answer, passages (texts, or objects with a text) and, if the language should
    not be detected, lang: en, vi, zh-Hans (zh, zh-CN) or zh-Hant (zh-TW).
    """
    given = _given(sys.stdin.buffer.read(_MAX_BYTES + 1))
    question, answer = _text_of(given, "question"), _text_of(given, "answer")
    outcome = validate(question, answer, _passages(given), _lang(given))
    served = FallbackHandler().serve(answer, outcome)
    if metrics is not None:
        observed = observe(outcome, datetime.now(UTC), served.used_fallback)
        with MetricsStore(metrics) as store:
            store.add([] if observed is None else [observed])
    print_json(_facts(served)) if as_json else print_text(_text(served))
    return 1 if outcome.passed is False else 0


def _given(data: bytes) -> Mapping[str, Any]:
    if len(data) > _MAX_BYTES:
        raise InputError(f"{_NAME} is larger than {_MAX_BYTES / 1e6:g} MB.")
    is_json = data.strip() and looks_like_json(to_utf8(data, _NAME).utf8, _NAME)
    value = read_content(data, _NAME).value if is_json else None
    if not isinstance(value, Mapping):
        raise InputError(f"{_NAME} must be one JSON object, {_WANTED}.")
    return value


def _text_of(given: Mapping[str, Any], field: str) -> str:
    value = given.get(field)
    if not isinstance(value, str):
        raise InputError(f"{field} must be a text, got {_shown(given, field)}.")
    return value


def _passages(given: Mapping[str, Any]) -> list[str]:
    value = given.get("passages")
    if not isinstance(value, list):
        raise InputError(f"passages must be a list, got {_shown(given, 'passages')}.")
    texts = []
    for place, one in enumerate(value, start=1):
        text = one.get("text") if isinstance(one, Mapping) else one
        if not isinstance(text, str):
            raise InputError(f"Passage {place} must be a text or have one under text.")
        texts.append(text)
    return texts


def _lang(given: Mapping[str, Any]) -> Any:
    """Return the language, which `validate` checks."""
    return None if given.get("lang") is None else _text_of(given, "lang")


def _shown(given: Mapping[str, Any], field: str) -> str:
    return shorten(repr(given[field])) if field in given else "none"


def _facts(served: Served) -> dict[str, Any]:
    outcome = served.outcome
    return {
        "passed": outcome.passed,
        "verdicts": [
            {
                "validator": one.validator,
                "passed": one.passed,
                "severity": str(one.severity),
                "reason": str(one.reason.code),
                "value": one.reason.value,
                "spans": [list(span) for span in one.spans],
                "words": [served.original[start:end] for start, end in one.spans],
                "sentence": one.sentence,
            }
            for one in outcome.verdicts
        ],
        "confidence_score": outcome.confidence_score,
        "confidence_reasons": [one._asdict() for one in outcome.context.reasons],
        "validation_info": dict(outcome.validation_info),
        "learning_suggestions": list(outcome.learning_suggestions),
        "lang": outcome.lang,
        "served": served.text,
        "used_fallback": served.used_fallback,
    }


def _text(served: Served) -> str:
    outcome = served.outcome
    applied = [one for one in outcome.verdicts if one.passed is not None]
    if outcome.passed is None:
        lines = ["Not validated: ENABLE_VALIDATORS switches validators off."]
    elif outcome.passed:
        lines = [f"Passed: none of {count(len(applied), 'validator')} objects."]
    else:
        n = len(outcome.failed)
        lines = [f"Failed: {n:,} of {count(len(applied), 'validator')} {'objects' if n == 1 else 'object'}."]
    for one in outcome.failed:
        words = ", ".join(f"“{shorten(served.original[start:end])}”" for start, end in one.spans)
        lines.append(f"  {one.validator} ({one.severity}): {one.sentence}{f' {words}' if words else ''}")
    lines.append(f"Context score {number(outcome.confidence_score)}, a rule of thumb made of:")
    lines += [f"  {number(one.change, '{:+.2f}')}  {one.sentence}" for one in outcome.context.reasons]
    lines.append(f"Served instead: {served.text}" if served.used_fallback else "Served: the answer as it is.")
    lines += [f"Suggestion: {one}" for one in outcome.learning_suggestions]
    return "\n".join(lines)
