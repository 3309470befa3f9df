"""Stores and metrics by name: what no name is, and what lies there already and is not ours."""

import sqlite3
from contextlib import closing

import pytest
from streamlit.testing.v1 import AppTest

from core.calibration.provenance import Provenance
from core.calibration.store import CalibrationStore
from core.errors import InputError
from core.validation.store import MetricsStore
from tests.app.conftest import HOSTILE, PAGES, ROOT
from tests.app.polling import button
from ui import files


@pytest.fixture
def folders(tmp_path):
    for name in (files.STORES, files.METRICS):
        (tmp_path / "runs" / name).mkdir(parents=True)
    return tmp_path / "runs"


def database(path, *statements):
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def old_store(path):
    """A store as rag_uq documents it."""
    database(
        path,
        "CREATE TABLE calibration_scores (id INTEGER PRIMARY KEY, query_hash TEXT UNIQUE, question TEXT, context TEXT, "
        "prediction TEXT, true_answer TEXT, nonconformity_score REAL, timestamp DATETIME)",
        "INSERT INTO calibration_scores VALUES (1, 'h', 'q', 'c', 'p', 't', 0.5, '2024-01-01')",
    )


@pytest.mark.parametrize(
    "name",
    [
        "../up",
        "a/b",
        "/etc/passwd",
        "a\\b",
        "nul\0",
        ".hidden",
        "..",
        "-x",
        "",
        "n" * 65,
        "ü",
        "a b",
        HOSTILE,
    ],
)
def test_what_is_no_name_is_refused(name, folders):
    with pytest.raises(InputError, match="A name has 1 to 64 letters"):
        files.path_of(files.STORES, name)


@pytest.mark.parametrize("name", ["calibration", "n" * 64, "a.b_c-d", "a..b"])
def test_a_name_is_a_file_in_the_folder_of_its_kind(name, folders):
    for kind in (files.STORES, files.METRICS):
        assert files.path_of(kind, name) == folders / kind / f"{name}.db"
        assert not list((folders / kind).iterdir())


def test_stores_of_ours_are_offered_also_while_they_are_open(folders):
    with (
        CalibrationStore(folders / files.STORES / "one.db") as one,
        MetricsStore(folders / files.METRICS / "two.db"),
    ):
        one.add([], Provenance("s", "m", "p", "r"))
        assert files.path_of(files.STORES, "one") and files.path_of(files.METRICS, "two")
        # The one is not the other.
        (folders / files.METRICS / "one.db").symlink_to(folders / files.STORES / "one.db")
        with pytest.raises(InputError, match="is no metrics store"):
            files.path_of(files.METRICS, "one")


def odd_schema(path):
    """A file of which SQLite says what is wrong in words that are no text."""
    database(path, "CREATE TABLE theirs (a)")
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE TABL\xa2"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b""), "is no calibration store of this version, so it stays as it is"),
        (lambda path: path.write_bytes(b"not a database" * 400), "cannot be read as a calibration store"),
        (
            lambda path: path.write_bytes(b"SQLite format 3\0" + b"x" * 5000),
            "cannot be read as a calibration store",
        ),
        (lambda path: database(path, "CREATE TABLE theirs (a)"), "is no calibration store of this version"),
        (old_store, "convert a copy on the command line"),
        (odd_schema, "cannot be read as a calibration store"),
        (lambda path: path.mkdir(), "cannot be read as a calibration store"),
        (lambda path: path.symlink_to("/nowhere/at/all"), "cannot be read as a calibration store"),
    ],
)
def test_what_is_not_ours_is_refused_and_stays_as_it_is(make, said, folders, open_app, healthy, recorded):
    path = folders / files.STORES / "mine.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InputError, match=said):
        files.path_of(files.STORES, "mine")
    app = open_app("conformal")
    app.session_state["conformal_file"] = "mine"
    app = healthy(app.run())
    assert [one for one in app.error if said.split(",")[0] in one.value.replace("\\", "")]
    assert [one.name for one in path.parent.iterdir()] == ["mine.db"]
    assert before is None or path.read_bytes() == before


@pytest.mark.parametrize("key", ["validation_file", "validation_metrics", "conformal_file"])
def test_the_fields_of_a_page_take_no_path(key, folders, healthy, recorded, tmp_path):
    page = "validation" if key.startswith("validation") else "conformal"

    def with_name(name):
        app = AppTest.from_file(str(ROOT / "dashboard.py"), default_timeout=240)
        app.switch_page(PAGES[page])
        app.session_state[key] = name
        return healthy(app.run())

    app = with_name(str(tmp_path / "elsewhere"))
    assert any("A name has 1 to 64" in one.value for one in app.error)
    assert key != "validation_metrics" or button(app, "Validate answers").disabled
    app = with_name("ours")
    assert not app.error and not list(folders.glob("*/*"))
    assert key != "validation_metrics" or not button(app, "Validate answers").disabled
