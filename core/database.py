"""Stores that several processes may use and a kill cannot hurt: SQLite files, or one PostgreSQL database.

SQL is written once, in what both understand, with ``?`` for values, and handed to the driver as it is: to
build a statement costs more than SQLite needs to answer it. Connections and their pool are SQLAlchemy's
business, tables and their earlier forms Alembic's (`core.migrations`); both load with the first store.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from core.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

T = TypeVar("T")
VARIABLE = "LEADLINE_DATABASE"
BUSY_SECONDS = 30.0
_OPENING_SECONDS = 5.0  # a page must not wait longer for a server that is down
_PAUSE = 0.1
_DIALECTS = ("postgresql", "postgresql+psycopg")


@dataclass(frozen=True, slots=True)
class StoreWords:
    """How errors speak of a store.

    Attributes
    ----------
    what : str
        "completion cache".
    error : type
        Of the errors.
    repair : str
        What to do with a damaged file: "delete that file".
    elsewhere : str
        What to do instead: "or choose another file with --cache".
    """

    what: str
    error: type[InputError]
    repair: str
    elsewhere: str


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL database, and the schema in it that a store has to itself; without one the default schema.

    Its text is all that messages say of it: never the password, nor anything else of the URL.
    """

    url: URL
    schema: str = ""

    def __str__(self) -> str:
        return f"in the database {self.url.database} on {self.url.host or 'this machine'}"


def shared(schema: str = "") -> Server | None:
    """Return the database that ``LEADLINE_DATABASE`` names, None without one.

    InputError where it is no URL of PostgreSQL.
    """
    given = os.environ.get(VARIABLE, "")
    return Server(_url(given), schema) if given else None


@cache
def _url(given: str) -> URL:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    wanted = f"{VARIABLE} must be a URL like postgresql://USER:PASSWORD@HOST/DATABASE"
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise InputError(f"{wanted}; what it holds is none.") from None
    if url.drivername not in _DIALECTS or not url.database:
        raise InputError(
            f"{wanted}; its scheme is {url.drivername!r:.40} and its database {url.database!r:.40}."
        )
    return url.set(drivername=_DIALECTS[-1])


class Database:
    """One SQLite file, created when absent, or one PostgreSQL database; without either in memory.

    Every statement is a transaction of its own, on disk when it returns, except within `transaction`. Where
    the connection to a server is lost, statements are tried again on a new one, for ``busy_seconds`` at most.
    Not for several threads at once: who shares it has a lock.

    Parameters
    ----------
    where : Path or Server, optional
        The folder of a file is made where there is none.
    wording : StoreWords
        For the errors: each of the driver becomes one of its ``error``, a sentence with a way out.
    set_up : callable
        Makes or checks the tables of a new connection; again where another process had the file locked.
    busy_seconds : float
        How long to wait for other processes.
    """

    def __init__(
        self,
        where: Path | Server | None,
        wording: StoreWords,
        set_up: Callable[[Database], object],
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self._where, self._wording, self._busy = where, wording, busy_seconds
        self._within = False  # an outer call explains errors and tries again
        self._connection: Connection | None = None
        if isinstance(where, Path):
            try:
                where.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise wording.error(
                    f"The folder of the {wording.what} {where} cannot be made: {error.strerror}."
                ) from error
        try:
            self._again(lambda: self._prepare(set_up), _patience(where, busy_seconds), opening=True)
        except BaseException:
            self.close()
            raise

    @property
    def is_server(self) -> bool:
        """Whether it is a server's, which does not know SQLite's own statements."""
        return isinstance(self._where, Server)

    def execute(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows.

        Where the connection to a server is lost, it runs again: twice, it must come to the same.
        """
        return self._run(sql, values) if self._within else self._again(lambda: self._run(sql, values))

    def write(self, work: Callable[[], T], lock: str = "") -> T:
        """Return what ``work`` returns, run as one transaction: all of it is on disk afterwards, or nothing.

        In a file no other process writes meanwhile, in a server's database none that gives the same ``lock``.
        Where the connection to a server is lost the work is done anew, whether it was stored or not.
        """

        def whole() -> T:
            with self._transaction(lock):
                return work()

        return whole() if self._within else self._again(whole)

    def has_table(self, name: str) -> bool:
        """Tell whether there is a table of this name."""
        where = (
            "pg_tables WHERE schemaname = current_schema() AND tablename"
            if self.is_server
            else "sqlite_master WHERE name"
        )
        return bool(self.execute(f"SELECT 1 FROM {where} = ?", (name,)))

    def migrate(self, store: str) -> None:
        """Make the tables of a store, or bring them to their present form; its error for a newer form.

        Of many processes that start at once one does it, and the others wait.
        """
        known = _revisions(store)
        if self._revision(store) != known[-1]:
            self.write(lambda: self._upgrade(store, known), lock="migrations")

    def close(self) -> None:
        """Close the file or the connection; the instance cannot be used afterwards."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # a connection that is lost already
                connection.close()

    def _upgrade(self, store: str, known: Sequence[str]) -> None:
        assert self._connection is not None
        if isinstance(self._where, Server) and self._where.schema:
            self._run(f'CREATE SCHEMA IF NOT EXISTS "{self._where.schema}"')
        found = self._revision(store)
        if found == known[-1]:  # another process was quicker
            return
        if found is not None and found not in known:
            words = self._wording
            raise words.error(
                f"The {words.what} {self._where} was written by a newer version of Leadline (revision "
                f"{found:.20}; this one reads up to {known[-1]}); update Leadline {words.elsewhere}."
            )
        from core.migrations import upgrade

        upgrade(self._connection, store)

    def _revision(self, store: str) -> str | None:
        if not self.has_table(version_table(store)):
            return None
        rows = self._run(f"SELECT version_num FROM {version_table(store)}")
        return str(rows[0][0]) if rows else None

    def _prepare(self, set_up: Callable[[Database], object]) -> None:
        self._within = True
        try:
            set_up(self)  # first, so that a file of another program stays as it is
            if not self.is_server:
                # Changing the journal mode does not wait for other processes, so it may be tried again.
                self._run("PRAGMA journal_mode = WAL")
                self._run("PRAGMA synchronous = FULL")
        finally:
            self._within = False

    def _run(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = _engine(self._where, self._busy).connect()
        # The driver's own cursor: a result of SQLAlchemy costs more than a row of SQLite.
        with closing(self._connection.connection.cursor()) as cursor:
            if not self.is_server:
                cursor.execute(sql, tuple(values))
                return [*cursor.fetchall()] if cursor.description else []
            cursor.execute(_for_server(sql), tuple(map(_escaped, values)))
            return [tuple(map(_restored, row)) for row in cursor.fetchall()] if cursor.description else []

    @contextmanager
    def _transaction(self, lock: str) -> Iterator[None]:
        outer, self._within = self._within, True
        try:
            self._run("BEGIN" if self.is_server else "BEGIN IMMEDIATE")
            if self.is_server:
                self._run("SELECT pg_advisory_xact_lock(?)", (_number(f"{self._where} {lock}"),))
            yield
            self._run("COMMIT")
        except BaseException:
            with suppress(*_errors(self._where)):  # a full disk, or a lost connection, has ended it already
                self._run("ROLLBACK")
            raise
        finally:
            self._within = outer

    def _again(self, work: Callable[[], T], seconds: float | None = None, opening: bool = False) -> T:
        """Return what ``work`` returns; try again what passes by itself, and explain what does not."""
        deadline = time.monotonic() + (self._busy if seconds is None else seconds)
        while True:
            try:
                return work()
            except _errors(self._where) as error:
                passes = _passes(error) if self.is_server else opening and "locked" in str(error)
                if passes and self._connection is not None:
                    self._connection.invalidate()  # nobody gets it from the pool again
                    self.close()
                if not passes or time.monotonic() > deadline:
                    _away[self._where] = time.monotonic()
                    raise self._wording.error(_explain(self._where, self._wording, error)) from error
            time.sleep(_PAUSE)


# When a store was last given up: whoever opens it next does not wait for it as long again.
_away: dict[Path | Server | None, float] = {}


def _patience(where: Path | Server | None, busy_seconds: float) -> float:
    if isinstance(where, Server):
        lately = time.monotonic() - _away.get(where, -BUSY_SECONDS) < BUSY_SECONDS
        return 0.0 if lately else _OPENING_SECONDS
    return busy_seconds


def _errors(where: Path | Server | None) -> tuple[type[Exception], ...]:
    """Return what connecting and the driver's statements raise."""
    from sqlalchemy.exc import SQLAlchemyError

    if isinstance(where, Server):
        return (SQLAlchemyError, _pool(where).dialect.loaded_dbapi.Error)
    # The driver cannot even decode what SQLite says of a damaged table whose name is damaged, too.
    return (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError)


def _engine(where: Path | Server | None, busy_seconds: float) -> Engine:
    """Return what opens connections on which every statement is a transaction of its own."""
    if isinstance(where, Server):
        return _pool(where)
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    def opened() -> sqlite3.Connection:
        target = ":memory:" if where is None else str(where.absolute())
        db = sqlite3.connect(target, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
        # A text that cannot be decoded stays bytes: it must not hide all other rows.
        db.text_factory = _text
        return db

    return create_engine("sqlite://", creator=opened, poolclass=NullPool, isolation_level="AUTOCOMMIT")


@cache
def _pool(server: Server) -> Engine:
    """Return the connections of this process to a server; unused ones stay open for the next store."""
    from sqlalchemy import create_engine

    path = {"options": f'-c search_path="{server.schema}"'} if server.schema else {}
    try:
        return create_engine(
            server.url,
            connect_args={"connect_timeout": int(_OPENING_SECONDS), **path},
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,  # of what errors say
            max_overflow=-1,
        )
    except ModuleNotFoundError as error:
        raise InputError(
            f"{VARIABLE} needs the package psycopg: pip install -r requirements-scale.txt."
        ) from error


def version_table(store: str) -> str:
    """Return the table in which Alembic notes the revision of a store's tables."""
    return f"schema_version_{store}"


@cache
def _revisions(store: str) -> tuple[str, ...]:
    """Return the revisions of a store's tables, the present one last, without loading Alembic."""
    files = (Path(__file__).parent / "migrations" / store).glob("[0-9]*.py")
    return tuple(sorted(file.stem.partition("_")[0] for file in files))


@lru_cache(maxsize=256)
def _for_server(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


def _number(text: str) -> int:
    """Return the number that stands for a lock on a server."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)


_ESCAPE = "\U0010ffff"  # no character; texts hold it as seldom as they hold the NUL that it stands for


def _escaped(value: object) -> object:
    """Return a value as PostgreSQL can hold it: its texts have no NUL."""
    if isinstance(value, str) and ("\0" in value or _ESCAPE in value):
        return value.replace(_ESCAPE, _ESCAPE + "1").replace("\0", _ESCAPE + "0")
    return value


def _restored(value: Any) -> Any:
    if isinstance(value, str) and _ESCAPE in value:
        return value.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "1", _ESCAPE)
    return value


def _text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _passes(error: Exception) -> bool:
    """Tell whether an error of a server passes: it restarts, or ended a connection or a deadlock."""
    cause = getattr(error, "orig", None) or error
    state, said = getattr(cause, "sqlstate", None), str(cause)
    if state is None and "FATAL" in said:  # it answers, and refuses
        return any(passing in said for passing in ("starting up", "shutting down", "recovery"))
    # One of its kinds is a connection that takes too long.
    lost = state is None and any(kind.__name__ == "OperationalError" for kind in type(cause).__mro__)
    return lost or str(state).startswith(("08", "40", "57P"))


_BUSY = "is locked by another program; close that program {elsewhere}"
_CAUSES = {
    "SQLITE_FULL": "cannot be written because the disk is full; free some space {elsewhere}",
    "SQLITE_BUSY": _BUSY,
    "SQLITE_LOCKED": _BUSY,
    "SQLITE_READONLY": "cannot be written; make it writable {elsewhere}",
    "SQLITE_CANTOPEN": "cannot be opened; check its folder {elsewhere}",
    "SQLITE_NOTADB": "is damaged or is not a {what}; {repair} {elsewhere}",
    "SQLITE_CORRUPT": "is damaged; {repair} {elsewhere}",
}
_UNKNOWN = "cannot be used ({error}); {repair} {elsewhere}"
# By the code of an error of PostgreSQL.
_REFUSED = {
    "53100": "cannot be written because its disk is full; free some space",
    "25006": "cannot be written: the database is read-only",
    "42501": "cannot be used: the user of {variable} has no right to do so",
}
_AWAY = "cannot be reached; check {variable} and that the server is running"


def _explain(where: Path | Server | None, wording: StoreWords, error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    if isinstance(where, Server):
        said = _AWAY if _passes(error) else _REFUSED.get(str(getattr(cause, "sqlstate", "")), _FAILED)
        said = said.format(variable=VARIABLE, error=_without_password(where, cause))
    else:
        damaged = "SQLITE_CORRUPT" if isinstance(cause, UnicodeDecodeError) else ""
        name = str(getattr(cause, "sqlite_errorname", damaged))
        said = next((said for code, said in _CAUSES.items() if name.startswith(code)), _UNKNOWN)
        parts = {"what": wording.what, "repair": wording.repair, "elsewhere": wording.elsewhere}
        said = said.format(error=cause, **parts)
    return f"The {wording.what} {where} {said}."


_FAILED = "cannot be used ({error}); check {variable}"


def _without_password(server: Server, error: object) -> str:
    said = " ".join(str(error).split())
    secrets = (server.url.password, *(value for name, value in server.url.query.items() if "pass" in name))
    for secret in filter(None, map(str, secrets)):
        said = said.replace(secret, "***")
    return re.sub(r"://\S+", "://…", said)[:300]
