"""The JSON in a model's reply: lenient about what surrounds it, strict inside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

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


def json_values(text: str) -> Iterator[Any]:
    """Yield the JSON values in a reply: the whole of it, or else the lists and objects in its prose.

    Skips a byte order mark, a code fence, words around the JSON, a draft inside ``<think>``, trailing commas
    and bare line breaks in strings. Never yields a part of a value that is broken elsewhere.

    Raises `NotJson` where nothing (more) can be read: no JSON, cut off, a repeated name in an object, NaN or
    infinity, deeper than `MOST_DEPTH`, longer than `MOST_CHARACTERS`, half a surrogate pair.

    Examples
    --------
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
    """Return where to continue after a bracket of the prose; raise for broken JSON.

    A bracket of the prose fails at its first word, and is skipped with everything inside. One that fails
    later or never closes is broken JSON, and no part of it may pass for the whole.
    """
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
