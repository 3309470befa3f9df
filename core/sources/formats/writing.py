"""Records written as JSON that every reader takes, UTF-8 without NaN; those of no model are marked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from core.run import MARKS, SOURCES, marked_source
from core.sources.content import Content, content_of
from core.spreadsheet import restore, restored_text
from core.text.strict import clean, finite

# What every file of a run that no model answered carries, through every format and back.
_FIELD = "data_source"


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


def marked(data: bytes, suffix: str, mark: str) -> bytes:
    """Return a JSON or JSON Lines file (by its suffix) with the mark of its run (`core.run.Run.mark`).

    The mark is a field ``data_source`` of the document, or of every record where it is a list.
    """

    def with_mark(value: Any) -> Any:
        return {_FIELD: mark} | value | {_FIELD: mark} if isinstance(value, dict) else value

    if suffix == ".jsonl":
        lines = (json.loads(line) for line in data.splitlines() if line.strip())
        return b"".join(_written(with_mark(line), None) for line in lines)
    value = json.loads(data)
    return _written([with_mark(v) for v in value] if isinstance(value, list) else with_mark(value), 2)


def unmarked(content: Content) -> tuple[Content, str]:
    """Return content without the mark, and the source of a run that it names anywhere; "" without one."""
    if content.kind == "csv":
        return _own_csv(content)
    everywhere = [content.value, *(entry for _, entry in content.entries)]
    source = next(filter(None, map(_source, everywhere)), "")
    if not source:
        return content, ""
    entries = tuple((number, _without(entry)) for number, entry in content.entries)
    value = [entry for _, entry in entries] if isinstance(content.value, list) else _without(content.value)
    return replace(content, value=value, entries=entries), source


def _own_csv(content: Content) -> tuple[Content, str]:
    """Return the rows of a CSV; of our own, without the mark, and formulas as they were."""
    table = content.table
    marks = () if table is None or _FIELD not in table.frame else table.frame[_FIELD].unique()
    if table is None or not {*MARKS.values(), *SOURCES, ""}.intersection(marks):
        return content, ""
    frame = pd.DataFrame({restored_text(n): restore(table.frame[n]) for n in table.frame}, copy=False)
    own = content_of(replace(table, frame=frame), content.name, without=_FIELD)
    return replace(own, digest=content.digest), next(filter(None, map(marked_source, marks)), "")


def _source(value: Any) -> str:
    return marked_source(value.get(_FIELD)) if isinstance(value, Mapping) else ""


def _without(value: Any) -> Any:
    return {k: v for k, v in value.items() if k != _FIELD} if _source(value) else value


def _written(value: Any, indent: int | None) -> bytes:
    return (clean(json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)) + "\n").encode()
