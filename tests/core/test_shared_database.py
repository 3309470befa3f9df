"""The stores on a real PostgreSQL server and, with the same test, in files: nothing lost, whoever writes."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import pytest

from core import database
from core.calibration.saved import read_store
from core.calibration.store import exists
from core.conformal import CalibrationCase, CalibrationStore, Provenance, StoreError
from core.database import VARIABLE, Database, StoreWords, shared, version_table
from core.errors import InputError
from core.llm.cache import CacheError, CompletionCache, default_cache_path
from core.llm.types import Completion
from core.reviews import ChangedMeanwhile, Review, ReviewStore, read, read_all, write_all
from tests.core.shared_writers import RUN
from tests.servers.postgres import binaries, running

ROOT = Path(__file__).parents[2]
HOSTILE = "=1+1 \x00 \U0010ffff0 %s ? 大运河 <b>"
SEEN = Provenance("length", "M · 1", "short · 2", "bm25 · 3")
WORDS = StoreWords("diary", InputError, "burn it", "or buy another one")


@pytest.fixture(scope="module")
def server():
    programs = binaries()
    if programs is None:
        missing = "PostgreSQL is not installed: apt-get install postgresql"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with running(programs) as found:
        yield found


@pytest.fixture
def on_server(server, request, tmp_path, monkeypatch):
    """Let the stores be in an empty database of the server; its name."""
    opened, pool = [], database._pool.__wrapped__

    @cache
    def remembered(where):
        opened.append(pool(where))
        return opened[-1]

    monkeypatch.setattr(database, "_pool", remembered)
    name = f"db{abs(hash(request.node.nodeid))}"
    monkeypatch.setenv(VARIABLE, server.create(name))
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))
    yield name
    for one in opened:
        one.dispose()


@pytest.fixture(params=["file", "server"])
def stores(request, tmp_path, monkeypatch):
    """A runs folder whose stores are files or in a database."""
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))
    if request.param == "server":
        request.getfixturevalue("on_server")
    return tmp_path


def case(number, **values):
    given = {"question": f"Q{number}", "context": "C", "prediction": "P", "true_answer": "T"}
    return CalibrationCase(**{**given, "score": number / 10, "correct": True, **values})


def test_completions(stores):
    whole = Completion(HOSTILE, "stop", 12, 3, 0.1 + 0.2, (-0.5, -1.25))
    with CompletionCache(default_cache_path()) as cache:
        cache.put("a", whole, "m")
        cache.put("a", Completion("second", "stop", 1, 1, 0.1))
        for i in range(600):
            cache.put(f"k{i}", Completion(str(i), "stop", 1, 1, 0.0))
    with CompletionCache(default_cache_path()) as again:
        found = again.get_many(["a", "missing", *(f"k{i}" for i in range(600))])
        assert found.pop("a") == whole and len(again) == 601
        assert {key: one.text for key, one in found.items()} == {f"k{i}": str(i) for i in range(600)}


def test_reviews_of_two_people(stores):
    with ReviewStore(stores) as store:
        store.write(RUN, "Ada", {HOSTILE: Review("flagged", HOSTILE, correct=False)})
        store.write(RUN, "Ben", {HOSTILE: Review("reviewed", grounded=True)}, {HOSTILE: Review()})
        store.write("other", "Ada", {"q1": Review("flagged")})
        with pytest.raises(ChangedMeanwhile, match="flagged, incorrect with the note") as caught:
            store.write(
                RUN, "Ada", {HOSTILE: Review("reviewed"), "q2": Review("flagged")}, {HOSTILE: Review()}
            )
        assert caught.value.stored == Review("flagged", HOSTILE, correct=False)
        assert read(stores, RUN, "Ada") == {HOSTILE: Review("flagged", HOSTILE, correct=False)}
        store.write(RUN, "Ada", {HOSTILE: Review("reviewed")})
        assert store.of(RUN) == {
            "Ada": {HOSTILE: Review("reviewed")},
            "Ben": {HOSTILE: Review("reviewed", grounded=True)},
        }
        store.write(RUN, "Ben", {HOSTILE: Review()})
        assert list(store.of(RUN)) == ["Ada"]
        # A row for each decision; what is stored already is none.
        store.write(RUN, "Ben", {HOSTILE: Review()})
        rows = store._db.execute("SELECT person, status FROM reviews WHERE run_id = ? ORDER BY id", (RUN,))
        assert rows == [("Ada", "flagged"), ("Ben", "reviewed"), ("Ada", "reviewed"), ("Ben", "open")]
        store.delete(RUN)
        assert store.of(RUN) == {} and list(store.of("other")) == ["Ada"]


def test_calibration(stores):
    path = stores / "My store.db"
    assert not exists(path)
    with pytest.raises(InputError, match="no calibration store"):
        read_store(str(path))
    with CalibrationStore(path) as store:
        odd = case(1, question=HOSTILE, score=math.nan, correct=None, kind="who")
        assert store.add([odd, case(2), case(3)], SEEN, method="one") == 3
        assert store.add([case(2, score=9.0)], SEEN) == 0 and store.usable()["id"].tolist() == [2, 3]
        assert store.add([case(2, score=5.0)], SEEN, replace=True, method="two") == 0
        store.exclude([3], "wrong reference answer")
    with CalibrationStore(path, SEEN) as again:
        frame = again.frame()
        assert frame["question"].tolist() == [HOSTILE, "Q2", "Q3"] and again.method == "two"
        assert frame["nonconformity_score"].tolist()[1:] == [5.0, 0.3] and math.isnan(
            frame["nonconformity_score"][0]
        )
        assert frame["excluded"].tolist()[2] == "wrong reference answer" and again.has("Q3", "C")
        with pytest.raises(StoreError, match="cannot be compared"):
            again.add([case(4)], Provenance("length", "X", "short · 2", "bm25 · 3"))
        with pytest.raises(InputError, match="no row with the id 9"):
            again.exclude([2, 9], "typo")
        assert again.usable()["id"].tolist() == [2]
    assert exists(path)
    with CalibrationStore(stores / "other.db") as other:
        assert len(other) == 0


def started(stores, processes, writes):
    command = [sys.executable, "-m", "tests.core.shared_writers", str(stores), str(processes), str(writes)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_everything_is_stored(stores, processes, writes):
    names = [f"{p}-{i}" for p in range(processes) for i in range(writes // 2)]
    with CompletionCache(default_cache_path()) as cache:
        answers = cache.get_many(names)
        assert len(cache) == len(names)
    assert {name: one.text for name, one in answers.items()} == {
        name: name.replace("-", " ") for name in names
    }
    with ReviewStore(stores) as store:
        people = store.of(RUN)
        assert store._db.execute("SELECT count(*) FROM reviews") == [(len(names),)]
    notes = {one.note for found in people.values() for one in found.values()}
    assert sorted(people) == ["person 0", "person 1"] and notes == {name.replace("-", " ") for name in names}


@pytest.mark.parametrize(
    ("stores", "processes", "writes"), [("file", 8, 60), ("server", 16, 300)], indirect=["stores"]
)
def test_processes_that_start_and_write_at_once_lose_nothing(stores, processes, writes):
    said, errors = started(stores, processes, writes).communicate(timeout=240)
    assert not errors and len(said.splitlines()) == processes * writes
    check_everything_is_stored(stores, processes, writes)


def test_a_server_that_restarts_in_the_middle_costs_no_write(on_server, server, tmp_path):
    with started(tmp_path, 4, 300) as writers:
        before = []
        for mode in ("immediate", "fast"):
            before += [writers.stdout.readline() for _ in range(200)]
            # Who opens a store waits for a few seconds only, so all four have it open before the first restart.
            while len({line.partition("-")[0] for line in before if "reviewed" in line}) < 4:
                before.append(writers.stdout.readline())
            assert all(before)
            server.control("restart", "-m", mode)
        # `communicate` would lose what is buffered already.
        said, errors = writers.stdout.read(), writers.stderr.read()
    assert not errors, errors[-3000:]
    assert writers.returncode == 0 and len(before) + len(said.splitlines()) == 4 * 300
    check_everything_is_stored(tmp_path, 4, 300)


def test_a_connection_that_takes_too_long_is_tried_again(on_server, server, monkeypatch):
    monkeypatch.setattr(database, "_OPENING_SECONDS", 2.0)
    monkeypatch.setenv(VARIABLE, server.url(on_server))
    db = Database(shared(), WORDS, lambda db: db.execute("SELECT 1"))
    server.control("restart", "-m", "fast")
    postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGSTOP)
    later = threading.Timer(3.0, os.kill, (postmaster, signal.SIGCONT))
    later.start()
    assert db.execute("SELECT 1") == [(1,)]
    assert not later.is_alive()
    later.join()
    db.close()


def test_a_writer_that_is_killed_leaves_what_it_said_and_no_half(on_server, tmp_path):
    with started(tmp_path, 1, 100_000) as writer:
        said = [writer.stdout.readline() for _ in range(40)]
        children = Path(f"/proc/{writer.pid}/task/{writer.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        said += writer.stdout.read().splitlines()
        assert writer.wait(60) == signal.SIGKILL
    finished = {line.split()[0] for line in said if line.strip().endswith("reviewed")}
    notes = {one.note for one in read(tmp_path, RUN, "person 0").values()}
    assert {name.replace("-", " ") for name in finished} <= notes and len(notes) <= len(finished) + 1
    write_all(tmp_path, RUN, {"next": Review("reviewed")}, person="person 0")  # no lock is left
    assert len(read(tmp_path, RUN, "person 0")) == len(notes) + 1


def test_a_server_that_is_gone_is_one_sentence_without_its_password(on_server, server, monkeypatch):
    monkeypatch.setattr(database, "_OPENING_SECONDS", 1.0)
    monkeypatch.setenv(VARIABLE, server.url(on_server, "geheim"))
    db = Database(shared(), WORDS, lambda db: db.execute("SELECT 1"), busy_seconds=0.3)
    server.control("stop", "-m", "fast")
    try:
        said = rf"^The diary in the database {on_server} on this machine cannot be reached; check {VARIABLE} and that"
        with pytest.raises(InputError, match=said) as while_open:
            db.execute("SELECT 1")
        with pytest.raises(CacheError, match=r"^The completion cache in the database") as at_opening:
            CompletionCache(default_cache_path())
    finally:
        server.control("start")
    assert "geheim" not in f"{while_open.value}{at_opening.value}{shared()}"
    assert db.execute("SELECT 1") == [(1,)]  # it goes on where the server is back
    db.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///geheim.db", "its scheme is 'sqlite'"),
        ("postgresql://ada:geheim@db.example", "its database None"),
        ("geheim", "what it holds is none"),
        ("postgresql://ada:geheim@host:port/db", "what it holds is none"),
    ],
)
def test_another_url_is_one_sentence(url, said, monkeypatch):
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(InputError, match=f"^{VARIABLE} must be a URL like .*{said}") as caught:
        read_all("runs", RUN)
    assert "geheim" not in str(caught.value).replace("geheim.db", "")


def test_an_unknown_database_is_named_at_once(on_server, server, monkeypatch):
    monkeypatch.setenv(VARIABLE, server.url("nowhere", "geheim"))
    with pytest.raises(CacheError, match=r'database "nowhere" does not exist') as caught:
        CompletionCache(default_cache_path())
    assert "geheim" not in str(caught.value)


def test_a_cache_that_is_named_stays_a_file(on_server, tmp_path):
    with CompletionCache(tmp_path / "own.db") as cache:
        cache.put("k", Completion("x", "stop", 1, 1, 0.0))
    assert (tmp_path / "own.db").is_file()
    with CompletionCache(default_cache_path()) as other:
        assert len(other) == 0


# Stores of earlier and later versions.


def revision(stores, name, store):
    path = {"completions": default_cache_path(), "reviews": stores / "reviews" / "reviews.db"}.get(
        name, store
    )
    where = shared("leadline_calibration_c" if name == "calibration" else "") or path
    return Database(where, WORDS, lambda _: None)


@pytest.mark.parametrize("name", ["completions", "reviews", "calibration"])
def test_a_store_of_a_later_version_is_refused(stores, name):
    def opened():
        if name == "completions":
            CompletionCache(default_cache_path()).close()
        elif name == "reviews":
            ReviewStore(stores).close()
        else:
            CalibrationStore(stores / "c.db").close()

    opened()
    db = revision(stores, name, stores / "c.db")
    db.execute(f"UPDATE {version_table(name)} SET version_num = '9999'")
    db.close()
    with pytest.raises(InputError, match=r"newer version of Leadline \(revision 9999; .*update Leadline or"):
        opened()


def test_a_calibration_store_of_the_first_revision_gets_the_table_of_the_second(stores):
    CalibrationStore(stores / "c.db").close()
    db = revision(stores, "calibration", stores / "c.db")
    db.execute("DROP TABLE calibration_method")
    db.execute(f"UPDATE {version_table('calibration')} SET version_num = '0001'")
    db.close()
    with CalibrationStore(stores / "c.db") as store:
        assert store.add([case(1)], SEEN, method="m") == 1 and store.method == "m"


# The tables as versions without Alembic made them.
EARLIER_CACHE = """CREATE TABLE completions (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, latency REAL NOT NULL, logprobs TEXT,
    created REAL NOT NULL
) WITHOUT ROWID"""
EARLIER_STORE = """CREATE TABLE calibration_scores (
    id INTEGER PRIMARY KEY, query_hash TEXT UNIQUE, question TEXT, context TEXT, prediction TEXT, true_answer TEXT,
    nonconformity_score REAL, timestamp DATETIME, score_name TEXT NOT NULL, model TEXT NOT NULL,
    prompt TEXT NOT NULL, retriever TEXT NOT NULL, correct INTEGER, kind TEXT, excluded TEXT)"""


def made(path, *statements):
    db = sqlite3.connect(path)
    with db:
        for statement in statements:
            db.execute(statement)
    db.close()


def test_a_cache_of_an_earlier_version_keeps_its_answers(tmp_path):
    path = tmp_path / "c.db"
    made(
        path,
        EARLIER_CACHE,
        "INSERT INTO completions VALUES ('k', 'm', 'x', 'stop', 1, 2, 0.5, '[-0.5]', 0.0)",
    )
    for _ in range(2):
        with CompletionCache(path) as cache:
            assert cache.get_many(["k"]) == {"k": Completion("x", "stop", 1, 2, 0.5, (-0.5,))}


def columns(path, table):
    """Return what a file's table says of each column: whether it is the key, and where not, that it has a value."""
    db = sqlite3.connect(path)
    rows = db.execute(f"PRAGMA table_info({table})").fetchall()
    db.close()
    return {
        name: "key" if key else "always" if notnull else "perhaps" for _, name, _, notnull, _, key in rows
    }


def test_new_tables_are_those_of_earlier_versions(tmp_path):
    made(tmp_path / "earlier.db", EARLIER_CACHE, EARLIER_STORE)
    CompletionCache(tmp_path / "cache.db").close()
    CalibrationStore(tmp_path / "c.db").close()
    for path, table in (("cache.db", "completions"), ("c.db", "calibration_scores")):
        assert columns(tmp_path / path, table) == columns(tmp_path / "earlier.db", table)
    assert columns(tmp_path / "c.db", "calibration_method") == {"content": "always"}


def test_a_review_may_leave_out_the_labels_only(tmp_path):
    ReviewStore(tmp_path).close()
    found = columns(tmp_path / "reviews" / "reviews.db", "reviews")
    assert [name for name, kind in found.items() if kind == "key"] == ["id"]
    assert [name for name, kind in found.items() if kind == "perhaps"] == ["correct", "grounded"]
    assert len(found) == 9


@pytest.mark.parametrize("with_method", [False, True])
def test_a_calibration_store_of_an_earlier_version_keeps_its_scores(tmp_path, with_method):
    path = tmp_path / "c.db"
    row = "INSERT INTO calibration_scores VALUES (4, 'h', 'Q', 'C', 'P', 'T', 0.5, 't', 'length', 'M · 1', 'short · 2', 'bm25 · 3', 1, NULL, NULL)"
    method = (
        "CREATE TABLE calibration_method (content TEXT NOT NULL)",
        "INSERT INTO calibration_method VALUES ('m')",
    )
    made(path, EARLIER_STORE, row, *(method if with_method else ()), "PRAGMA user_version = 1")
    for _ in range(2):
        with CalibrationStore(path, SEEN) as store:
            assert store.method == ("m" if with_method else None) and store.usable()["id"].tolist() == [4]
