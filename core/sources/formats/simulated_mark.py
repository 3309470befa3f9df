"""The mark that a file of simulated numbers carries through every format, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.sources.formats.types import Content

MARK = {"data_source": "simulated"}


def marked(data: bytes, suffix: str) -> bytes:
    """Return a JSON or JSON Lines file (by its suffix) that says it is simulated.

    The mark is a field ``data_source`` of the document, or of every record where it is a list.
    """
    if suffix == ".jsonl":
        return b"".join(
            _written(_with_mark(json.loads(line)), None) for line in data.splitlines() if line.strip()
        )
    value = json.loads(data)
    return _written(
        [_with_mark(entry) for entry in value] if isinstance(value, list) else _with_mark(value), 2
    )


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
    return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode("utf-8", "backslashreplace")
