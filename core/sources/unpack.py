"""Reads Parquet or Arrow data from standard input as JSON rows: a process of its own, with bounded memory.

A few hundred bytes can unpack to gigabytes, before any size in the file can be believed, and a damaged file
can break the library. `core.sources.columnar` starts this file alone, so it imports nothing of the project.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

PARQUET, ARROW_FILE = b"PAR1", b"ARROW1"
# A dictionary can hold one long text that every row repeats, so only a few rows are unpacked at once.
_ROWS = 64
_SECONDS = 600  # of the processor
# What a line of the output begins with.
GOOD, BAD, ENDED, DAMAGED, TOO_LARGE = "+", "-", ".", "!", "*"


def lines_of(data: bytes) -> Iterator[str]:
    """Yield a line for each row, then one that says how it ended.

    `GOOD`, how many of its values have no form in JSON, a tab and the row as JSON; or `BAD` and what is wrong
    with the row. The last line is `ENDED`, `DAMAGED` and what the library said, or `TOO_LARGE`. Columns of a
    type from elsewhere (an extension) are read as what they are stored as: nothing is unpickled or run.
    """
    try:
        for batch in _parquet(data) if data.startswith(PARQUET) else _arrow(data):
            yield from _rows(batch)
    except MemoryError:  # that of pyarrow is one, too
        yield TOO_LARGE
    except Exception as error:  # the library lets through whatever its readers raise for a damaged file
        yield DAMAGED + _line(error)
    else:
        yield ENDED


def _parquet(data: bytes) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(data), arrow_extensions_enabled=False)
    yield from file.iter_batches(batch_size=_ROWS, use_threads=False)


def _arrow(data: bytes) -> Iterator[Any]:
    import pyarrow as pa

    if data.startswith(ARROW_FILE):
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


def _rows(batch: Any) -> Iterator[str]:
    try:
        values = batch.to_pylist()
    except MemoryError:
        raise
    except Exception:  # one odd cell (text that is not UTF-8, a date beyond the calendar) costs its row only
        for place in range(batch.num_rows):
            try:
                (value,) = batch.slice(place, 1).to_pylist()
            except Exception as error:
                yield BAD + _line(error)
            else:
                yield _row(value)
        return
    yield from map(_row, values)


def _row(values: Mapping[str, Any]) -> str:
    n_missing = 0

    def other(value: Any) -> Any:
        nonlocal n_missing
        plain = _plain(value)
        n_missing += plain is None
        return plain

    try:
        text = json.dumps(values, ensure_ascii=False, default=other)
    except (TypeError, ValueError, RecursionError) as error:
        return BAD + _line(error)
    return f"{GOOD}{n_missing}\t{text}"


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
        return float(value) if math.isfinite(value) else None
    for read in ("isoformat", "tolist"):
        if hasattr(value, read):
            return getattr(value, read)()
    return None


def _line(error: Exception) -> str:
    """Return what an error says in one line."""
    return " ".join((str(error).strip() or type(error).__name__).split("\n")[0].split())


def main() -> None:
    """Write the rows of standard input, within as many bytes of memory as the argument says."""
    try:
        import resource
    except ImportError:  # no such limit on this system
        pass
    else:
        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS,) * 2)
    write = sys.stdout.buffer.write
    for line in lines_of(sys.stdin.buffer.read()):
        write(line.encode("utf-8", "surrogatepass") + b"\n")


if __name__ == "__main__":
    main()
