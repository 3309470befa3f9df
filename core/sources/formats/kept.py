"""What a file says beyond what a record holds, kept so that the same file can be written again.

Two reserved names in a record's `reported` hold it: ``<format>:record`` and, once per file with its first
record, ``<format>:file``. Only the writer of that format reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.sources.corpus import text_problem
from core.sources.formats.records import Record
from core.sources.question import FieldError
from core.sources.report import IssueLog

MAX_ID = 1_000
_NOTHING: tuple[Any, ...] = ([], {}, (), "")
_KEPT = re.compile(r"[a-z-]+:(record|file)")
Rejected = tuple[int, str, Any]


def is_kept(name: str) -> bool:
    """Say whether a name in `reported` is reserved: only a writer reads it, and nobody need see it."""
    return _KEPT.fullmatch(name) is not None


def keep(file_format: str, what: str, values: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Return an entry for `reported` that holds ``values``, or none where there is nothing to keep.

    Parameters
    ----------
    file_format : str
        Name of the format.
    what : {"record", "file"}
        Whether the values belong to one record or to the whole file.
    values : Mapping
        Plain JSON values; those that are None or empty are left out.

    Raises
    ------
    FieldError
        The values are nested too deeply to be written as JSON.
    """
    worth = {name: value for name, value in values.items() if value is not None and value not in _NOTHING}
    if not worth:
        return {}
    try:
        # As it will come back from a saved run: tuples as lists.
        return {(f"{file_format}:{what}", ""): json.loads(json.dumps(worth))}
    except RecursionError as error:
        raise FieldError(what, "(nested too deeply)", "fields that are not nested so deeply") from error


def with_file(
    records: Sequence[Record], file_format: str, values: Mapping[str, Any], log: IssueLog
) -> list[Record]:
    """Return the records, the first one carrying what the file says of itself (see `keep`)."""
    try:
        kept = keep(file_format, "file", values)
    except FieldError as error:
        log.add(None, error.field, error.value, error.expected, "warning")
        kept = {}
    if not records or not kept:
        return list(records)
    first = records[0]
    return [replace(first, reported={**first.reported, **kept}), *records[1:]]


class Kept:
    """What `keep` put aside; a run may come from anywhere, so whatever has a wrong type reads as absent."""

    def __init__(self, record: Record, file_format: str, what: str = "record") -> None:
        value = record.reported.get((f"{file_format}:{what}", ""))
        self.values: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {}

    def __bool__(self) -> bool:
        return bool(self.values)

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object; empty where absent."""
        value = self.values.get(name)
        return dict(value) if isinstance(value, dict) else {}

    def items(self, name: str, length: int | None = None) -> list[Any] | None:
        """Return a list (of this length, if one is given); None where there is none."""
        value = self.values.get(name)
        fits = isinstance(value, list) and length in (None, len(value))
        return list(value) if fits else None  # type: ignore[arg-type]

    def text(self, name: str) -> str | None:
        """Return a text; None where absent."""
        value = self.values.get(name)
        return value if isinstance(value, str) else None


def first_kept(records: Iterable[Record], file_format: str) -> Kept | None:
    """Return what was kept of the file as a whole; None where no record brings any."""
    return next((kept for kept in (Kept(r, file_format, "file") for r in records) if kept), None)


def as_id(value: object) -> str | None:
    """Return an identifier as text, also from an integer; None where it is absent or of no use."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
        value = str(value)
    usable = isinstance(value, str) and value.strip() and len(value) <= MAX_ID and not text_problem(value)
    return str(value) if usable else None


def unique(names: Sequence[str | None], stem: str = "d") -> tuple[str, ...]:
    """Return the names made to differ: ``a, a, None`` becomes ``a, a (2), d3``.

    The first holder of a name keeps it, and no new name is one that stands in the list already.
    """
    given = {name for name in names if name is not None}
    used: set[str] = set()
    counts: dict[str, int] = {}
    result = []
    for place, name in enumerate(names, start=1):
        base = f"{stem}{place}" if name is None else name
        candidate = base
        while candidate in used or (candidate in given and (name is None or candidate != name)):
            counts[base] = counts.get(base, 1) + 1
            candidate = f"{base} ({counts[base]})"
        used.add(candidate)
        result.append(candidate)
    return tuple(result)


def read_each(
    entries: Iterable[tuple[int, Any]], log: IssueLog, read: Callable[[int, Any], Record]
) -> tuple[list[Record], list[Rejected]]:
    """Read entries one by one; those for which ``read`` raises `FieldError` are noted and put aside."""
    records, rejected = [], []
    for number, entry in entries:
        try:
            records.append(read(number, entry))
        except FieldError as error:
            log.add(number, error.field, error.value, error.expected)
            rejected.append((number, f"{error.field}: expected {error.expected}", entry))
    return records, rejected
