"""What validation did over time, in a file: counts and scores of answers, no text of theirs."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.database import Database, StoreWords
from core.errors import InputError
from core.validation.metrics import Observation
from core.validation.types import Code

SCHEMA_VERSION = 1
_TABLE = "observations"
_CODES = {str(code): code for code in Code}
_TYPES = {
    "at": "TEXT NOT NULL",
    "passed": "INTEGER NOT NULL",
    "critical": "INTEGER NOT NULL",
    "confidence": "REAL NOT NULL",
    "overlap": "REAL",
    "used_fallback": "INTEGER NOT NULL",
    "expressed_uncertainty": "INTEGER NOT NULL",
    "reasons": "TEXT NOT NULL",
    "answer_key": "TEXT UNIQUE",
}
_COLUMNS = tuple(_TYPES)
_SCHEMA = f"CREATE TABLE {_TABLE} (" + ", ".join(f"{name} {kind}" for name, kind in _TYPES.items()) + ")"


class MetricsError(InputError):
    """A metrics store cannot be used: damaged, not writable, or a file of another program."""


_WORDING = StoreWords("metrics store", MetricsError, "move it away", "or choose another file")


def answer_key(*parts: str) -> str:
    """Return what identifies an answer, so that it is counted once: 64 hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()


class MetricsStore:
    """A SQLite file of `Observation`; created when absent.

    One instance may be shared by threads, one file by processes. What `add` has returned survives a kill.

    `MetricsError` where the file is no metrics store, of a newer version, or SQLite cannot use it.

    >>> import tempfile
    >>> now = datetime(2026, 11, 23, tzinfo=UTC)
    >>> one = Observation(now, True, False, 0.9, 0.5, False, False, ())
    >>> with tempfile.TemporaryDirectory() as folder, MetricsStore(f"{folder}/metrics.db") as store:
    ...     print(store.add([one]), store.between(datetime(2026, 11, 22, tzinfo=UTC), now) == [one])
    1 True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._db = Database(self.path, _WORDING, self._set_up)

    def add(self, observations: Iterable[Observation]) -> int:
        """Store observations in one transaction and return how many are new.

        One with the key of another that is there already is left out.
        """
        marks = ", ".join("?" * len(_COLUMNS))
        sql = f"INSERT OR IGNORE INTO {_TABLE} ({', '.join(_COLUMNS)}) VALUES ({marks}) RETURNING 1"
        rows = [_row(one) for one in observations]
        with self._lock:
            return self._db.write(lambda: sum(len(self._db.execute(sql, row)) for row in rows))

    def between(self, start: datetime, end: datetime) -> list[Observation]:
        """Return the observations after ``start`` and not after ``end``, by time, in UTC."""
        sql = f"SELECT {', '.join(_COLUMNS)} FROM {_TABLE} WHERE at > ? AND at <= ? ORDER BY at, rowid"
        with self._lock:
            rows = self._db.execute(sql, (_time(start), _time(end)))
        try:
            return [_read(row) for row in rows]
        except (AttributeError, TypeError, ValueError) as error:
            raise MetricsError(
                f"The metrics store {self.path} holds a row that cannot be read; choose another file."
            ) from error

    def lacking(self, keys: Iterable[str]) -> set[str]:
        """Return the keys of which no observation is stored."""
        sql = f"SELECT answer_key FROM {_TABLE} WHERE answer_key IS NOT NULL"
        with self._lock:
            return {*keys} - {key for (key,) in self._db.execute(sql)}

    def close(self) -> None:
        """Close the file; the instance cannot be used afterwards."""
        self._db.close()

    def __enter__(self) -> MetricsStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _set_up(self, db: Database) -> None:
        if not self._is_ready(db):
            db.write(lambda: self._create(db))

    def _create(self, db: Database) -> None:
        if self._is_ready(db):  # another process was quicker
            return
        if db.execute("SELECT 1 FROM sqlite_master LIMIT 1"):
            raise MetricsError(
                f"{self.path} is no metrics store that this version of Leadline can read; choose another "
                "file."
            )
        db.execute(_SCHEMA)
        db.execute(f"CREATE INDEX by_time ON {_TABLE} (at)")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @staticmethod
    def _is_ready(db: Database) -> bool:
        columns = tuple(name for _, name, *_ in db.execute(f"PRAGMA table_info({_TABLE})"))
        return columns == _COLUMNS and db.execute("PRAGMA user_version") == [(SCHEMA_VERSION,)]


def _time(at: datetime) -> str:
    """Return a time in UTC such that texts sort as times do; without a zone it is that of this machine."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _row(one: Observation) -> tuple[Any, ...]:
    at, *others, reasons, key = astuple(one)
    return (_time(at), *others, " ".join(reasons), key)


def _read(row: tuple[Any, ...]) -> Observation:
    at, passed, critical, confidence, overlap, used, uncertain, reasons, key = row
    time = datetime.fromisoformat(at)
    shares = (confidence, 0 if overlap is None else overlap)
    if time.tzinfo is None or not all(0 <= one <= 1 for one in shares):
        raise ValueError("no such row was ever added")
    codes = tuple(_CODES.get(code, Code.OTHER) for code in reasons.split())
    return Observation(
        time, bool(passed), bool(critical), confidence, overlap, bool(used),
        bool(uncertain), codes, key,
    )  # fmt: skip
