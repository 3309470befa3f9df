"""Opening beside other programs, transactions, and texts that cannot be decoded; files that may only be read; the rest by its users."""

import os
import sqlite3
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from core import database
from core.database import VARIABLE, Database, StoreWords, shared
from core.errors import InputError

WORDING = StoreWords("diary", InputError, "burn it", "or buy another one")


def table(db):
    db.execute("CREATE TABLE IF NOT EXISTS t (x TEXT)")


@pytest.fixture
def path(tmp_path):
    """A database in the journal mode that SQLite begins with."""
    db = sqlite3.connect(tmp_path / "d.db")
    table(db)
    db.close()
    return tmp_path / "d.db"


def test_it_tries_again_where_sqlite_does_not_wait_for_another_writer(path):
    writer, calls = sqlite3.connect(path, isolation_level=None), []
    writer.execute("BEGIN IMMEDIATE")

    def set_up(db):
        calls.append(db.execute("PRAGMA journal_mode")[0][0])
        if len(calls) == 3:
            writer.execute("COMMIT")
        # Who reads already and wants to write is told at once that the file is locked.
        with reading_first(db):
            db.execute("INSERT INTO t VALUES ('x')")

    db = Database(path, WORDING, set_up)
    assert calls == ["delete"] * 3 and db.execute("SELECT * FROM t") == [("x",)]
    assert db.execute("PRAGMA journal_mode") == [("wal",)] and db.execute("PRAGMA synchronous") == [(2,)]
    db.close()
    writer.close()


@contextmanager
def reading_first(db):
    db.execute("BEGIN")
    try:
        db.execute("SELECT * FROM t")
        yield
    finally:
        db.execute("COMMIT")


def test_it_waits_no_longer_than_it_is_told(path, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)  # only pauses take time on it
    clock.sleep = lambda seconds: setattr(clock, "now", clock.now + seconds)
    monkeypatch.setattr(database, "time", clock)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    said = r"^The diary .*d\.db is locked by another program; close that program or buy another one\.$"
    with pytest.raises(InputError, match=said):
        Database(path, WORDING, table, busy_seconds=0.02)
    writer.close()
    assert 0 < clock.now < 1
    Database(path, WORDING, table, busy_seconds=0.02).close()


def test_an_error_of_the_set_up_is_explained_at_once(path):
    with pytest.raises(
        InputError, match=r"cannot be used \(no such column: t\.\{y\}\); burn it or buy another one"
    ):
        Database(path, WORDING, lambda db: db.execute('SELECT t."{y}" FROM t'))


def test_a_transaction_is_kept_whole_or_not_at_all(path):
    db = Database(path, WORDING, table)

    def lost():
        db.execute("INSERT INTO t VALUES ('lost')")
        raise KeyError

    with pytest.raises(KeyError):
        db.write(lost)
    db.write(lambda: db.execute("INSERT INTO t VALUES (?)", ("kept",)))
    db.close()
    again = Database(path, WORDING, table)
    assert again.execute("SELECT x FROM t") == [("kept",)]
    again.close()


def test_a_text_that_cannot_be_decoded_hides_no_other():
    db = Database(None, WORDING, table)
    db.execute("INSERT INTO t VALUES (CAST(x'ff41' AS TEXT)), ('B')")
    assert db.execute("SELECT x FROM t") == [(b"\xffA",), ("B",)]
    db.close()


@pytest.fixture
def unprivileged():
    """A folder, and a function that takes away the right to write it or its file: from root by giving it up."""
    with tempfile.TemporaryDirectory() as folder:
        user = os.geteuid()

        def drop(path, mode):
            os.chmod(folder, 0o777)
            os.chmod(path, mode)
            if user == 0:
                os.seteuid(65534)

        yield Path(folder), drop
        os.seteuid(user)
        os.chmod(folder, 0o755)


def test_a_file_that_may_only_be_read_is_said_so(unprivileged):
    folder, drop = unprivileged
    Database(folder / "d.db", WORDING, table).close()
    drop(folder / "d.db", 0o444)
    with pytest.raises(InputError, match=r"d\.db cannot be written; make it writable or buy another one"):
        Database(folder / "d.db", WORDING, table).execute("INSERT INTO t VALUES ('x')")


def test_a_folder_that_may_only_be_read_is_said_so(unprivileged):
    folder, drop = unprivileged
    drop(folder, 0o555)
    with pytest.raises(InputError, match=r"d\.db cannot be opened; check its folder or buy another one"):
        Database(folder / "d.db", WORDING, table)


def test_a_schema_whose_damage_is_no_text_is_damage(path):
    # SQLite quotes it in what it says, which its driver then cannot decode.
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE t", b"CREATE TABL\xa2 t"))
    with pytest.raises(InputError, match=r"The diary .*d\.db is damaged; burn it or buy another one\."):
        Database(path, WORDING, table)


def test_what_a_server_says_is_told_in_300_characters_without_any_password(monkeypatch):
    monkeypatch.setenv(VARIABLE, "postgresql://ada:secret@host/db?sslpassword=hidden")
    said = "no access for secret\n at postgresql://ada@host/db with hidden " + 400 * "x"

    def connect():
        raise sqlite3.ProgrammingError(said)

    server = SimpleNamespace(connect=connect, dialect=SimpleNamespace(loaded_dbapi=sqlite3))
    monkeypatch.setattr(database, "_pool", lambda _: server)
    monkeypatch.setattr(database, "_away", {})
    with pytest.raises(InputError) as raised:
        Database(shared(), WORDING, table)
    start = "no access for *** at postgresql://… with *** "
    assert str(raised.value) == (
        f"The diary in the database db on host cannot be used ({start}{'x' * (300 - len(start))}); "
        "check LEADLINE_DATABASE."
    )


def refusing(monkeypatch, error):
    """A server that answers every attempt to connect with an error; return the attempts, and a clock of pauses."""
    clock, attempts = SimpleNamespace(now=0.0, monotonic=lambda: clock.now), []
    clock.sleep = lambda seconds: setattr(clock, "now", clock.now + seconds)

    def connect():
        attempts.append(clock.now)
        raise error

    server = SimpleNamespace(connect=connect, dialect=SimpleNamespace(loaded_dbapi=sqlite3))
    monkeypatch.setenv(VARIABLE, "postgresql://ada@host/db")
    monkeypatch.setattr(database, "time", clock)
    monkeypatch.setattr(database, "_pool", lambda _: server)
    monkeypatch.setattr(database, "_away", {})
    return attempts, clock


GONE = "cannot be reached; check LEADLINE_DATABASE and that the server is running"


@pytest.mark.parametrize(
    ("kind", "state", "text", "said", "passes"),
    [
        (sqlite3.DatabaseError, "53100", "full", "cannot be written because its disk is full; free some space", False),
        (sqlite3.DatabaseError, "25006", "no", "cannot be written: the database is read-only", False),
        (sqlite3.DatabaseError, "42501", "no", "cannot be used: the user of LEADLINE_DATABASE has no right to do so", False),
        (sqlite3.DatabaseError, "22001", "long", "cannot be used (long); check LEADLINE_DATABASE", False),
        (sqlite3.DatabaseError, None, "odd", "cannot be used (odd); check LEADLINE_DATABASE", False),
        (sqlite3.OperationalError, "22001", "long", "cannot be used (long); check LEADLINE_DATABASE", False),
        (sqlite3.OperationalError, None, "FATAL: no ada", "cannot be used (FATAL: no ada); check LEADLINE_DATABASE", False),
        (sqlite3.OperationalError, None, "FATAL: is starting up", GONE, True),
        (sqlite3.OperationalError, None, "refused", GONE, True),
        (sqlite3.DatabaseError, "08006", "lost", GONE, True),
        (sqlite3.DatabaseError, "40P01", "deadlock", GONE, True),
        (sqlite3.DatabaseError, "57P01", "FATAL: stopped", GONE, True),
    ],
)  # fmt: skip
def test_a_server_is_asked_again_where_what_it_says_passes(kind, state, text, said, passes, monkeypatch):
    error = kind(text)
    error.sqlstate = state
    attempts, _ = refusing(monkeypatch, error)
    with pytest.raises(InputError) as raised:
        Database(shared(), WORDING, table)
    assert str(raised.value) == f"The diary in the database db on host {said}."
    assert (len(attempts) > 1) == passes


def test_a_server_that_was_away_just_now_is_not_waited_for_as_long(monkeypatch):
    attempts, clock = refusing(monkeypatch, sqlite3.OperationalError("refused"))
    waited = []
    for later in (0.0, 0.0, 29.0, 30.5):
        clock.now += later
        began = clock.now
        with pytest.raises(InputError, match="cannot be reached"):
            Database(shared(), WORDING, table)
        waited.append(attempts[-1] - began)
    assert waited == pytest.approx([5, 0, 0, 5], abs=0.25)


@pytest.mark.parametrize("text", ["plain", "a\0b", "\U0010ffff", "\U0010ffff0\0\U0010ffff1", None, 7])
def test_a_server_holds_any_text_in_another_form(text):
    held = database._escaped(text)
    assert "\0" not in str(held) and database._restored(held) == text


def test_a_statement_for_a_server_marks_its_values_as_the_driver_does():
    assert database._for_server("x LIKE '%a' AND y = ? OR z = ?") == "x LIKE '%%a' AND y = %s OR z = %s"
