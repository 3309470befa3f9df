"""What the tests of formats share: a file through a format, a run and a folder; damaged files."""

from __future__ import annotations

import copy
import csv
import io
import json

from hypothesis import strategies as st

from core.errors import InputError
from core.run import Run
from core.sources.content import read_content
from core.sources.formats import FORMATS, import_file
from core.sources.formats.records import records_of, run_of
from core.sources.report import IssueLog


def content_of(value, name="up.json"):
    """Return a JSON value (or bytes) as an uploaded file."""
    return read_content(value if isinstance(value, bytes) else json.dumps(value).encode(), name)


def lines(values):
    """Return values as JSON Lines."""
    return "\n".join(json.dumps(value) for value in values).encode()


def in_csv(rows, **options):
    """Return rows as a CSV of all their columns."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)), **options)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def loaded(data):
    """Return the records of a JSON list, or of JSON Lines."""
    return json.loads(data) if data.startswith(b"[") else [json.loads(line) for line in data.splitlines()]


def there_and_back(value, folder, name="x", **options):
    """Return what is imported of a file, and the records that its format writes of the saved run."""
    imported = import_file(value if isinstance(value, bytes) else json.dumps(value).encode(), name, **options)
    imported.run.save(folder / "run")
    file_format = FORMATS[imported.run.manifest["dataset"]["format"]]
    return imported, loaded(file_format.write(records_of(Run.load(folder / "run"))))


def read_as(file_format, value):
    """Return what a format reads in a JSON value or bytes, and the log."""
    log = IssueLog()
    return file_format.read(content_of(value), log), log


def through_a_folder(records, folder):
    """Return records as they come back from a run that was saved and loaded."""
    run_of(records, {"source": "upload"}).save(folder)
    return records_of(Run.load(folder))


def issues_of(log):
    """Return row, field and severity of everything noted."""
    return [(issue.row, issue.column, issue.severity) for issue in log.listed()]


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["", " ", "<b>x</b>", "=1+1", "\x00", "Entailment", "d1", "doc_0", "[1]", "null"])
)
VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


def _paths(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in inner:
        yield from _paths(entry, (*path, key))


@st.composite
def damaged(draw, example, most=4):
    """Draw an example in which some values are replaced, left out or doubled."""
    value = copy.deepcopy(example)
    for _ in range(draw(st.integers(1, most))):
        paths = [path for path in _paths(value) if path]
        if not paths:
            break
        *above, key = draw(st.sampled_from(paths))
        holder = value
        for step in above:
            holder = holder[step]
        what = draw(st.sampled_from(["replace", "replace", "leave out", "double"]))
        if what == "replace":
            holder[key] = draw(VALUES)
        elif what == "leave out":
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
    return value


def comes_back(read, written, entries):
    """Check that what was read of entries is written exactly as it stood, but for nulls at their top."""
    gone = {row for row, *_ in read.rejected}
    kept = [entry for row, entry in entries if row not in gone]
    assert written == [{name: v for name, v in entry.items() if v is not None} for entry in kept]


def holds_together(file_format, value, in_run=False):
    """Check what must be true of any file: nothing lost without a word, and a stable form.

    Every entry is kept or put aside with an error that names its row and a field; what is written of the
    records can be read, and writing that again changes nothing more. With ``in_run`` (slower), a run gives the
    records back as they are.
    """
    log = IssueLog()
    try:
        content = content_of(value)
        read = file_format.read(content, log)
    except InputError as error:
        assert str(error)
        return
    errors = [issue for issue in log.listed() if issue.severity == "error"]
    assert len(errors) == len(read.rejected)
    assert all(issue.row is not None and issue.column for issue in errors)
    assert len({record.record_id for record in read.records}) == len(read.records)
    if in_run:
        assert records_of(run_of(read.records, {"source": "upload"})) == list(read.records)
    if not read.records:
        return
    once, _ = read_as(file_format, file_format.write(read.records))
    assert len(once.records) == len(read.records)
    twice, _ = read_as(file_format, file_format.write(once.records))
    assert twice.records == once.records
    assert not twice.rejected
