"""A file with one record an entry, parsed as far as it can be without knowing what the records mean."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

import pandas as pd

from core.errors import InputError
from core.sources.columnar import is_columnar, rows_of
from core.sources.encoding import read_source, to_utf8
from core.sources.fields import Rejected
from core.sources.report import IssueLog, rejected_frame, shorten
from core.sources.table import RawTable, table_of
from core.text.strict import JsonReader, NotJson

MAX_ENTRIES = 500_000
# The values of a small file can fill any memory: "[[],[],[] ...".
MAX_VALUES = 10_000_000
# The endings of files that can be read, for menus that list files; the content decides what a file is.
SUFFIXES = ("csv", "tsv", "txt", "gz", "json", "jsonl", "ndjson", "parquet", "arrow")
_FEW = 1_000  # rows of a table that are made at once
_LINES_SUFFIXES = (".jsonl", ".ndjson")
_WANTED = "a JSON object or list, or one JSON object a line"
_WRAPPERS = (
    "samples", "data", "testCases", "test_cases", "test_results", "goldens", "records", "questions", "rows",
)  # fmt: skip
_ENVELOPE = "testRunData"  # of DeepEval's last test run
# Where an indented object ends and the next one begins, as the console exporter of OpenTelemetry prints them.
_BETWEEN = re.compile(r"(?<=^\})[ \t\r]*\n\s*(?=\{)", re.MULTILINE)
_QUESTIONS = ("question", "query", "user_input", "input", "prompt")


class BadEntry(NamedTuple):
    """A line or row that could not even be parsed: its number, what would be right, and its text."""

    number: int
    expected: str
    text: str


@dataclass(frozen=True, slots=True)
class Content:
    """A file, parsed as far as possible without knowing its format.

    ``value`` is the parsed JSON value where ``kind`` is json, else None. ``entries`` are the candidates for
    records with their 1-based number: the entries of a JSON list, the lines of JSON Lines, the rows of a CSV
    (cells as text, empty ones left out); none for a JSON object before it is `opened`. ``columns`` are those
    of a CSV, ``table`` its cells, ``bad`` the lines and rows that could not be parsed. ``digest`` is the
    SHA-256 of the file; ``given`` are columns that a user named, by field.
    """

    name: str
    kind: Literal["json", "jsonl", "csv"]
    value: Any = field(repr=False)
    entries: Sequence[tuple[int, Any]] = field(repr=False)
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    bad: tuple[BadEntry, ...] = ()
    digest: str = ""
    table: RawTable | None = field(default=None, repr=False)
    given: Mapping[str, str] = field(default_factory=dict)

    def opened(self, questions: Collection[str] = ()) -> Content:
        """Return content whose entries are its records, also where a JSON object holds them.

        A JSON object may hold a list of records under a usual name (``samples``, ``data``, ``test_cases`` …),
        be a table of columns (as pandas and Hugging Face write one), or be a single record itself.
        ``questions`` are further names of the question field.
        """
        value = self.value
        if not isinstance(value, Mapping):
            return self
        if isinstance(value.get(_ENVELOPE), Mapping):
            value = value[_ENVELOPE]
        held = next((value[key] for key in _WRAPPERS if isinstance(value.get(key), list)), None)
        if held is None or any(name in value for name in _QUESTIONS):
            held = _rows_of_columns(value, {*_QUESTIONS, *questions}) or [dict(value)]
        return replace(self, value=None, entries=tuple(enumerate(held, start=1)))

    def names(self) -> set[str]:
        """Return the names of the columns, or of the fields of the first entries."""
        entries = [entry for _, entry in self.entries[:50] if isinstance(entry, Mapping)]
        return set(self.columns).union(*entries)

    def keys(self, most: int = 20) -> list[str]:
        """Return the names a file gives its fields: columns, or the keys of its object or first entry."""
        if self.columns:
            return list(self.columns[:most])
        first = self.value if isinstance(self.value, dict) else None
        if first is None:
            first = next((entry for _, entry in self.entries if isinstance(entry, dict)), {})
        return list(first)[:most]

    def as_table(self) -> RawTable:
        """Return the cells of a table, also of records: lists and objects as JSON, "" where nothing is."""
        if self.table is not None:
            return self.table
        rows = [entry if isinstance(entry, Mapping) else {} for _, entry in self.entries]
        cells = [{str(name): cell_text(value) for name, value in row.items()} for row in rows]
        frame = pd.DataFrame(cells, columns=list(self.columns) or None, dtype="str").fillna("")
        frame.index = pd.Index([number for number, _ in self.entries], dtype="int64")
        return RawTable(frame, rejected_frame((n, reason, text) for n, reason, text in self.bad), (), ",")

    def log_bad(self, log: IssueLog, column: str | None = None) -> None:
        """Note what could not be parsed; the others are read, each with its own issues."""
        for entry in self.bad:
            log.add(entry.number, column, entry.text, entry.expected)

    def rejected(self, entries: Iterable[Rejected] | pd.DataFrame) -> pd.DataFrame:
        """Return ``row, reason, text`` of what could not be parsed, and of these that could not be read."""
        rows = [(bad.number, f"expected {bad.expected}", bad.text) for bad in self.bad]
        if isinstance(entries, pd.DataFrame):
            both = pd.concat([entries, rejected_frame(rows)]) if rows else entries
            return both.sort_values("row", kind="stable", ignore_index=True).astype({"row": "int64"})
        return rejected_frame([*rows, *((n, reason, entry_text(entry)) for n, reason, entry in entries)])


def read_content(source: bytes | str | os.PathLike[str], name: str, *, strict: bool = False) -> Content:
    """Parse a file as JSON, JSON Lines, CSV, Parquet or Arrow, detected from its content; also gzipped.

    ``strict`` sets aside entries that hold NaN or half of a surrogate pair; otherwise both are repaired and
    counted. InputError where the file as a whole cannot be read.
    """
    data = read_source(source, name)
    return replace(_parsed(data, name, strict), digest=hashlib.sha256(data).hexdigest())


def _parsed(data: bytes, name: str, strict: bool) -> Content:
    if is_columnar(data):
        return _columnar(data, name, JsonReader(repair=not strict))
    text = to_utf8(data, name)
    if not looks_like_json(text.utf8, name):
        return content_of(table_of(text, name), name)
    _check_values(sum(text.utf8.count(mark) for mark in (b",", b"[", b"{")), name)
    reader = JsonReader(repair=not strict)
    content = _json(text.utf8.decode(), name, reader)
    return replace(content, notes=(*([text.note] if text.note else []), *reader.notes()))


def looks_like_json(utf8: bytes, name: str) -> bool:
    """Return whether a text is meant as JSON or JSON Lines, by the name of the file and its start."""
    start = utf8[:100_000].lstrip()
    if start[:1] in (b"{", b"["):
        return True
    if PurePath(name.lower().removesuffix(".gz")).suffix in _LINES_SUFFIXES:
        return True
    lines = [line.lstrip() for line in start.split(b"\n")[:20] if line.strip()]
    return 2 * sum(line.startswith(b"{") for line in lines) > len(lines)


def cell_text(value: Any) -> str:
    """Return a value of a record as the cell of a table: lists and objects as JSON, "" for None."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def entry_text(entry: Any, most: int = 2_000) -> str:
    """Return an entry as text for a list of what was left out, cut to so many characters."""
    try:
        text = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False, default=str)
    except RecursionError:
        return "(nested too deeply)"
    return text if len(text) <= most else text[: most - 1] + "…"


class _Rows(Sequence[tuple[int, Any]]):
    """The rows of a table as entries, which are made when they are asked for: a million need them never."""

    def __init__(self, frame: pd.DataFrame, columns: Sequence[str], name: str) -> None:
        self._frame, self._columns, self._name = frame, list(columns), name
        self._made: list[tuple[int, Any]] | None = None

    def __len__(self) -> int:
        return len(self._frame)

    def __getitem__(self, place: Any) -> Any:
        if self._made is None and isinstance(place, slice) and len(self) > _FEW:
            return self._entries(self._frame.iloc[place])
        if self._made is None:
            _check_number(len(self), self._name)
            self._made = self._entries(self._frame)
        return self._made[place]

    def _entries(self, frame: pd.DataFrame) -> list[tuple[int, Any]]:
        rows = zip(*(frame[name] for name in self._columns), strict=True)
        return [
            (int(row), {c: cell for c, cell in zip(self._columns, cells, strict=True) if cell.strip()})
            for row, cells in zip(frame.index, rows, strict=True)
        ]


def content_of(table: RawTable, name: str, without: str = "") -> Content:
    """Return the content of a delimited file, ``without`` one of its columns."""
    columns = tuple(str(column) for column in table.frame if column != without)
    rejected = table.rejected[["row", "reason", "text"]].itertuples(index=False)
    bad = tuple(BadEntry(int(row), str(reason), str(text)) for row, reason, text in rejected)
    entries = _Rows(table.frame, columns, name)
    return Content(name, "csv", None, entries, columns, table.notes, bad, table=table)


def _columnar(data: bytes, name: str, reader: JsonReader) -> Content:
    """Read the rows of Parquet or Arrow data as records."""
    entries: list[tuple[int, Any]] = []
    bad: list[BadEntry] = []
    n_missing = n_values = 0
    for number, row in enumerate(rows_of(data, name), start=1):
        _check_number(number, name)
        text, problem = row.text or "", row.problem
        n_values += sum(text.count(mark) for mark in (",", "[", "{"))
        _check_values(n_values, name)
        n_missing += row.n_missing
        try:
            value = reader.read(text) if problem is None else None
        except ValueError as error:
            value, problem = None, _reason(error)
        if problem is None:
            entries.append((number, value))
        else:
            bad.append(BadEntry(number, f"a row that can be read ({problem})", entry_text(text)))
    if not entries and not bad:
        raise InputError(f"{name} holds a table without rows; expected a record in each row.")
    notes = list(reader.notes())
    if n_missing:
        notes.append(f"Values that are no text, number, time or list were read as missing: {n_missing:,}.")
    values = [entry for _, entry in entries]
    return Content(name, "json", values, tuple(entries), notes=tuple(notes), bad=tuple(bad))


def _json(text: str, name: str, reader: JsonReader) -> Content:
    try:
        value = reader.parse(text)
    except ValueError as error:
        reader.n_missing = 0  # its first line will be read again
        content = None
        if not text.lstrip().startswith("["):  # JSON Lines, unless most lines are no JSON
            lines = [(n, line.strip()) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
            content = _pieces(lines, name, reader)
        content = content or _objects(text, name, reader)
        if content is None:
            line = f", line {error.lineno}," if isinstance(error, json.JSONDecodeError) else ""
            raise InputError(
                f"{name}{line} is not valid JSON ({_reason(error)}); expected {_WANTED}."
            ) from error
        return content
    if isinstance(value, list):
        return _list(value, name, reader)
    try:
        value = reader.checked(value)
    except NotJson as error:
        raise InputError(f"{name} cannot be used as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{name} holds the JSON value {shorten(text.strip())}; expected {_WANTED}.")
    return Content(name, "json", value, ())


def _list(values: list[Any], name: str, reader: JsonReader) -> Content:
    _check_number(len(values), name)
    entries, bad = [], []
    for number, value in enumerate(values, start=1):
        try:
            entries.append((number, reader.checked(value)))
        except NotJson as error:
            bad.append(BadEntry(number, f"JSON that can be used ({error})", entry_text(value)))
    return Content(name, "json", [entry for _, entry in entries], tuple(entries), bad=tuple(bad))


def _objects(text: str, name: str, reader: JsonReader) -> Content | None:
    """Read indented JSON objects one after another, numbered by their first lines; None where it is one."""
    starts = [0, *(between.end() for between in _BETWEEN.finditer(text))]
    if len(starts) == 1:
        return None
    pieces, number = [], 1
    for start, end in pairwise([*starts, len(text)]):
        pieces.append((number, text[start:end].strip()))
        number += text.count("\n", start, end)
    return _pieces(pieces, name, reader)


def _pieces(lines: Sequence[tuple[int, str]], name: str, reader: JsonReader) -> Content | None:
    """Read one object from each numbered text; None where most hold none."""
    _check_number(len(lines), name)
    entries, bad = [], []
    for number, line in lines:
        try:
            value, reason = reader.read(line), ""
        except ValueError as error:
            value, reason = None, f" ({_reason(error)})"
        if isinstance(value, dict):
            entries.append((number, value))
        else:
            bad.append(BadEntry(number, f"a JSON object{reason}", line))
    if 2 * len(entries) < len(lines):
        return None
    return Content(name, "jsonl", None, tuple(entries), bad=tuple(bad))


def _rows_of_columns(value: Mapping[str, Any], questions: Collection[str]) -> list[dict[str, Any]] | None:
    """Return the rows of a table written column by column, or None."""
    columns = list(value.values())
    if not any(name in value for name in questions):
        return None
    # Ragged columns are filled up, so a file of few values could ask for very many.
    if len(columns) * max(len(c) if isinstance(c, (list, Mapping)) else 0 for c in columns) > MAX_VALUES:
        return None
    rows: Iterable[tuple[Any, ...]]
    if all(isinstance(column, list) for column in columns):
        rows = zip_longest(*columns)
    elif all(isinstance(column, Mapping) for column in columns):
        keys = list(next(column for name, column in value.items() if name in questions))
        rows = zip(*([column.get(key) for key in keys] for column in columns), strict=True)
    else:
        return None
    return [dict(zip(value, row, strict=True)) for row in rows]


def _check_number(n: int, name: str) -> None:
    if n > MAX_ENTRIES:
        raise InputError(f"{name} holds {n:,} entries; the limit is {MAX_ENTRIES:,}, so split the file.")


def _check_values(n: int, name: str) -> None:
    if n > MAX_VALUES:
        raise InputError(
            f"{name} holds about {n:,} JSON values; the limit is {MAX_VALUES:,}, so split the file."
        )


def _reason(error: ValueError) -> str:
    return error.msg.lower() if isinstance(error, json.JSONDecodeError) else str(error)
