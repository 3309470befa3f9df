"""Damaged files: real ones of every format, with bytes, values, names, lines and cells changed by chance.

`EXAMPLES` is what they are made of: every file in tests/data/files, and a line here for each further one.
"""

from __future__ import annotations

import copy
import json
import random
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from core.errors import LeadlineError
from core.run import Run
from core.sources.dataset import read_dataset
from core.sources.formats import FORMATS, import_file
from core.sources.formats.records import records_of
from core.sources.templates import TEMPLATES, template_csv
from tests.core.sources.formats import (
    test_format_deepeval,
    test_format_inspectorraget,
    test_format_jsonl,
    test_format_openinference,
    test_format_rag_uncertainty,
    test_format_ragas,
    test_format_ragchecker,
)

FILES = Path(__file__).parents[3] / "data/files"
# Of one file, of a few thousand bytes: far more than a good one needs.
SECONDS = 5.0
MEMORY = 300 << 20


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _lines(values: list[Any]) -> bytes:
    return b"\n".join(map(_json, values))


EXAMPLES: dict[str, bytes] = {
    **{path.name: path.read_bytes() for path in sorted(FILES.iterdir()) if path.is_file()},
    **{f"{kind}.csv": template_csv(kind).encode() for kind in TEMPLATES},
    "deepeval.json": _json(test_format_deepeval.CASES),
    "inspectorraget.json": _json(test_format_inspectorraget.FILE),
    "inspectorraget-1.json": _json(test_format_inspectorraget.V1),
    "jsonl.jsonl": _lines(test_format_jsonl.RECORDS),
    "openinference.jsonl": _lines(test_format_openinference.FILE),
    "rag-uncertainty.json": _json(test_format_rag_uncertainty.FILE),
    "ragas.jsonl": _lines(test_format_ragas.SAMPLES),
    "ragchecker.json": _json(test_format_ragchecker.FILE),
}

_NESTED: Any = 0
for _ in range(60):
    _NESTED = [_NESTED]
VALUES: list[Any] = [
    None, True, False, 0, -1, 3, 0.5, 1e308, 10**400, float("nan"), "", " ", "x", "null", "[1]", "['a'", '{"a": 1}',
    "\ud800", "\x00", "=1+1", "0x", "1" * 25, "é" * 3000, [], [[]], [None], ["a"], [{}], {}, {"": {}}, {"key": ["a"]},
    {"text": 5}, {"role": [], "content": {}}, [["a"], {"value": None}], _NESTED, 1740830401250, "2025-13-45T99:00:00",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59",
]  # fmt: skip
BYTES = [
    b"\x00",
    b"\xff",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"\n",
    b"\r",
    b"\\",
    b"\\ud800",
    b"NaN",
    b"\xef\xbb\xbf",
]


def damaged(name: str, number: int) -> bytes:
    """Return one damaged file, always the same for a name and a number."""
    chance = random.Random(f"{name} {number}")
    data = EXAMPLES[name]
    for _ in range(chance.randint(1, 3)):
        ways = _TEXT_WAYS if name.endswith(".csv") else _JSON_WAYS
        data = chance.choice(ways)(data, chance)
    return data


def check(data: bytes, name: str) -> None:
    """Import a file, alone and as a data set; it is refused in one sentence, or its run can be used."""
    start, peak = time.process_time(), _peak()
    for use in (_import, read_dataset):
        try:
            use(data, name)
        except LeadlineError as error:
            assert str(error) and "\n" not in str(error), str(error)
    assert time.process_time() - start < SECONDS
    assert _peak() - peak < MEMORY


def _peak() -> int:
    """Return the most memory that this process has held so far, in bytes (Linux counts in kilobytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _import(data: bytes, name: str) -> None:
    imported = import_file(data, name)
    assert isinstance(imported.run, Run) and imported.report.n_kept > 0
    assert all(str(issue) for issue in imported.report.issues)
    if imported.run.manifest["dataset"]["format"] in FORMATS:
        records = records_of(imported.run)
        for file_format in FORMATS.values():
            assert file_format.write is None or file_format.write(records)


def _bytes(data: bytes, chance: random.Random) -> bytes:
    """Flip, put in, take out, repeat or cut off."""
    at = chance.randrange(len(data) + 1)
    end = min(len(data), at + chance.choice((1, 1, 3, 20, 200)))
    return chance.choice(
        (
            data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :],
            data[:at] + chance.choice(BYTES) + data[at:],
            data[:at] + data[end:],
            data[:end] + data[at:],
            data[:at],
            data[at:],
        )
    )


def _rows(data: bytes, chance: random.Random) -> bytes:
    """Leave out, double, cut, move or join lines."""
    rows = data.split(b"\n")
    at, other = chance.randrange(len(rows)), chance.randrange(len(rows))
    row = rows[at]
    new = chance.choice(
        ([], [row, row], [row[: chance.randrange(len(row) + 1)]], [rows[other]], [row + rows[other]])
    )
    return b"\n".join([*rows[:at], *new, *rows[at + 1 :]])


def _cells(data: bytes, chance: random.Random) -> bytes:
    """Put another value where a cell ends, or another separator everywhere."""
    places = [at for at, byte in enumerate(data) if byte in b',;"']
    if not places or chance.random() < 0.1:
        return data.replace(b",", chance.choice((b";", b"\t", b"|", b",,")))
    at, value = chance.choice(places), chance.choice(VALUES)
    text = value if isinstance(value, str) else repr(value)
    return data[: at + 1] + text.encode(errors="surrogatepass") + data[at + chance.randint(1, 8) :]


def _values(data: bytes, chance: random.Random) -> bytes:
    """Change the parsed value in one place, and write it again as it was: whole, or one object a line."""
    try:
        whole, value = True, json.loads(data)
    except ValueError:
        try:
            whole, value = False, [json.loads(line) for line in data.splitlines() if line.strip()]
        except ValueError:
            return _bytes(data, chance)
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


Way = Callable[[bytes, random.Random], bytes]
_JSON_WAYS: tuple[Way, ...] = (_values, _values, _values, _values, _bytes, _rows)
_TEXT_WAYS: tuple[Way, ...] = (_cells, _cells, _bytes, _rows)
