"""Records written as JSON that every reader takes, UTF-8 without NaN; those of no model are marked.

What a run cannot hold of a file is kept, so that the same file can be written again: every format writes a
record in its own plain form, and the difference to its file stands under a reserved name in the record's
`reported`: ``<format>:record``, and once per file, with its first record, ``<format>:file`` for the file as a
whole. Where the record has changed since, its plain form is right and the difference is not applied there.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from core.run import MARKS, SOURCES, marked_source
from core.sources.content import Content, content_of
from core.sources.formats.records import Record
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
    """Return a JSON or JSON Lines file with the mark of its run in every record, or in the document."""

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


_RESERVED = re.compile(r"[a-z-]+:(record|file)")


def is_kept(name: str) -> bool:
    """Return whether a name in `reported` is reserved: only a writer reads it."""
    return _RESERVED.fullmatch(name) is not None


def keep(file_format: str, record: Record, written: Any, original: Any) -> Record:
    """Return a record that also carries what its ``original`` entry has beyond its ``written`` plain form."""
    change = difference(written, original)
    return record if change is None else _with(record, file_format, "record", change)


def with_kept(file_format: str, record: Record, written: Any) -> Any:
    """Return the plain form of a record with what `keep` stored."""
    return apply(record.reported.get((f"{file_format}:record", "")), written)


def keep_file(records: Sequence[Record], file_format: str, values: Mapping[str, Any]) -> list[Record]:
    """Return the records, the first one carrying what belongs to the file as a whole."""
    worth = {name: value for name, value in values.items() if value not in (None, [], {})}
    if not records or not worth:
        return list(records)
    return [_with(records[0], file_format, "file", worth), *records[1:]]


def kept_file(records: Iterable[Record], file_format: str) -> dict[str, Any]:
    """Return what was kept of the file as a whole; empty if nothing was."""
    found = (record.reported.get((f"{file_format}:file", "")) for record in records)
    return next((dict(value) for value in found if isinstance(value, dict)), {})


def difference(written: Any, original: Any) -> dict[str, Any] | None:
    """Return the change between two JSON values, entry by entry; None where they are equal.

    ``was`` is a checksum of the old value, by which `apply` sees whether it is still there.
    """
    if isinstance(written, dict) and isinstance(original, dict):
        change = {
            "new": {name: value for name, value in original.items() if name not in written},
            "gone": {name: _sum(value) for name, value in written.items() if name not in original},
            "in": _parts({name: (v, original[name]) for name, v in written.items() if name in original}),
        }
        change = {name: value for name, value in change.items() if value}
        return change or None
    if isinstance(written, list) and isinstance(original, list) and len(written) == len(original):
        parts = _parts({str(i): pair for i, pair in enumerate(zip(written, original, strict=True))})
        return {"in": parts, "n": len(written)} if parts else None
    same = written == original and isinstance(written, bool) == isinstance(original, bool)
    return None if same else {"is": original, "was": _sum(written)}


def apply(change: Any, value: Any) -> Any:
    """Return a value with a `difference`; a run may come from anywhere, so an odd one changes nothing."""
    if not isinstance(change, dict):
        return value
    if "is" in change:
        return change["is"] if change.get("was") == _sum(value) else value
    new, gone, inner = (
        part if isinstance(part := change.get(k), dict) else {} for k in ("new", "gone", "in")
    )
    if isinstance(value, dict):
        left = {k: apply(inner.get(k), v) for k, v in value.items() if k not in gone or gone[k] != _sum(v)}
        return left | {name: added for name, added in new.items() if name not in value}
    if isinstance(value, list) and change.get("n") == len(value):
        return [apply(inner.get(str(i)), entry) for i, entry in enumerate(value)]
    return value


def _parts(pairs: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    parts = {name: difference(*pair) for name, pair in pairs.items()}
    return {name: part for name, part in parts.items() if part is not None}


def _sum(value: Any) -> int:
    return zlib.crc32(json.dumps(plain(value), sort_keys=True).encode())


def _with(record: Record, file_format: str, what: str, value: Any) -> Record:
    return replace(record, reported={**record.reported, (f"{file_format}:{what}", ""): value})
