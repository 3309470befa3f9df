import hashlib
import json
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from core.diagnosis import Diagnosis
from core.errors import InputError, RunFormatError
from core.manifest import n_questions, read_manifest, wrong_entry
from core.run import RESULTS, Origin, Run, holds_run, marked_source, sole_writer
from core.saved_tables import SavedTables

RECORDED = Path(__file__).resolve().parents[2] / "sample_data" / "recorded_run"


@pytest.fixture
def run():
    return Run.create(
        {"source": "live", "notes": ["größer"]},
        queries=pd.DataFrame(
            {"query_id": ["a", "b"], "question": ["Où?", "哪里？"], "answer": ["", None], "reference_answers": [["x", "y"], None],
             "n_gold": [1, None]}
        ),
        passages=pd.DataFrame(
            {"query_id": ["a", "a"], "passage_id": ["1", "2"], "retrieval_rank": [1, 2], "is_gold": [True, None]}
        ),
    )  # fmt: skip


def assert_same(a, b):
    assert a.manifest == b.manifest
    for name in a:
        pd.testing.assert_frame_equal(a[name], b[name])


def test_a_saved_run_is_the_same_run(run, tmp_path):
    loaded = Run.load(run.save(tmp_path / "r"))
    assert loaded.run_id == run.run_id and loaded.queries["reference_answers"].tolist() == [["x", "y"], None]
    # Empty answer and no answer are different things and stay so.
    assert loaded.queries["answer"].fillna("missing").tolist() == ["", "missing"]
    assert_same(run, loaded)
    assert_same(loaded, Run.load(loaded.save(tmp_path / "again")))


def test_saving_over_a_run_replaces_it_and_leaves_no_litter(run, tmp_path):
    run.save(tmp_path / "r")
    other = run.derive(passages=run.passages.head(1))
    other.save(tmp_path / "r")
    assert_same(other, Run.load(tmp_path / "r"))
    assert other.manifest["parent"] == run.run_id != other.run_id
    # Of a table without rows there is no file.
    kinds = {path.name.partition("-")[0] for path in (tmp_path / "r").iterdir()}
    assert kinds == {"run.json", *(name for name in other if len(other[name]))} > {"queries"}
    assert len(list((tmp_path / "r").iterdir())) == len(kinds) < len(other.tables)


def test_a_run_survives_pickling(run):
    assert_same(run, pickle.loads(pickle.dumps(run)))


def test_the_same_content_has_the_same_id(run):
    again = Run.create({"source": "live"}, queries=run.queries, passages=run.passages)
    assert again.run_id == run.run_id and re.fullmatch("[0-9a-f]{12}", run.run_id)


@pytest.mark.parametrize(
    ("source", "mark", "data_source"),
    [
        ("live", "", "live"),
        ("upload", "", "upload"),
        ("simulation", "simulated", "simulated"),
        ("composed", "composed", "composed"),
    ],
)
def test_data_that_no_model_answered_bear_a_mark(run, source, mark, data_source):
    found = run.derive({"source": source})
    assert (found.mark, found.data_source, found.simulated) == (mark, data_source, source == "simulation")
    assert marked_source(mark) == (source if mark else "")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: (d / "run.json").unlink(), "it has no run.json"),
        (
            lambda d: (d / "run.json").unlink() or (d / "run.json").mkdir(),
            r"run\.json cannot be read: it is a folder\.$",
        ),
        (lambda d: (d / "run.json").write_text("{"), "cannot be read as JSON"),
        (lambda d: _edit(d, schema_version="1"), "schema version '1'; this program reads up to"),
        (lambda d: (d / "run.json").write_text("[]"), "names no tables"),
        (lambda d: _edit(d, schema_version=99), "schema version 99; this program reads up to"),
        (lambda d: next(d.glob("queries-*")).unlink(), "the file of table queries is missing"),
        (lambda d: next(d.glob("passages-*")).write_bytes(b"PAR1"), "is not the file that was saved"),
        (
            lambda d: _edit(d, tables={"queries": {"file": "../../etc/passwd", "sha256": ""}}),
            "outside the folder",
        ),
        (lambda d: _edit(d, tables={"queries": {"rows": 1}}), "table queries cannot be read"),
    ],
)
def test_a_damaged_folder_is_named_in_one_sentence(run, tmp_path, damage, message):
    folder = run.save(tmp_path / "r")
    damage(folder)
    with pytest.raises(RunFormatError, match=message):
        Run.load(folder)


def _edit(folder, **changes):
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_folder_with_other_things_is_never_overwritten(run, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        run.save(tmp_path)
    with pytest.raises(InputError, match="is a file"):
        run.save(tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize(
    ("manifest", "tables", "message"),
    [
        ({"source": "guess"}, {}, "source must be one of live, upload, simulation, composed, got 'guess'"),
        ({"source": "live"}, {"colours": pd.DataFrame()}, "no table 'colours'"),
        ({"source": "live"},
         {"passages": pd.DataFrame({"query_id": ["z"], "passage_id": ["1"], "retrieval_rank": [1]})},
         "question 'z' is not in the table queries"),
    ],
)  # fmt: skip
def test_what_is_no_run_is_refused(manifest, tables, message):
    with pytest.raises(InputError, match=message):
        Run.create(manifest, **tables)


def test_the_manifest_is_replaced_in_one_step(run, tmp_path, monkeypatch):
    folder = run.save(tmp_path / "r")
    before = (folder / "run.json").read_bytes()
    replace = os.replace

    def failing(source, target):
        if Path(target).name == "run.json":
            # The new one is written in full beside the old one, which nothing has touched.
            assert json.loads(Path(source).read_bytes())["name"] == "another"
            assert (folder / "run.json").read_bytes() == before
            raise OSError("No space left on device.")
        return replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(InputError, match="could not be saved"):
        run.renamed("another").save(folder)
    monkeypatch.undo()
    assert Run.load(folder).name == run.name
    assert not list(folder.glob("*.tmp")) and not list(folder.glob("run.json*.tmp"))


def test_a_full_disk_is_one_sentence_and_keeps_the_old_run(run, tmp_path):
    folder = run.save(tmp_path / "r")
    code = (
        "import sys, resource, signal, pandas as pd\n"
        "from core.run import Run\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "big = Run.create({'source': 'live'}, queries=pd.DataFrame({'query_id': [str(i) for i in range(50000)],"
        " 'question': [str(hash(i * 7919)) for i in range(50000)]}))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "try:\n    big.save(sys.argv[1])\nexcept Exception as e:\n    print(type(e).__name__, e)\n"
    )
    found = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
    assert found.stdout.startswith("InputError The run could not be saved to"), found.stdout + found.stderr
    assert_same(run, Run.load(folder))


def test_manifest_alone_can_be_read(run, tmp_path):
    manifest = read_manifest(run.save(tmp_path / "r"))
    assert manifest["run_id"] == run.run_id and manifest["tables"]["queries"]["rows"] == 2
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 20000 and os.path.isdir(tmp_path / "r")


_MANY_SAVES = """
import sys, pandas as pd
from core.run import Run
for i in range(15):
    Run.create({"source": "live", "name": sys.argv[2]}, queries=pd.DataFrame(
        {"query_id": [str(j) for j in range(200)], "question": [sys.argv[2] + str(i)] * 200})).save(sys.argv[1])
"""


def test_two_processes_that_save_to_one_folder_lose_nothing(run, tmp_path):
    folder = run.save(tmp_path / "r")
    command = [sys.executable, "-c", _MANY_SAVES, str(folder)]
    children = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in "ab"]
    while any(child.poll() is None for child in children):
        Run.load(folder)  # a reader meanwhile finds one whole run or another
    for child in children:
        assert child.communicate()[1] == "" and child.returncode == 0
    assert Run.load(folder).name in "ab" and len(list(folder.iterdir())) == 2


_KEEPER = """
import sys, time
from core.run import sole_writer
with sole_writer(sys.argv[1]):
    print("kept", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def keeper(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", _KEEPER, str(tmp_path / "r")], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "kept\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def test_a_kept_folder_is_refused_and_is_free_once_its_keeper_is_killed(run, tmp_path, keeper, monkeypatch):
    monkeypatch.setattr("core.run.PATIENCE", 0.1)
    for attempt in (lambda: sole_writer(tmp_path / "r").__enter__(), lambda: run.save(tmp_path / "r")):
        with pytest.raises(InputError, match="Another process or job is writing the run in"):
            attempt()
    keeper.send_signal(signal.SIGKILL)
    keeper.wait()
    with sole_writer(tmp_path / "r"):
        run.save(tmp_path / "r")
    assert_same(run, Run.load(tmp_path / "r"))


def test_a_kept_folder_takes_the_saves_of_its_process_and_no_second_keeper(run, tmp_path):
    with sole_writer(tmp_path / "r"):
        run.save(tmp_path / "r")
        with (
            pytest.raises(InputError, match="Another process or job"),
            sole_writer(tmp_path / "r"),
        ):
            pass
    with sole_writer(tmp_path / "new" / "r"):
        pass
    assert Run.load(tmp_path / "r").run_id == run.run_id and not (tmp_path / "new" / "r").exists()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("reference_answers", 5, "row 1, column reference_answers: '5' is no list"),
        ("reference_answers", {"a": 1}, "is no list"),
        ("n_gold", "many", "'many' is not of type int"),
        ("latency", pd.Timestamp("2026-01-01"), "is not of type float"),
        ("colour", "red", "no column 'colour'"),
    ],
)
def test_a_table_of_wrong_types_with_the_right_hash_is_one_sentence(run, tmp_path, column, value, message):
    folder = run.save(tmp_path / "r")
    frame = pd.DataFrame({"query_id": ["a"], "question": ["Who?"], column: [value]})
    content = frame.to_parquet(None, index=False)
    (folder / "q.parquet").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    entry = {"file": "q.parquet", "sha256": digest, "rows": 1}
    _edit(folder, tables={"queries": entry})
    with pytest.raises(RunFormatError, match=message):
        Run.load(folder)
    _edit(folder, tables={"queries": {**entry, "rows": 2}})
    with pytest.raises(RunFormatError, match="has 1 rows, not 2"):
        Run.load(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, "half \ud800", {"a"}, [object()]])
def test_whatever_a_manifest_holds_can_be_read_again(run, tmp_path, value):
    folder = run.derive({"options": {"odd": value}}).save(tmp_path / "r")
    assert "odd" in Run.load(folder).manifest["options"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"steps": {"influence": {"options": None}}}, "steps.influence.options must be an object, got None"),
        (
            {"steps": {"losses": {"own_arms": {"mine": 5}}}},
            "steps.losses.own_arms.mine must be a list, got 5",
        ),
        ({"steps": {"uncertainty": {"samples": "ten"}}}, "steps.uncertainty.samples must be a whole number"),
        ({"steps": {"claims": {"decomposition": [0]}}}, "steps.claims.decomposition must be a text"),
        ({"dataset": {"rows": "many"}}, "dataset.rows must be a whole number, got 'many'"),
        (
            {"planted": {"influence": {"mean_rho": "x"}}},
            "planted.influence.mean_rho must be a number, got 'x'",
        ),
        ({"cost": {"calls": 10**300}}, "cost.calls must be a number, got 1000"),
    ],
)
def test_an_entry_that_an_analysis_or_a_page_reads_has_its_type(run, tmp_path, entry, said):
    folder = run.save(tmp_path / "r")
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, **entry}))
    with pytest.raises(RunFormatError, match=said):
        Run.load(folder)


@pytest.mark.parametrize("questions", [-5, 0, 1, 2])
def test_a_sample_of_no_more_questions_than_it_has_is_no_sample(run, questions):
    assert run.derive({"sample": {"of": "whole", "questions": questions}}).sampling_error == 0


def test_a_sample_without_questions_has_no_sampling_error(run):
    sample = {"sample": {"of": "whole", "questions": 5}}
    assert run.derive(sample, queries=run.queries[:0], passages=run.passages[:0]).sampling_error == 0


def test_a_folder_that_cannot_be_looked_into_is_told_why(run, tmp_path, monkeypatch):
    def refused(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    with monkeypatch.context() as patch, pytest.raises(InputError) as raised:
        patch.setattr("core.run.os.listdir", refused)
        run.save(tmp_path)
    assert str(raised.value) == f"The folder {tmp_path} cannot be used: Permission denied."


def test_a_planted_number_of_another_kind_than_was_found_is_not_recovered():
    planted = {"influence": {"mean_rho": {"x": 1.0}, "undefined_reasons": 0.5}}
    found = Diagnosis(Run.load(RECORDED).derive({"planted": planted})).recovered("influence")
    assert found["recovered"][found["check"].str.endswith(": x")].tolist() == [0]
    assert found["recovered"][found["planted"] == 0.5].isna().tolist() == [True]


def test_an_arm_without_a_title_is_none():
    steps = {"losses": {"own_arms": {"mine": []}}}
    assert "mine" not in Diagnosis(Run.load(RECORDED).derive({"steps": steps}))["losses"].titles


def test_a_note_of_what_was_checked_that_is_nested_deeply_is_not_believed(tmp_path):
    folder = shutil.copytree(RECORDED, tmp_path / "r")
    (folder / RESULTS).mkdir(exist_ok=True)
    (folder / RESULTS / "checked.json").write_text("[" * 200_000)
    assert len(Run.open(folder).queries)


@pytest.mark.parametrize(("size", "said"), [(10**7, "cannot be read as JSON"), (10**7 + 1, "limit of 10 MB")])
def test_a_manifest_is_read_up_to_ten_megabytes(tmp_path, size, said):
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(size)
    with pytest.raises(RunFormatError, match=said):
        Run.load(tmp_path)


def test_a_table_is_read_up_to_four_gigabytes(tmp_path):
    entries = {"queries": {"file": "large.parquet", "sha256": ""}}
    with (tmp_path / "large.parquet").open("wb") as file:  # with nothing in it
        file.truncate(4 * 10**9)
        SavedTables(tmp_path, entries)
        file.truncate(4 * 10**9 + 1)
        with pytest.raises(
            RunFormatError, match=r"queries cannot be read .*larger than the limit of 4,000 MB"
        ):
            SavedTables(tmp_path, entries)


def test_texts_of_a_large_table_are_one_piece_after_reading(tmp_path):
    ids = pd.Series([f"q{i}" for i in range(140_000)], dtype="str")
    run = Run.create({"source": "upload"}, queries=pd.DataFrame({"query_id": ids, "question": ids}))
    run.save(tmp_path / "run")
    pieces = pa.array(Run.load(tmp_path / "run").queries["question"])
    assert not isinstance(pieces, pa.ChunkedArray) or pieces.num_chunks == 1
    assert pieces.to_pylist() == ids.to_list()


@pytest.mark.parametrize(
    ("manifest", "wrong"),
    [
        ({"cost": {"calls": 2**63 - 1}, "sample": {"questions": 1 - 2**63}}, None),
        ({"cost": {"calls": 2**63}}, "cost.calls must be a number, got 9223372036854775808"),
        ({"cost": {"calls": -(2**63)}}, "cost.calls must be a number, got -9223372036854775808"),
        ({"cost": {"calls": None}, "model": None, "dataset": None, "cost_of": 1}, None),
        ({"cost": {"calls": True}}, "cost.calls must be a number, got True"),
        ({"sample": {"questions": True}}, "sample.questions must be a whole number, got True"),
        ({"sample": {"questions": 1.0}}, "sample.questions must be a whole number, got 1.0"),
        ({"sample": None}, "sample must be an object, got None"),
        ({"complete": True}, None),
        ({"complete": 1}, "complete must be true or false, got 1"),
        ({"notes": ["a", 1]}, "notes must be a text, got 1"),
        ({"name": None}, "name must be a text, got None"),
    ],
)
def test_an_entry_of_a_manifest_has_its_type(manifest, wrong):
    assert wrong_entry(manifest) == wrong


def test_a_manifest_that_says_nothing_of_its_questions_has_none():
    assert n_questions({"tables": {}}) == n_questions({"tables": {"queries": {}}}) == 0


def test_a_run_is_where_a_manifest_is_readable_or_not(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    assert not any(holds_run(place) for place in (tmp_path, tmp_path / "file", tmp_path / "none", "a\0b"))
    assert holds_run(tmp_path / "loop")  # which nobody can look into
    (tmp_path / "run.json").symlink_to("gone")
    assert holds_run(tmp_path)


def test_a_save_takes_what_a_killed_one_left_and_spares_what_somebody_put_there(run, tmp_path):
    for name in ("queries-1.parquet", "x.tmp"):
        (tmp_path / name).touch()
    run.save(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    run.save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"notes.txt", "run.json"} < names and not {"queries-1.parquet", "x.tmp"} & names
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert len(names) == 2 + sum(len(run[name]) > 0 for name in run)


def test_what_a_manifest_lacks_is_filled_in_and_what_it_says_stays(run):
    found = Run.create({"source": "live"}, queries=run.queries)
    assert found.manifest["complete"] is True and found.name == f"live {found.run_id}"
    given = {"source": "live", "run_id": "r", "name": "Mine", "created": "then", "complete": False}
    assert given.items() <= Run.create(given, queries=run.queries).manifest.items()


def test_where_a_run_was_read_is_no_part_of_it(run, tmp_path):
    read = replace(run, origin=Origin(tmp_path, "digest"))
    assert read == run and repr(read) == repr(run)
    assert "größer" in repr(run) and "Où?" not in repr(run)


def test_what_a_saved_table_holds_is_known_without_reading_it(run, tmp_path):
    folder = run.save(tmp_path / "r")
    entries = read_manifest(folder)["tables"]
    (folder / entries["passages"]["file"]).write_bytes(b"PAR1")
    none = Run.create({"source": "live"}).save(tmp_path / "none")
    assert [*read_manifest(none)["tables"]] == ["queries"] and Run.sample(none, 5).queries.empty
    tables = SavedTables(folder, {**entries, "of a later version": {"file": "x", "sha256": "y"}})
    columns = {
        ("answer",): True, ("kind",): False, ("kind", "answer"): True, ("unheard_of",): False,
        ("kind", "reference_answers"): None, ("answer", "reference_answers"): True,  # of lists nothing is known
    }  # fmt: skip
    assert {names: tables.has("queries", names) for names in columns} == columns
    assert (tables.n_rows("queries"), tables.n_rows("claims")) == (2, 0) and "claims" not in entries
    assert tables.has("claims", ["text"]) is False
    assert tables.n_rows("passages") is None is tables.has("passages", ["text"])  # damaged
    assert len(tables["queries"]) == 2 and tables.n_rows("queries") is None  # in memory now
    assert set(tables) == set(run.tables) and len(tables) == len(run.tables)


def test_a_run_that_is_written_all_the_time_is_given_up(tmp_path, monkeypatch):
    manifests = ({"tables": {"queries": {}}, "name": str(i)} for i in count())
    monkeypatch.setattr("core.run.read_manifest", lambda _: next(manifests))
    with pytest.raises(RunFormatError) as raised:
        Run.load(tmp_path)
    assert str(raised.value) == f"The run in {tmp_path} is being written again and again; try once more."
