import io
import json
import os
import pickle
import shutil
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import InputError
from core.sources import content, encoding, unpack
from core.sources.content import read_content
from core.sources.dataset import load_dataset, read_dataset
from core.sources.formats import import_file
from core.text.strict import MAX_DEPTH

RAGAS = {"user_input": ["q1", "q2"], "retrieved_contexts": [["c", "d"], ["e"]], "response": ["a", "b"]}
OWN = {"question": ["q1", "q2"], "passages": [["c", "d"], ["e"]], "answers": [["x"], []]}


@pytest.fixture(autouse=True)
def _quiet():
    datasets.disable_progress_bars()


def parquet(columns, **options):
    sink = io.BytesIO()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), sink, **options)
    return sink.getvalue()


def stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def saved(folder, columns=None, **options):
    datasets.Dataset.from_dict(columns or RAGAS).save_to_disk(folder, **options)
    return folder


def test_a_parquet_file_is_read_like_the_same_records_as_json():
    rows = [dict(zip(RAGAS, values, strict=True)) for values in zip(*RAGAS.values(), strict=True)]
    a, b = (import_file(d, "x").run for d in (parquet(RAGAS), json.dumps(rows).encode()))
    assert a.queries.equals(b.queries) and a.passages.equals(b.passages)
    assert a.manifest["dataset"]["format"] == "ragas"
    dataset = read_dataset(parquet(OWN), "x.parquet")
    assert [[p.text for p in q.passages] for q in dataset.questions] == [["c", "d"], ["e"]]


@pytest.mark.parametrize("shards", [1, 2])
def test_a_saved_data_set_is_read_from_its_folder(tmp_path, shards):
    folder = saved(tmp_path / "set", num_shards=shards)
    run = import_file(folder).run
    assert run.queries["question"].to_list() == ["q1", "q2"] and run.name == "set"
    assert import_file(folder).run.run_id == run.run_id
    dataset = load_dataset(saved(tmp_path / "own", OWN))
    assert [q.reference_answers for q in dataset.questions] == [("x",), ()] and dataset.name == "own"


def test_a_selection_is_saved_as_its_rows(tmp_path):
    datasets.Dataset.from_dict(RAGAS).select([1]).save_to_disk(tmp_path / "one")
    assert import_file(tmp_path / "one").run.queries["question"].to_list() == ["q2"]


def test_a_single_arrow_file_is_read_too(tmp_path):
    folder = saved(tmp_path / "set")
    assert len(import_file((folder / "data-00000-of-00001.arrow").read_bytes(), "x.arrow").run.queries) == 2
    sink = pa.BufferOutputStream()
    table = pa.table(RAGAS)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert len(import_file(sink.getvalue().to_pybytes(), "x.feather").run.queries) == 2


def test_of_several_splits_one_must_be_named(tmp_path):
    one = datasets.Dataset.from_dict(RAGAS)
    datasets.DatasetDict({"train": one, "test": one}).save_to_disk(tmp_path / "two")
    with pytest.raises(InputError, match=r"holds 2 splits \(train, test\); give one of them: .*two.train"):
        import_file(tmp_path / "two")
    assert len(import_file(tmp_path / "two" / "test").run.queries) == 2
    datasets.DatasetDict({"test": one}).save_to_disk(tmp_path / "single")
    assert len(import_file(tmp_path / "single").run.queries) == 2


@pytest.mark.parametrize(
    "name", ["../outside.arrow", "/etc/passwd", "sub/x.arrow", "link.arrow", "a\0b", ".."]
)
def test_a_folder_reads_nothing_outside_itself(tmp_path, name):
    folder = saved(tmp_path / "set")
    shutil.copy(folder / "data-00000-of-00001.arrow", tmp_path / "outside.arrow")
    os.symlink(tmp_path / "outside.arrow", folder / "link.arrow")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    with pytest.raises(InputError, match="expected a file in the folder itself"):
        import_file(folder)


@pytest.mark.parametrize(
    "state", ["{", "[]", "{}", '{"_data_files": 5}', '{"_data_files": [{"filename": 5}]}', "[" * 100_000]
)
def test_a_damaged_state_is_one_sentence(tmp_path, state):
    folder = saved(tmp_path / "set")
    (folder / "state.json").write_text(state)
    with pytest.raises(InputError, match="save_to_disk"):
        import_file(folder)


def test_an_index_of_rows_is_refused_since_all_rows_would_be_read(tmp_path):
    folder = saved(tmp_path / "set")
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "_indices_data_files": [{"filename": "i"}]}))
    with pytest.raises(InputError, match="flatten_indices"):
        import_file(folder)


def test_a_data_file_that_is_none_or_missing_is_one_sentence(tmp_path):
    folder = saved(tmp_path / "set")
    (folder / "data-00000-of-00001.arrow").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match="is no Arrow stream"):
        import_file(folder)
    (folder / "data-00000-of-00001.arrow").unlink()
    with pytest.raises(InputError, match="There is no file"):
        import_file(folder)


@pytest.mark.parametrize("whole", [parquet(RAGAS), stream(pa.table(RAGAS))], ids=["parquet", "arrow"])
def test_a_broken_file_is_one_sentence(whole):
    for data in (whole[:4], whole[:-20], whole[: len(whole) // 2], whole[:4] + bytes(200)):
        with pytest.raises(InputError, match=r"cannot be read as|without rows"):
            import_file(data, "x")


def test_flipped_bytes_never_raise_anything_else():
    for whole in (parquet(RAGAS), parquet(RAGAS, compression="none"), stream(pa.table(RAGAS))):
        for place in range(4, len(whole), 37):
            damaged = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
            lines = list(unpack.lines_of(damaged))
            assert lines[-1][:1] in (unpack.ENDED, unpack.DAMAGED, unpack.TOO_LARGE)
            assert all(line[:1] in (unpack.GOOD, unpack.BAD) and "\n" not in line for line in lines[:-1])


def test_nested_and_unusual_types_become_what_json_has():
    table = pa.table(
        {
            "struct": pa.array([{"a": [{"b": 1}]}]),
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "time": pa.array([datetime(2024, 1, 2, tzinfo=UTC)], pa.timestamp("ns", "UTC")),
            "date": [date(2024, 1, 2)],
            "took": [timedelta(seconds=2)],
            "cost": [Decimal("1.5")],
            "text": [b"plain"],
            "image": [b"\x89\xff"],
            "nan": [float("nan")],
            "half": pa.array([1.5], pa.float16()),
        }
    )
    read = read_content(parquet(table), "x")
    assert read.value == [
        {
            "struct": {"a": [{"b": 1}]},
            "map": [["k", 1]],
            "time": "2024-01-02T00:00:00+00:00",
            "date": "2024-01-02",
            "took": 2.0,
            "cost": 1.5,
            "text": "plain",
            "image": None,
            "nan": None,
            "half": 1.5,
        }
    ]
    assert read.notes == (
        "Numbers that are not finite (NaN …) were read as missing: 1.",
        "Values that are no text, number, time or list were read as missing: 1.",
    )


def test_a_cell_that_cannot_be_read_costs_its_row_only():
    texts = pa.array([b"good", b"\xff\xfe", b"fine"]).view(pa.string())
    read = read_content(parquet(pa.table({"question": texts})), "x")
    assert [n for n, _ in read.entries] == [1, 3] and "utf-8" in read.bad[0].expected
    with pytest.raises(InputError, match="cannot be read as Arrow data"):
        read_content(stream(pa.table({"question": texts})), "x")


def test_a_date_beyond_the_calendar_costs_its_row_only():
    times = pa.array([0, 2**60, 1], pa.timestamp("ms"))
    read = read_content(parquet(pa.table({"question": ["a", "b", "c"], "at": times})), "x")
    assert [number for number, _ in read.entries] == [1, 3] and read.bad[0].number == 2


class Trap(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.list_(pa.string()), "leadline.trap")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        raise AssertionError("a type from a file was made")


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


def test_extension_types_are_read_as_their_storage_and_never_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    field = pa.field(
        "retrieved_contexts",
        pa.list_(pa.string()),
        metadata={
            "ARROW:extension:name": "arrow.py_extension_type",
            "ARROW:extension:metadata": pickle.dumps(Bomb()),
        },
    )
    schema = pa.schema([pa.field("user_input", pa.string()), field, pa.field("response", pa.string())])
    table = pa.table(list(RAGAS.values()), schema=schema)
    for data in (stream(table), parquet(table)):
        run = import_file(data, "x").run
        assert run.passages["text"].to_list() == ["c", "d", "e"]
    assert not (tmp_path / "unpickled").exists()
    trapped = pa.ExtensionArray.from_storage(Trap(), pa.array(RAGAS["retrieved_contexts"]))
    data = stream(pa.table({**RAGAS, "retrieved_contexts": trapped}))
    assert import_file(data, "x").run.passages["text"].to_list() == ["c", "d", "e"]


def test_the_arrays_of_the_library_are_read_as_lists(tmp_path):
    features = datasets.Features(
        {"question": datasets.Value("string"), "emb": datasets.Array2D((2, 2), "float32"), "answer": datasets.Value("string")}
    )  # fmt: skip
    rows = {"question": ["q"], "emb": [[[1.0, 2.0], [3.0, 4.0]]], "answer": ["a"]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "set")
    read = read_content(tmp_path / "set", "set")
    assert read.value == [{"question": "q", "emb": [[1.0, 2.0], [3.0, 4.0]], "answer": "a"}]


def test_a_small_file_that_unpacks_to_very_much_is_stopped(monkeypatch):
    monkeypatch.setattr(encoding, "MAX_BYTES", 1_000_000)
    data = parquet({"question": ["x" * 20_000] * 2_000})
    assert len(data) < 100_000
    with pytest.raises(InputError, match="unpacked"):
        read_content(data, "x")
    with pytest.raises(InputError, match="unpacked"):
        read_content(parquet({"question": [str(i) * 2_000 for i in range(1_000)]}), "x")


def test_rows_values_and_depth_are_limited(monkeypatch):
    kind = pa.int64()
    for _ in range(MAX_DEPTH + 1):
        kind = pa.list_(kind)
    with pytest.raises(InputError, match="deeply nested"):
        read_content(parquet(pa.table({"question": pa.array([None], kind)})), "x")
    monkeypatch.setattr(content, "MAX_ENTRIES", 3)
    with pytest.raises(InputError, match="the limit is 3"):
        read_content(parquet({"question": ["q"] * 4}), "x")
    monkeypatch.setattr(content, "MAX_VALUES", 3)
    with pytest.raises(InputError, match="JSON values"):
        read_content(parquet({"question": [[1, 2, 3, 4]]}), "x")
    with pytest.raises(InputError, match="without rows"):
        read_content(parquet({"question": pa.array([], pa.string())}), "x")


MIXED = {"question": ["q1", "q2"], "image": [b"\xff", b"text"]}


@pytest.mark.parametrize(
    "write", [parquet, lambda columns: stream(pa.table(columns))], ids=["parquet", "arrow"]
)
def test_a_line_counts_what_json_cannot_hold(write):
    assert list(unpack.lines_of(write(MIXED))) == [
        '+1\t{"question": "q1", "image": null}',
        '+0\t{"question": "q2", "image": "text"}',
        ".",
    ]


def arrow_file(table, rows):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue().to_pybytes()


def test_the_rows_of_all_batches_follow_each_other():
    table = pa.table({"a": range(150)})
    rows = [f'+0\t{{"a": {n}}}' for n in range(150)]
    for data in (parquet(table), stream(table), arrow_file(table, 100), arrow_file(table, 64)):
        assert list(unpack.lines_of(data)) == [*rows, "."]
    assert list(unpack.lines_of(stream(table) * 2)) == [*rows, *rows, "."]
    other = list(unpack.lines_of(stream(table) + stream(pa.table({"b": [1]}))))
    assert other == [*rows, "!its parts have different columns"]


def test_a_text_that_is_none_costs_a_row_of_parquet_and_the_rest_of_arrow():
    table = pa.table({"a": pa.array([b"good", b"\xff\xfe", b"fine"]).view(pa.string())})
    assert [line[0] for line in unpack.lines_of(parquet(table))] == ["+", "-", "+", "."]
    (line,) = unpack.lines_of(stream(table))
    assert line.startswith("!") and "Invalid UTF8" in line


def test_memory_that_runs_out_ends_the_rows(monkeypatch):
    class Large:
        num_rows = 1

        def to_pylist(self):
            raise MemoryError

    monkeypatch.setattr(unpack, "_parquet", lambda data: [pa.record_batch({"a": [1]}), Large()])
    assert list(unpack.lines_of(b"PAR1")) == ['+0\t{"a": 1}', "*"]


def test_a_row_that_json_cannot_hold_is_named():
    circle = []
    circle.append(circle)
    assert unpack._row({"a": circle}) == "-Circular reference detected"
    assert unpack._row({(1, 2): 3}).startswith("-keys must be str")
    for _ in range(100_000):
        circle = [circle]
    assert unpack._row({"a": circle}).startswith("-")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (b"text", "text"), (b"a\0b", None), (b"\xff", None), (timedelta(minutes=1, milliseconds=500), 60.5),
        (Decimal("NaN"), None), (Decimal("Infinity"), None), (Decimal("-0.5"), -0.5),
        (date(2024, 1, 2), "2024-01-02"), (np.float16(1.5), 1.5), (object(), None),
    ],
)  # fmt: skip
def test_values_beyond_json(value, plain):
    assert unpack._plain(value) == plain


@pytest.mark.parametrize(
    ("error", "line"),
    [(ValueError(" a  b\nc"), "a b"), (ValueError(), "ValueError"), (KeyError("a"), "'a'")],
)
def test_an_error_is_told_in_one_line(error, line):
    assert unpack._line(error) == line


def test_the_process_limits_its_memory_and_time(monkeypatch):
    resource = pytest.importorskip("resource")  # not on every system
    limits, out = [], io.BytesIO()
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: limits.append((kind, both)))
    monkeypatch.setattr(sys, "argv", ["unpack.py", "5"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(parquet({"a": ["é"]}))))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    unpack.main()
    assert out.getvalue().decode() == '+0\t{"a": "é"}\n.\n'
    assert limits == [(resource.RLIMIT_AS, (5, 5)), (resource.RLIMIT_CPU, (600, 600))]
