"""A file of another tool, parsed as far as it can be without knowing its format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from core.errors import InputError
from core.sources.encoding import read_source, to_utf8
from core.sources.formats.json_values import MAX_DEPTH, JsonReader
from core.sources.formats.types import BadEntry, Content
from core.sources.report import shorten
from core.sources.table import read_table

MAX_ENTRIES = 500_000
# A small file can spell out values that fill any memory: "[[],[],[] ...".
MAX_VALUES = 10_000_000
_LINES_SUFFIXES = (".jsonl", ".ndjson")
_WANTED = "a JSON object or list, or one JSON object a line"


def read_content(data: bytes, name: str) -> Content:
    """Parse a file as JSON, JSON Lines or CSV, whichever it is.

    Parameters
    ----------
    data : bytes
        The file, also gzipped; encodings as in `core.sources.encoding.to_utf8`.
    name : str
        How messages call it.

    Returns
    -------
    Content
        Lines and rows that cannot be parsed are in ``bad``, the others are kept.

    Raises
    ------
    InputError
        No text, too large, no JSON and no table, or JSON that is broken as a whole.
    """
    data = read_source(data, name)
    if not looks_like_json(data, name):
        return _table(data, name)
    text = to_utf8(data, name)
    n_values = sum(text.utf8.count(mark) for mark in (b",", b"[", b"{"))
    if n_values > MAX_VALUES:
        raise InputError(
            f"{name} holds about {n_values:,} JSON values; the limit is {MAX_VALUES:,}, so split the file."
        )
    content = _json(text.utf8.decode(), name)
    notes = [text.note] if text.note else []
    return _with_notes(content, notes)


def looks_like_json(data: bytes, name: str) -> bool:
    """Tell whether a file (not gzipped) is meant as JSON or JSON Lines, by its name and its start."""
    start = to_utf8(data, name).utf8[:100_000].lstrip()
    if start[:1] in (b"{", b"["):
        return True
    if PurePath(name.lower().removesuffix(".gz")).suffix in _LINES_SUFFIXES:
        return True
    lines = [line.lstrip() for line in start.split(b"\n")[:20] if line.strip()]
    return 2 * sum(line.startswith(b"{") for line in lines) > len(lines)


def keys_of(content: Content, most: int = 20) -> list[str]:
    """Return the names a file gives its fields: columns, or the keys of its object or first entry."""
    if content.columns:
        return list(content.columns[:most])
    first = content.value if isinstance(content.value, dict) else None
    if first is None:
        first = next((entry for _, entry in content.entries if isinstance(entry, dict)), {})
    return list(first)[:most]


def entry_text(entry: Any, most: int = 2_000) -> str:
    """Return an entry as text for a list of what was left out, cut to so many characters."""
    text = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False, default=str)
    return text if len(text) <= most else text[: most - 1] + "…"


def _table(data: bytes, name: str) -> Content:
    table = read_table(data, name, max_rows=MAX_ENTRIES)
    entries = [
        (int(row), {column: cell for column, cell in cells.items() if cell.strip()})
        for row, cells in zip(table.frame.index, table.frame.to_dict("records"), strict=True)
    ]
    rejected = table.rejected[["row", "reason", "text"]].itertuples(index=False)
    bad = tuple(BadEntry(int(row), str(reason), str(text)) for row, reason, text in rejected)
    columns = tuple(map(str, table.frame.columns))
    return Content(name, "csv", None, tuple(entries), columns, table.notes, bad)


def _json(text: str, name: str) -> Content:
    reader = JsonReader()
    try:
        value = reader.parse(text)
    except ValueError as error:
        content = None if text.lstrip().startswith("[") else _lines(text, name)
        if content is None:
            raise InputError(_broken(name, error)) from error
        return content
    if isinstance(value, list):
        return _list(value, reader, name)
    if not isinstance(value, dict):
        raise InputError(f"{name} holds the JSON value {shorten(text.strip())}; expected {_WANTED}.")
    if wrong := reader.problem(value):
        raise InputError(f"{name} cannot be used as JSON; expected {wrong}.")
    return _with_notes(Content(name, "json", reader.tidy(value), ()), reader.notes())


def _list(values: list[Any], reader: JsonReader, name: str) -> Content:
    _check_number(len(values), name)
    entries, bad = [], []
    for number, value in enumerate(values, start=1):
        if wrong := reader.problem(value):
            bad.append(BadEntry(number, wrong, _shallow_text(value)))
        else:
            entries.append((number, reader.tidy(value)))
    content = Content(name, "json", [entry for _, entry in entries], tuple(entries), bad=tuple(bad))
    return _with_notes(content, reader.notes())


def _lines(text: str, name: str) -> Content | None:
    """Read JSON Lines; None where most lines are no JSON, so that the file is meant as one JSON value."""
    lines = [(n, line.strip()) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    _check_number(len(lines), name)
    reader = JsonReader()
    entries, bad = [], []
    for number, line in lines:
        entry = _line(line, reader)
        if isinstance(entry, str):
            bad.append(BadEntry(number, entry, line))
        else:
            entries.append((number, entry))
    if 2 * len(entries) < len(lines):
        return None
    return _with_notes(Content(name, "jsonl", None, tuple(entries), bad=tuple(bad)), reader.notes())


def _line(line: str, reader: JsonReader) -> dict[str, Any] | str:
    """Parse one line; a string says what would be right instead."""
    try:
        value = reader.parse(line)
    except ValueError as error:
        return f"a JSON object ({_reason(error)})"
    if not isinstance(value, dict):
        return "a JSON object"
    tidy: dict[str, Any] | str = reader.problem(value) or reader.tidy(value)
    return tidy


def _with_notes(content: Content, notes: Iterable[str]) -> Content:
    return Content(
        content.name,
        content.kind,
        content.value,
        content.entries,
        content.columns,
        (*notes, *content.notes),
        content.bad,
    )


def _check_number(n: int, name: str) -> None:
    if n > MAX_ENTRIES:
        raise InputError(f"{name} holds {n:,} entries; the limit is {MAX_ENTRIES:,}, so split the file.")


def _shallow_text(value: Any) -> str:
    try:
        return entry_text(value)
    except RecursionError:
        return f"(nested deeper than {MAX_DEPTH} levels)"


def _reason(error: ValueError) -> str:
    return error.msg.lower() if isinstance(error, json.JSONDecodeError) else str(error)


def _broken(name: str, error: ValueError) -> str:
    line = f", line {error.lineno}," if isinstance(error, json.JSONDecodeError) else ""
    return f"{name}{line} is not valid JSON ({_reason(error)}); expected {_WANTED}."
