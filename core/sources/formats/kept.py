"""What a run cannot hold of a file, kept so that the same file can be written again.

Every format writes a record in its own plain form. The difference to its file is
kept under a reserved name in the record's `reported`: ``<format>:record``, and once per file, with its first
record, ``<format>:file`` for the file as a whole. Where the record has changed since, its plain
form is right and the difference is not applied there.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.sources.formats.records import Record
from core.sources.formats.writing import plain

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
