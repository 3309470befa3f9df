"""Ways to damage a file: its bytes, lines, cells and values, the columns of a table, the rows and pages of SQLite.

Each takes the content of a file and returns another one, drawn by ``chance``. Where a file is not of the kind that a
way changes, it changes the bytes.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_NESTED: Any = 0
for _ in range(60):
    _NESTED = [_NESTED]
VALUES: list[Any] = [
    None, True, False, 0, -1, 3, 0.5, 1e308, 10**400, float("nan"), "", " ", "x", "null", "[1]", "['a'", '{"a": 1}',
    "\ud800", "\x00", "=1+1", "0x", "1" * 25, "é" * 3000, [], [[]], [None], ["a"], [{}], {}, {"": {}}, {"key": ["a"]},
    {"text": 5}, {"role": [], "content": {}}, [["a"], {"value": None}], _NESTED, 1740830401250, "2025-13-45T99:00:00",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", 2**63, -(2**63), "x" * 200_000, float("-inf"),
]  # fmt: skip
_BYTES = (
    b"\x00", b"\xff", b'"', b"{", b"}", b"[", b"]", b",", b"\n", b"\r", b"\\", b"\\ud800", b"NaN", b"\xef\xbb\xbf",
    b"\xff\xfe", b"[" * 200_000, b'{"a":' * 5_000, b"PAR1", b"\x1f\x8b\x08\x00",
)  # fmt: skip
_NUMBERS = (
    b"0",
    b"-1",
    b"1e308",
    b"-1e308",
    b"1e999",
    b"9" * 400,
    b"NaN",
    b"Infinity",
    b"null",
    b'"x"',
    b"1" * 19,
)
Way = Callable[[bytes, random.Random], bytes]


def few_bytes(data: bytes, chance: random.Random) -> bytes:
    """Flip a bit, replace, put in, take out, repeat or cut off."""
    at = chance.randrange(len(data) + 1)
    end = min(len(data), at + chance.choice((1, 1, 3, 20, 200)))
    flipped = bytes([data[at] ^ 1 << chance.randrange(8)]) if at < len(data) else b""
    return chance.choice(
        (
            data[:at] + flipped + data[at + 1 :],
            data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :],
            data[:at] + chance.choice(_BYTES) + data[at:],
            data[:at] + data[end:],
            data[:end] + data[at:],
            data[:at],
            data[at:],
        )
    )


def doubled(data: bytes, chance: random.Random) -> bytes:
    """Write a long piece, or the whole, again."""
    first, last = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return chance.choice((data + data, data[:last] + data[first:]))


def emptied(data: bytes, chance: random.Random) -> bytes:
    """Leave nothing, or nothing but white space or zeros."""
    return chance.choice((b"", b"\n", b" " * len(data), b"\0" * len(data)))


def numbers(data: bytes, chance: random.Random) -> bytes:
    """Replace a number by one that is huge, negative or none, or all numbers."""
    found = [*re.finditer(rb"-?\d+(?:\.\d+)?", data)]
    if not found:
        return few_bytes(data, chance)
    new = chance.choice(_NUMBERS)
    if chance.random() < 0.1:
        return re.sub(rb"-?\d+(?:\.\d+)?", new, data)
    one = chance.choice(found)
    return data[: one.start()] + new + data[one.end() :]


def rows(data: bytes, chance: random.Random) -> bytes:
    """Leave out, double, cut, move or join lines."""
    every = data.split(b"\n")
    at, other = chance.randrange(len(every)), chance.randrange(len(every))
    row = every[at]
    new = chance.choice(
        ([], [row, row], [row[: chance.randrange(len(row) + 1)]], [every[other]], [row + every[other]])
    )
    return b"\n".join([*every[:at], *new, *every[at + 1 :]])


def cells(data: bytes, chance: random.Random) -> bytes:
    """Put another value where a cell ends, or another separator everywhere."""
    places = [at for at, byte in enumerate(data) if byte in b',;"']
    if not places or chance.random() < 0.1:
        return data.replace(b",", chance.choice((b";", b"\t", b"|", b",,")))
    at, value = chance.choice(places), chance.choice(VALUES)
    text = value if isinstance(value, str) else repr(value)
    return data[: at + 1] + text.encode(errors="surrogatepass") + data[at + chance.randint(1, 8) :]


def columns(data: bytes, chance: random.Random) -> bytes:
    """Leave out, rename, double or swap the columns of delimited text, without regard to quotation marks."""
    lines = [line.split(b",") for line in data.split(b"\n")]
    at = chance.randrange(len(lines[0]))
    what = chance.choice(("leave out", "rename", "double", "swap"))
    if what == "rename":
        lines[0][at] = chance.choice((b"", b"question", b"query", b"answer", b"influence_score", lines[0][0]))
        return b"\n".join(map(b",".join, lines))
    order = list(range(len(lines[0])))
    if what == "leave out":
        del order[at]
    elif what == "double":
        order.insert(at, at)
    else:
        chance.shuffle(order)
    return b"\n".join(
        b",".join(line[i] for i in order) if len(line) == len(lines[0]) else b",".join(line) for line in lines
    )


def values(data: bytes, chance: random.Random) -> bytes:
    """Change the parsed value in one place, and write it again as it was: whole, or one object a line."""
    try:
        whole, value = True, json.loads(data)
    except ValueError:
        try:
            whole, value = False, [json.loads(line) for line in data.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return few_bytes(data, chance)
    except RecursionError:
        return data
    places = [place for place in _places(value) if place]
    if not places:
        return _json_text(chance.choice(VALUES))
    *above, key = chance.choice(places)
    holder = value
    for step in above:
        holder = holder[step]
    holder_changed = _changed(holder, key, chance)
    text = _json_text(value) if whole else b"\n".join(map(_json_text, value))
    if holder_changed:
        return text
    # The same name twice: no parsed value can say so.
    return text.replace(b"{", b"{" + _json_text(str(key)) + b": 0, ", chance.choice((1, -1)))


def _changed(holder: Any, key: Any, chance: random.Random) -> bool:
    """Change one entry of a list or an object; False where only the text can show the change."""
    what = chance.choice(("replace", "replace", "replace", "leave out", "double", "wrap", "swap", "rename"))
    if what == "replace":
        holder[key] = copy.deepcopy(chance.choice(VALUES))
    elif what == "leave out":
        del holder[key]
    elif what == "wrap":
        holder[key] = chance.choice(
            ([holder[key]], {"value": holder[key]}, [holder[key]] * 3, str(holder[key]))
        )
    elif what == "swap":
        other = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        holder[key], holder[other] = holder[other], holder[key]
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif what == "rename":
        holder[chance.choice(("id", "text", "value", "", "question", "samples", "\ud800"))] = holder.pop(key)
    else:
        return False
    return True


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if len(place) < 80 and isinstance(value, (dict, list)):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(entry, (*place, key))


def _json_text(value: Any) -> bytes:
    # Half a surrogate pair is spelled out, as only then JSON can hold it.
    text = json.dumps(value, ensure_ascii=False)
    return text.encode() if text.isprintable() else json.dumps(value).encode()


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _arrow(new: Callable[..., Any]) -> Callable[[pa.Table], bytes]:
    def written(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with new(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()

    return written


# How a table is written in each form, by the file's first bytes.
TABLES: Mapping[bytes, Callable[[pa.Table], bytes]] = {
    b"PAR1": _parquet,
    b"ARROW1": _arrow(pa.ipc.new_file),
    b"\xff\xff\xff\xff": _arrow(pa.ipc.new_stream),
}


def _read(data: bytes) -> pa.Table:
    if data.startswith(b"PAR1"):
        return pq.read_table(pa.BufferReader(data))
    return (pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream)(
        pa.BufferReader(data)
    ).read_all()


def tables(data: bytes, chance: random.Random) -> bytes:
    """Leave out, rename, swap or retype a column of Parquet or Arrow data, or change a cell or the rows."""
    start = next((start for start in TABLES if data.startswith(start)), None)
    try:
        return TABLES[start](_another(_read(data), chance))  # type: ignore[index]
    except (KeyError, pa.ArrowException, ValueError, TypeError, OverflowError, OSError):
        return few_bytes(data, chance)


def _another(table: pa.Table, chance: random.Random) -> pa.Table:
    at, other = chance.randrange(table.num_columns), chance.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    what = chance.choice(("leave out", "rename", "swap", "retype", "retype", "cell", "cell", "cell", "rows"))
    if what == "leave out":
        return table.remove_column(at)
    if what == "rename":
        names = [*table.column_names]
        names[at] = chance.choice(("", "x", "query_id", "question", "score", names[other]))
        return table.rename_columns(names)
    if what == "swap":
        first, second = table.column(other), table.column_names[other]
        return table.set_column(at, name, first).set_column(other, second, column)
    if what == "rows":
        places = list(range(table.num_rows))
        taken = chance.choice(([], places[:1], places[1:], places * 2, places[::-1], places[:-1] * 50))
        return table.take(pa.array(taken, pa.int64()))
    entries = column.to_pylist()
    if what == "cell" and entries:
        entries[chance.randrange(len(entries))] = chance.choice((None, *entries, *VALUES))
        try:
            return table.set_column(at, name, pa.array(entries, column.type, from_pandas=False))
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            pass  # of another type: the whole column becomes of that type
    new: Callable[[Any], Any] = chance.choice(
        (
            str, lambda one: [one], lambda one: None, lambda one: {"value": one}, lambda one: repr(one).encode(),
            lambda one: 1e308, lambda one: float("nan"), lambda one: True, lambda one: -1, lambda one: entries[0],
            lambda one: float("inf"), lambda one: "\x00", lambda one: [], lambda one: 2**62,
        )
    )  # fmt: skip
    found = pa.array([*map(new, entries)], from_pandas=False)
    if chance.random() < 0.2:
        found = found.dictionary_encode()
    return table.set_column(at, name, found)


_CELLS = (
    None, 0, -1, 2, 2**62, 1e308, -1e308, float("inf"), "", "x", "nan", "9" * 400, "x" * 200_000, b"\xff\x00", b"", "[1",
    "[" * 5_000, '{"weights": {}}', "null", "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00",
)  # fmt: skip


def database(data: bytes, chance: random.Random) -> bytes:
    """Overwrite a page of a SQLite file, or change its rows, columns and tables."""
    if chance.random() < 0.4 or not data.startswith(b"SQLite"):
        size = 4096
        at = chance.randrange(max(1, len(data) // size)) * size
        page = chance.choice(
            (b"\0" * size, b"\xff" * size, chance.randbytes(size), data[:size], data[-size:])
        )
        return data[:at] + page + data[at + size :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "one.db")
        path.write_bytes(data)
        with (
            closing(sqlite3.connect(path, isolation_level=None)) as db,
            suppress(sqlite3.Error, IndexError),  # there may be nothing left to change
        ):
            _edit(db, chance)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.read_bytes()


def _edit(db: sqlite3.Connection, chance: random.Random) -> None:
    db.execute("PRAGMA ignore_check_constraints = ON")
    table = chance.choice(
        [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    )
    names = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]
    column = chance.choice(names)
    what = chance.choice(
        ("cell",) * 8 + ("drop", "rename", "leave out", "version", "double", "type", "clear")
    )
    if what == "cell":
        # By its first column: not every table has a rowid.
        keys = [key for (key,) in db.execute(f"SELECT {names[0]} FROM {table}")]
        where, of = chance.choice((("", ()), (f" WHERE {names[0]} IS ?", (chance.choice(keys),))))
        db.execute(f"UPDATE {table} SET {column} = ?{where}", (chance.choice(_CELLS), *of))
    elif what == "drop":
        db.execute(f"DROP TABLE {table}")
    elif what == "rename":
        db.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
    elif what == "leave out":
        db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    elif what == "version":
        db.execute(f"PRAGMA user_version = {chance.choice((0, 2, 99, -1))}")
    elif what == "double":
        db.execute(f"CREATE TABLE copy AS SELECT * FROM {table}")
        db.execute(f"DROP TABLE {table}")
        db.execute(f"ALTER TABLE copy RENAME TO {table}")
    elif what == "type":
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name = ?", (table,))
    else:
        db.execute(f"DELETE FROM {table}")


ANY: tuple[Way, ...] = (few_bytes, few_bytes, doubled, emptied)
_JSON: tuple[Way, ...] = (values, values, values, values, values, few_bytes, rows, numbers, numbers)
_TEXT: tuple[Way, ...] = (cells, cells, columns, few_bytes, rows, numbers)
WAYS: Mapping[str, tuple[Way, ...]] = {
    ".json": _JSON,
    ".jsonl": _JSON,
    ".csv": _TEXT,
    ".tsv": _TEXT,
    ".txt": (few_bytes, rows),
    ".md": (few_bytes, rows),
    ".parquet": (tables,) * 6 + (few_bytes,),
    ".arrow": (tables,) * 3 + (few_bytes,),
    ".db": (database,) * 4 + (few_bytes,),
}


def damage(data: bytes, name: str, chance: random.Random) -> tuple[bytes, str]:
    """Return a file damaged in one to three ways that suit its name, and what was done."""
    if name.endswith(".gz") and data.startswith(b"\x1f\x8b") and chance.random() < 0.6:
        inner, what = damage(gzip.decompress(data), name.removesuffix(".gz"), chance)
        return gzip.compress(inner, mtime=0), f"{what} within gzip"
    done = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        ways = WAYS.get(Path(name).suffix, ANY)
        way = chance.choice(ways if chance.random() < 0.9 else ANY)
        if way is tables and {*done} - {tables.__name__}:
            way = few_bytes  # Arrow ends the process that reads damaged offsets, here that of the tests
        data, done = way(data, chance), [*done, way.__name__]
    return data, ", ".join(done)
