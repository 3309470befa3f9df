import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from core.errors import InputError, RunFormatError
from core.run import Run, read_manifest


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
    assert len(list((tmp_path / "r").iterdir())) == 1 + len(run.tables)


def test_a_run_survives_pickling(run):
    assert_same(run, pickle.loads(pickle.dumps(run)))


def test_the_same_content_has_the_same_id(run):
    again = Run.create({"source": "live"}, queries=run.queries, passages=run.passages)
    assert again.run_id == run.run_id


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: (d / "run.json").unlink(), "it has no run.json"),
        (lambda d: (d / "run.json").write_text("{"), "cannot be read as JSON"),
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
        ({"source": "guess"}, {}, "source must be one of live, upload, simulation, got 'guess'"),
        ({"source": "live"}, {"colours": pd.DataFrame()}, "no table 'colours'"),
        ({"source": "live"},
         {"passages": pd.DataFrame({"query_id": ["z"], "passage_id": ["1"], "retrieval_rank": [1]})},
         "question 'z' is not in the table queries"),
    ],
)  # fmt: skip
def test_what_is_no_run_is_refused(manifest, tables, message):
    with pytest.raises(InputError, match=message):
        Run.create(manifest, **tables)


_SAVER = """
import sys, pandas as pd
from core.run import Run
runs = [Run.create({"source": "live", "name": str(i)}, queries=pd.DataFrame(
    {"query_id": [str(j) for j in range(2000)], "question": [str(i)] * 2000})) for i in (1, 2)]
runs[0].save(sys.argv[1]); print("ready", flush=True)
while True:
    for r in runs: r.save(sys.argv[1])
"""


@pytest.mark.parametrize("moment", [0.0, 0.013, 0.031, 0.057, 0.09])
def test_a_kill_while_saving_leaves_one_whole_run(tmp_path, moment):
    folder = tmp_path / "r"
    child = subprocess.Popen([sys.executable, "-c", _SAVER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(moment)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    loaded = Run.load(folder)
    assert set(loaded.queries["question"]) == {loaded.name}


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
