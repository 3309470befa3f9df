"""SQLite files that several processes may use and a kill cannot hurt, with errors that say what to do."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import InputError

BUSY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class StoreWords:
    """How errors speak of a file.

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


class Database:
    """One SQLite file, created when absent; without ``path`` in memory.

    Every statement is a transaction of its own, on disk when it returns, except within `transaction`. Not for
    several threads at once: who shares it has a lock.

    Parameters
    ----------
    path : Path, optional
        Its folder is made where there is none.
    wording : Wording
        For the errors: each `sqlite3.Error` becomes one of its ``error``, a sentence with a way out.
    set_up : callable
        Makes or checks the tables of a new connection; again where another process had the file locked.
    busy_seconds : float
        How long to wait for other processes.
    """

    def __init__(
        self,
        path: Path | None,
        wording: StoreWords,
        set_up: Callable[[sqlite3.Connection], object],
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self._path, self._wording = path, wording
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise wording.error(
                    f"The folder of the {wording.what} {path} cannot be made: {error.strerror}."
                ) from error
        target = ":memory:" if path is None else str(path.absolute())
        with self._explained():
            self._db = sqlite3.connect(
                target, timeout=busy_seconds, isolation_level=None, check_same_thread=False
            )
            # A text that cannot be decoded stays bytes: it must not hide all other rows.
            self._db.text_factory = _text
            try:
                self._set_up(set_up, busy_seconds)
            except BaseException:
                self._db.close()
                raise

    def execute(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        with self._explained():
            return self._db.execute(sql, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run what is within as one transaction: all of it is on disk afterwards, or nothing.

        No other process writes meanwhile.
        """
        with self._explained(), immediate(self._db):
            yield

    def close(self) -> None:
        """Close the file; the instance cannot be used afterwards."""
        self._db.close()

    def _set_up(self, set_up: Callable[[sqlite3.Connection], object], busy_seconds: float) -> None:
        deadline = time.monotonic() + busy_seconds
        while True:
            try:
                # First, so that a file of another program stays as it is.
                set_up(self._db)
                # Changing the journal mode does not wait for other processes, so try again.
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._wording.error(_explain(self._path, self._wording, error)) from error


@contextmanager
def immediate(db: sqlite3.Connection) -> Iterator[None]:
    """Run what is within as one writing transaction of a connection; an exception takes all of it back."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended it already
            db.execute("ROLLBACK")
        raise


def _text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


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


def _explain(path: Path | None, wording: StoreWords, error: sqlite3.Error) -> str:
    name = str(getattr(error, "sqlite_errorname", ""))
    cause = next((cause for code, cause in _CAUSES.items() if name.startswith(code)), _UNKNOWN)
    said = cause.format(error=error, what=wording.what, repair=wording.repair, elsewhere=wording.elsewhere)
    return f"The {wording.what} {path} {said}."
