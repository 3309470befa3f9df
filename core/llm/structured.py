"""Answers that are JSON under a schema: constrained by the back end or by words, always validated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.llm.types import LLM, Completion, Message, Request
from core.text.strict import JsonReader, NotJson

MOST_CHARACTERS = 200_000
MOST_DEPTH = 32
_MOST_TRIES = 20
_FENCED = re.compile(r"```[\w-]*[^\S\n]*\n(.*?)```", re.DOTALL)
_OPENER = re.compile(r"[\[{]")
_BRACKET = re.compile(r"[\[\]{}]")
_WORD = re.compile(r"\S")
# Strings are matched whole, so that a comma inside one stays; also one that never ends, or each of its quotes
# would be tried as the beginning of another, to the end of the text.
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|,(?=\s*[}\]])', re.DOTALL)
DEFAULT_JSON_TOKENS = 512
_SHOWN_REPLY = 2_000  # characters of a bad reply that the repair call shows
_SHOWN_ERROR = 200
_IN_WORDS = (
    "Answer with one JSON value that follows the JSON Schema below, and with nothing else: no explanation, "
    "no code fence.\n{schema}"
)
_CUT_OFF = "it was cut off by the token limit"
_WITHHELD = {
    "content_filter": "the server withheld the answer",
    "reasoning": "the token limit was spent on reasoning before any answer",
}
Ask = Callable[[Sequence[Request]], Sequence[Completion]]


def json_values(text: str) -> Iterator[Any]:
    """Yield the JSON values in a reply: the whole of it, or else the lists and objects in its prose.

    Skips code fences, a draft inside ``<think>``, trailing commas and bare line breaks; never yields a part
    of a broken value. `NotJson` where nothing (more) can be read, or what must not be used.

    >>> next(json_values('Sure: {"score": 7,} as asked.'))
    {'score': 7}
    """
    if len(text) > MOST_CHARACTERS:
        raise NotJson(f"the reply has {len(text):,} characters, more than {MOST_CHARACTERS:,}")
    text = _bare(text)
    if not text:
        raise NotJson("the reply is empty")
    try:
        value, end = _decode(text, 0)
    except NotJson:
        end = 0
    if end == len(text):
        yield value
    else:
        yield from _in_prose(text)


def _bare(text: str) -> str:
    text = text.strip().lstrip("\ufeff").lstrip()
    if text.startswith("<think>") and "</think>" in text:
        text = text.rpartition("</think>")[2].strip()
    fenced = _FENCED.fullmatch(text)
    return (fenced[1] if fenced else text).strip()


def _in_prose(text: str) -> Iterator[Any]:
    position, found = 0, False
    for _ in range(_MOST_TRIES):
        opener = _OPENER.search(text, position)
        if opener is None:
            break
        start = opener.start()
        try:
            value, end = _decode(text, start)
        except NotJson as error:
            position = _behind_prose(text, start, error)
            continue
        found = True
        yield value
        position = start + end
    if not found:
        raise NotJson("there is no JSON in it")


def _behind_prose(text: str, start: int, error: NotJson) -> int:
    """Return where to go on behind a bracket of prose: it fails at its first word, or is broken JSON."""
    stopped = error.__cause__
    first = _WORD.search(text, start + 1)
    if not isinstance(stopped, json.JSONDecodeError) or first is None or stopped.pos > first.start() - start:
        raise error
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] in "[{" else -1
        if depth == 0:
            return bracket.end()
    raise error


def _decode(text: str, start: int) -> tuple[Any, int]:
    """Return the value that begins there, and its length in characters."""
    text = text[start:]
    reader = JsonReader(max_depth=MOST_DEPTH)
    try:
        return reader.parse_start(text)
    except json.JSONDecodeError as error:
        repaired = _TRAILING_COMMA.sub(r"\1", text)
        if repaired == text:
            raise NotJson(f"{error.msg} at character {error.pos + 1}") from error
        try:
            # Where it ends in the original text is unknown; nothing after it is read.
            return reader.parse_start(repaired)[0], len(text)
        except json.JSONDecodeError:
            raise NotJson(f"{error.msg} at character {error.pos + 1}") from error


@dataclass(frozen=True, slots=True)
class JsonReply:
    """The result of asking for JSON; without a value the item is *unscored*, never a default."""

    value: Any  # follows the schema; None where there is none
    reason: str | None  # why there is no value
    raw: str  # the reply with that value or problem, as the model wrote it
    n_calls: int  # 1, or 2 where the first reply had to be repaired

    @property
    def ok(self) -> bool:
        """Whether there is a value; a schema may allow null."""
        return self.reason is None


def generate_json_batch(
    llm: LLM,
    conversations: Sequence[Sequence[Message]],
    schema: Mapping[str, Any],
    *,
    max_tokens: int = DEFAULT_JSON_TOKENS,
    seed: int = 0,
    ask: Ask | None = None,
) -> list[JsonReply]:
    """Ask a model for JSON under a schema, many conversations at once.

    The request carries the schema (draft 2020-12) where the back end follows it, else the last user turn asks
    for it in words. Every reply is validated; an unusable one is shown to the model once, with what is wrong,
    in a second batch. ``ask`` takes requests to completions where calls are cached, counted and retried, by
    default ``llm.generate``; its errors are passed on. Cost: one call each, two where repaired, never more.
    """
    text = canonical(schema)
    validate = _validator(text)
    ask = ask or llm.generate

    def asked(turns: Sequence[tuple[Message, ...]], keeps: bool) -> list[tuple[JsonReply, bool]]:
        request = Request((), seed=seed, max_tokens=max_tokens, schema=text if keeps else None)
        requests = [replace(request, messages=messages) for messages in turns]
        return [_read(completion, validate) for completion in ask(requests)] if requests else []

    # Checked before each batch: a server may turn out to refuse schemas.
    keeps = llm.capabilities.json_schema
    first = asked([tuple(turns) if keeps else _in_words(turns, text) for turns in conversations], keeps)
    broken = [i for i, (_, repairable) in enumerate(first) if repairable]
    repairs = [_in_words(_shown(conversations[i], first[i][0]), text) for i in broken]
    second = asked(repairs, llm.capabilities.json_schema)
    results = [reply for reply, _ in first]
    for i, (reply, repairable) in zip(broken, second, strict=True):
        if reply.ok or repairable:
            results[i] = replace(reply, n_calls=2)
        else:
            reason = f"{results[i].reason}; asked again: {reply.reason}"
            results[i] = replace(results[i], reason=reason, n_calls=2)
    return results


def canonical(schema: Mapping[str, Any]) -> str:
    """Return a JSON Schema as one line of text, its keys sorted except the names of ``properties``.

    A model writes those in their order, so another order may give other answers.

    >>> canonical({"type": "object", "properties": {"why": {}, "score": {"type": "number"}}})
    '{"properties":{"why":{},"score":{"type":"number"}},"type":"object"}'
    """
    return json.dumps(_ordered(schema), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _ordered(node: Any, names: bool = False) -> Any:
    if isinstance(node, list | tuple):
        return [_ordered(part) for part in node]
    if not isinstance(node, Mapping):
        return node
    keys = list(node) if names else sorted(node)
    return {key: _ordered(node[key], names=key == "properties" and not names) for key in keys}


def _validator(text: str) -> Callable[[Any], str | None]:
    """Return a function that says how a value breaks the schema; None for one that follows it."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    validator = Draft202012Validator(json.loads(text))

    def validate(value: Any) -> str | None:
        error = best_match(validator.iter_errors(value))
        if error is None:
            return None
        return f"it does not follow the schema at {error.json_path}: {_short(error.message)}"

    return validate


def _read(completion: Completion, validate: Callable[[Any], str | None]) -> tuple[JsonReply, bool]:
    """Return the reply, and whether the model can be asked to repair it."""
    raw = completion.text
    if completion.error is not None:
        return JsonReply(None, completion.error, raw, 1), False
    if not raw.strip() and completion.finish_reason in _WITHHELD:
        return JsonReply(None, _WITHHELD[completion.finish_reason], raw, 1), False
    cut_off = completion.finish_reason == "length"
    first = None
    try:
        for value in json_values(raw):
            # More digits might have followed; all other values mark their own end.
            unfinished = cut_off and isinstance(value, int | float) and not isinstance(value, bool)
            wrong = _CUT_OFF if unfinished else validate(value)
            if wrong is None:
                return JsonReply(value, None, raw, 1), False
            first = first or wrong
    except NotJson as error:
        first = first or (_CUT_OFF if cut_off else f"it is not JSON: {error}")
    return JsonReply(None, first, raw, 1), True


def _in_words(messages: Sequence[Message], schema: str) -> tuple[Message, ...]:
    turns = list(messages)
    wanted = _IN_WORDS.format(schema=schema)
    last = next((i for i in reversed(range(len(turns))) if turns[i].role == "user"), None)
    if last is None:
        return (*turns, Message("user", wanted))
    turns[last] = Message("user", f"{turns[last].content}\n\n{wanted}")
    return tuple(turns)


def _shown(messages: Sequence[Message], bad: JsonReply) -> list[Message]:
    """Return the conversation with the bad reply as the model's turn, and what is wrong with it."""
    turns = list(messages)
    # A begun model turn is part of the turn that is now complete.
    begun = turns.pop().content if turns and turns[-1].role == "assistant" else ""
    shown = f"{begun} {bad.raw[:_SHOWN_REPLY]}".strip() or "(nothing)"
    return [*turns, Message("assistant", shown), Message("user", f"That reply cannot be used: {bad.reason}.")]


def _short(text: str) -> str:
    text = " ".join(text.split())
    half = _SHOWN_ERROR // 2
    return text if len(text) <= _SHOWN_ERROR else f"{text[:half]} … {text[-half:]}"
