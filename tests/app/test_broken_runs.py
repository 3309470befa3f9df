"""A runs folder full of broken runs: every page stays up, and the list says what is wrong with each."""

import json
import os
import shutil

import pytest

from core.errors import InputError
from core.run import sole_writer
from tests.app.conftest import PAGES, make_run
from ui import library


def edited(folder, **changes):
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def step(**facts):
    return {"steps": {"influence": facts}}


# Name of the folder -> what is done to a good run in it, and what the list says; None where it opens.
BROKEN = {
    "nested": (lambda d: (d / "run.json").write_text("[" * 200_000), "nested too deeply"),
    "infinite": (
        lambda d: (d / "run.json").write_text(
            (d / "run.json").read_text().replace('"rows": 4', '"rows": Infinity')
        ),
        "Infinity is not JSON",
    ),
    "twice": (lambda d: (d / "run.json").write_text('{"a": 1, "a": 2}'), "comes twice"),
    "binary": (lambda d: (d / "run.json").write_bytes(b"\xff\xfe\x00"), "cannot be read as JSON"),
    "empty": (lambda d: (d / "run.json").write_text(""), "cannot be read as JSON"),
    "a number": (lambda d: (d / "run.json").write_text("5"), "names no tables"),
    "steps": (lambda d: edited(d, steps=[]), "steps must be an object, got []"),
    "steps null": (lambda d: edited(d, steps=None), "steps must be an object, got None"),
    "name": (lambda d: edited(d, name=["x"]), "name must be a text"),
    "id": (lambda d: edited(d, run_id=5), "run_id must be a text, got 5"),
    "complete": (lambda d: edited(d, complete="yes"), "complete must be true or false"),
    "rows": (lambda d: edited(d, tables={"queries": {"rows": "4"}}), "tables.queries.rows must be a whole"),
    "done": (lambda d: edited(d, **step(n_done="4")), "steps.influence.n_done must be a whole number"),
    "notes": (lambda d: edited(d, notes=[1]), "notes must be a text, got 1"),
    "cost": (lambda d: edited(d, cost={"calls": "many"}), "cost.calls must be a number"),
    "newer": (lambda d: edited(d, schema_version=99), "schema version 99"),
    "huge": (lambda d: os.truncate(d / "run.json", 10**12), "larger than the limit"),
    "pipe": (lambda d: ((d / "run.json").unlink(), os.mkfifo(d / "run.json")), "it is a pipe"),
    "folder": (lambda d: ((d / "run.json").unlink(), (d / "run.json").mkdir()), "it is a folder"),
    "link": (
        lambda d: ((d / "run.json").unlink(), (d / "run.json").symlink_to("run.json")),
        "Too many levels of symbolic links",
    ),
    "device": (
        lambda d: ((d / "run.json").unlink(), (d / "run.json").symlink_to("/dev/zero")),
        "it is a device",
    ),
    "loop": (lambda d: (shutil.rmtree(d), d.symlink_to(d.name)), "Too many levels of symbolic links"),
    "tables": (lambda d: next(d.glob("passages-*")).write_bytes(b"PAR1"), None),
}


def broken_in(runs):
    """Fill a folder with one good run, all the broken ones, and what is no run."""
    good = make_run("The good one").derive({"run_id": "good"}).save(runs / "good")
    for name, (harm, _) in BROKEN.items():
        shutil.copytree(good, runs / name)
        edited(runs / name, run_id=name)
        harm(runs / name)
    os.mkfifo(runs / "a pipe")
    (runs / "a file").write_text("x")
    (runs / "a folder").mkdir()
    return runs


@pytest.fixture
def broken_runs(tmp_path):
    return broken_in(tmp_path / "runs")


@pytest.fixture(scope="module")
def broken_to_look_at(tmp_path_factory):
    return broken_in(tmp_path_factory.mktemp("broken") / "runs")


def test_the_list_says_what_is_wrong_with_each_run(broken_runs, open_app, texts, healthy):
    listed = {one.folder.name: one.problem for one in library.unreadable()}
    assert listed.keys() == {name for name, (_, said) in BROKEN.items() if said is not None}
    for name, (_, said) in BROKEN.items():
        assert said is None or said in listed[name], (name, listed[name])
        assert "\n" not in listed.get(name, "")
    assert {one.folder.name for one in library.saved_runs()} == {"good", "tables"}
    said = texts(healthy(open_app("data", door="Saved runs")))
    assert "The good one" in said and "unreadable" in said and "it is a pipe" in said.replace("\\", "")


def test_every_page_stays_up(broken_to_look_at, recorded, open_app, texts, healthy, monkeypatch):
    monkeypatch.setenv("LEADLINE_RUNS", str(broken_to_look_at))
    for page in PAGES:
        assert "The recorded run" in texts(healthy(open_app(page))), page
        # A run whose tables are damaged is told in one sentence.
        assert "is not the file that was saved" in texts(healthy(open_app(page, run="tables"))), page


def test_a_broken_sample_or_a_namesake_of_it_breaks_no_page(recorded, tmp_path, open_app, texts, healthy):
    namesake = recorded.derive({"run_id": recorded.run_id, "name": "Namesake"}).save(tmp_path / "runs" / "n")
    next(namesake.glob("queries-*")).unlink()
    assert "The recorded run" in texts(healthy(open_app()))
    next((tmp_path / "samples" / "recorded_run").glob("queries-*")).unlink()
    assert "table queries is missing" in texts(healthy(open_app()))


def test_an_unreadable_run_can_be_deleted(broken_runs, open_app, healthy):
    app = open_app("data", door="Saved runs")
    found = [one.folder.name for one in library.unreadable()]
    keys = [button.key for button in app.button if button.key and button.key.startswith("delete_")]
    for key in reversed(keys[-len(found) :]):
        healthy(app.button(key=key).click().run())
    assert library.unreadable() == []
    assert {p.name for p in broken_runs.iterdir()} == {"a pipe", "a file", "a folder", "good", "tables"}


def test_a_run_that_is_being_written_is_neither_renamed_nor_deleted(small_run):
    folder = library.save(small_run)
    saved = library.find(small_run.run_id)
    with sole_writer(folder):
        for change in (lambda: library.rename(saved, "other"), lambda: library.delete(saved)):
            with pytest.raises(InputError, match="Another process or job is writing the run"):
                change()
        library.save(small_run)  # the job itself
    library.delete(saved)
    assert not folder.exists()
