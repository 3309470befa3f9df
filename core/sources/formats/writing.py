"""Records written as JSON that every reader takes, UTF-8 without NaN; simulated ones are marked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from core.sources.content import Content
from core.text.strict import clean, finite

# What every file of simulated numbers carries, through every format and back.
MARK = {"data_source": "simulated"}


def to_document(value: Any) -> bytes:
    """Return a JSON document, indented, with a final newline."""
    return _written(plain(value), 2)


def to_lines(records: Iterable[Any]) -> bytes:
    """Return JSON Lines, one record a line."""
    return b"".join(_written(plain(record), None) for record in records)


def plain(value: Any) -> Any:
    """Return the value with null in the place of numbers that JSON does not have."""
    if isinstance(value, float):
        # 3.0 was most often written as 3.
        return int(value) if value.is_integer() and abs(value) < 2**53 else finite(value)
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def marked(data: bytes, suffix: str) -> bytes:
    """Return a JSON or JSON Lines file (by its suffix) marked as simulated.

    The mark is a field ``data_source`` of the document, or of every record where it is a list.
    """
    if suffix == ".jsonl":
        lines = (json.loads(line) for line in data.splitlines() if line.strip())
        return b"".join(_written(_with_mark(line), None) for line in lines)
    value = json.loads(data)
    return _written([_with_mark(v) for v in value] if isinstance(value, list) else _with_mark(value), 2)


def unmarked(content: Content) -> tuple[Content, bool]:
    """Return content without the mark, and whether it carried it anywhere."""
    if not (_carries(content.value) or any(_carries(entry) for _, entry in content.entries)):
        return content, False
    entries = tuple((number, _without(entry)) for number, entry in content.entries)
    value = [entry for _, entry in entries] if isinstance(content.value, list) else _without(content.value)
    return replace(content, value=value, entries=entries), True


def _carries(value: Any) -> bool:
    return isinstance(value, Mapping) and all(value.get(key) == mark for key, mark in MARK.items())


def _with_mark(value: Any) -> Any:
    return {**MARK, **value, **MARK} if isinstance(value, dict) else value


def _without(value: Any) -> Any:
    return {k: v for k, v in value.items() if k not in MARK} if _carries(value) else value


def _written(value: Any, indent: int | None) -> bytes:
    return (clean(json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)) + "\n").encode()
