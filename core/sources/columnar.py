"""Tables that are no text: Parquet files and Arrow data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from core.errors import InputError
from core.sources.encoding import ARROW_STREAM, MAX_BYTES
from core.sources.report import shorten
from core.text.strict import finite

_PARQUET, _ARROW_FILE = b"PAR1", b"ARROW1"
# A dictionary can hold one long text that every row repeats, so only a few rows are unpacked at once.
_ROWS = 64


class Row(NamedTuple):
    """One row as a JSON text, or what is wrong with it; ``n_missing`` of its values have no form in JSON."""

    text: str | None
    problem: str | None
    n_missing: int


def is_columnar(data: bytes) -> bool:
    """Return whether bytes are a Parquet file or Arrow data."""
    return data.startswith((_PARQUET, _ARROW_FILE, ARROW_STREAM))


def rows_of(data: bytes, name: str) -> Iterator[Row]:
    """Yield the rows of Parquet or Arrow data, each as JSON; InputError where they cannot be read on.

    Columns of a type from elsewhere (an extension) are read as what they are stored as: nothing in the file
    is unpickled or run.
    """
    batches = _parquet(data, name) if data.startswith(_PARQUET) else _arrow(data)
    size = 0
    try:
        for batch in batches:
            for row in _rows(batch):
                size += len(row.text or "")
                if size > MAX_BYTES:
                    raise InputError(
                        f"{name} holds more than {MAX_BYTES / 1e6:,.0f} MB unpacked, which is the limit; "
                        "split the file."
                    )
                yield row
    except InputError:
        raise
    except Exception as error:  # the library lets through whatever its readers raise for a damaged file
        what = "a Parquet file" if data.startswith(_PARQUET) else "Arrow data"
        first = shorten((str(error).strip() or type(error).__name__).split("\n")[0]).rstrip(".")
        raise InputError(f"{name} cannot be read as {what} ({first}); write or upload it again.") from error


def _parquet(data: bytes, name: str) -> Iterator[Any]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(data), arrow_extensions_enabled=False)
    unpacked = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
    if unpacked > MAX_BYTES:
        raise InputError(
            f"{name} holds {unpacked / 1e6:,.0f} MB unpacked; the limit is {MAX_BYTES / 1e6:,.0f} MB, so "
            "split the file."
        )
    yield from file.iter_batches(batch_size=_ROWS, use_threads=False)


def _arrow(data: bytes) -> Iterator[Any]:
    if data.startswith(_ARROW_FILE):
        table = pa.ipc.open_file(pa.BufferReader(data))
        yield from _checked(table.get_batch(i) for i in range(table.num_record_batches))
        return
    source = pa.BufferReader(data)
    schema = None
    while source.tell() < len(data):
        stream = pa.ipc.open_stream(source)
        if schema is not None and stream.schema.names != schema.names:
            raise ValueError("its parts have different columns")
        schema = stream.schema
        yield from _checked(stream)


def _checked(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches, a few rows at a time; offsets that point elsewhere would be read from memory."""
    for batch in batches:
        batch.validate(full=True)
        yield from (batch.slice(first, _ROWS) for first in range(0, batch.num_rows, _ROWS))


def _rows(batch: Any) -> Iterator[Row]:
    try:
        values = batch.to_pylist()
    except Exception:  # one odd cell (text that is not UTF-8, a date beyond the calendar) costs its row only
        for place in range(batch.num_rows):
            try:
                (value,) = batch.slice(place, 1).to_pylist()
            except Exception as error:
                yield Row(None, shorten(str(error) or type(error).__name__), 0)
            else:
                yield _row(value)
        return
    yield from map(_row, values)


def _row(values: Mapping[str, Any]) -> Row:
    n_missing = 0

    def other(value: Any) -> Any:
        nonlocal n_missing
        plain = _plain(value)
        n_missing += plain is None
        return plain

    try:
        return Row(json.dumps(values, ensure_ascii=False, default=other), None, n_missing)
    except (TypeError, ValueError, RecursionError) as error:
        return Row(None, shorten(str(error)), 0)


def _plain(value: Any) -> Any:
    """Return a value that JSON does not have as one that it has: times in ISO 8601, None for mere bytes."""
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else text
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return finite(value)
    for read in ("isoformat", "tolist"):
        if hasattr(value, read):
            return getattr(value, read)()
    return None
