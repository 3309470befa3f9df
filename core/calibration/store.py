"""The calibration scores on disk: one row per question with its context, of one score and one model only.

Their table is created, migrated from that of rag_uq, or refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from core.calibration.provenance import UNKNOWN, Provenance
from core.database import Database, StoreWords, immediate
from core.errors import InputError
from core.text.strict import clean

SCHEMA_VERSION = 1
TABLE = "calibration_scores"
METHOD = "calibration_method"  # at most one row, and only where a confidence is weighed
# The score of stores that rag_uq has made: it needs the true answer, so a new answer has none.
TRUTH_SCORE = "1 − ROUGE-L to the true answer"
# Columns with their types in pandas and in SQLite; the first eight are those that rag_uq documents.
_COLUMNS: Mapping[str, tuple[str, str]] = {
    "id": ("int64", "INTEGER PRIMARY KEY"),
    "query_hash": ("str", "TEXT UNIQUE"),
    "question": ("str", "TEXT"),
    "context": ("str", "TEXT"),
    "prediction": ("str", "TEXT"),
    "true_answer": ("str", "TEXT"),
    "nonconformity_score": ("float64", "REAL"),
    "timestamp": ("str", "DATETIME"),
    "score_name": ("str", "TEXT NOT NULL"),
    "model": ("str", "TEXT NOT NULL"),
    "prompt": ("str", "TEXT NOT NULL"),
    "retriever": ("str", "TEXT NOT NULL"),
    "correct": ("boolean", "INTEGER"),
    "kind": ("str", "TEXT"),
    "excluded": ("str", "TEXT"),
}
_SCHEMA = f"CREATE TABLE {TABLE} ({', '.join(f'{name} {kind}' for name, (_, kind) in _COLUMNS.items())})"
PROVENANCE = ("score_name", "model", "prompt", "retriever")
# What fills the first eight columns, from the table that rag_uq documents and from the one it makes.
_DOCUMENTED = {name: name for name in list(_COLUMNS)[:8]}
_MADE = {**_DOCUMENTED, "context": "NULL", "prediction": "predicted_answer", "timestamp": "created_at"}
_OLD = (
    (set(_DOCUMENTED), _DOCUMENTED),
    (set(_MADE.values()) - {"NULL"} | {"rouge_l"}, _MADE),
)


class StoreError(InputError):
    """A calibration store cannot be used: damaged, not writable, of a newer version or of another score."""


ELSEWHERE = "or choose another file"
WORDING = StoreWords(
    "calibration store",
    StoreError,
    "restore a copy of it, or move it away and calibrate again (answers in the completion cache are not paid "
    "for twice),",
    ELSEWHERE,
)
_NUMBERS = ("query_hash", "nonconformity_score", "correct", "kind", "excluded")
_WRITTEN = tuple(name for name in _COLUMNS if name not in ("id", "excluded"))


@dataclass(frozen=True, slots=True)
class CalibrationCase:
    """A question of the calibration set, with its passages, the answer and the reference answer.

    ``score`` is nonconformity: higher = less typical; NaN, which calibrates nothing, where undefined.
    ``correct`` is None where that is unknown, ``kind`` its group.
    """

    question: str
    context: str
    prediction: str
    true_answer: str
    score: float
    correct: bool | None
    kind: str | None = None


def query_hash(question: str, context: str) -> str:
    """Return what identifies a question with its context in a store, 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps([question, context]).encode()).hexdigest()


class CalibrationStore:
    """A SQLite file of calibration scores; created when absent.

    One instance may be shared by threads, one file by processes. What `add` has returned survives a kill and
    a full disk. The table ``calibration_scores`` has the columns that rag_uq documents, then ``score_name,
    model, prompt, retriever`` (`Provenance`), ``correct`` (1, 0 or NULL), ``kind`` (group) and ``excluded``
    (the reason, NULL where the score is used). A file made by rag_uq is migrated on opening: its scores are
    the distance to the true answer, and never mix with scores that a new answer has, too.

    Parameters
    ----------
    path : path
        The file.
    provenance : Provenance, optional
        Of the scores to be added or compared with those in the file.

    Raises
    ------
    StoreError
        The file holds scores of another provenance, is no calibration store or of a newer version, or SQLite
        cannot use it. The message says what to do.

    Examples
    --------
    >>> import tempfile
    >>> case = CalibrationCase("Who?", "Ada was first.", "Ada", "Ada", score=0.1, correct=True)
    >>> with tempfile.TemporaryDirectory() as folder, CalibrationStore(f"{folder}/calibration.db") as store:
    ...     print(store.add([case], Provenance("length", "model", "prompt", "retriever")))
    ...     print(store.has("Who?", "Ada was first."), store.usable()["nonconformity_score"].tolist())
    1
    True [0.1]
    """

    def __init__(self, path: str | os.PathLike[str], provenance: Provenance | None = None) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._db = Database(self.path, WORDING, lambda db: _set_up(db, self.path))
        try:
            if provenance is not None:
                self._check(provenance)
        except BaseException:
            self.close()
            raise

    @property
    def provenance(self) -> Provenance | None:
        """What identifies the scores, excluded ones among them; None in an empty store."""
        with self._lock:
            return self._provenance()

    @property
    def method(self) -> str | None:
        """How the calibrated confidence comes about, as it was given to `add`; None where nothing was."""
        with self._lock:
            there = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (METHOD,))
            rows = self._db.execute(f"SELECT content FROM {METHOD} LIMIT 1") if there else []
        return _text(rows[0][0]) if rows else None

    def add(
        self,
        cases: Iterable[CalibrationCase],
        provenance: Provenance,
        *,
        replace: bool = False,
        method: str | None = None,
    ) -> int:
        """Store cases in one transaction, and return how many are new.

        A question with the same context that is there already stays as it is, so two processes that calibrate
        the same questions end up with one score for each. With ``replace`` it gets the new values, and stays
        excluded if it was. ``method`` (`core.calibration.saved.Method`) is part of the provenance:
        StoreError, and nothing is added, where the store holds scores of another one.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows = [_row(case, provenance, now) for case in cases]
        marks = ",".join("?" * len(_WRITTEN))
        insert = f"INSERT INTO {TABLE} ({', '.join(_WRITTEN)}) VALUES ({marks}) ON CONFLICT (query_hash) DO "
        # To SQLite "excluded" is here the row that was to be inserted.
        new = ", ".join(f"{name} = excluded.{name}" for name in _WRITTEN)
        insert += f"UPDATE SET {new}" if replace else "NOTHING"
        with self._lock, self._db.transaction():
            self._check(provenance)
            before = self._n_rows()
            for row in rows:
                self._db.execute(insert, row)
            if method is not None:
                self._db.execute(f"CREATE TABLE IF NOT EXISTS {METHOD} (content TEXT NOT NULL)")
                self._db.execute(f"DELETE FROM {METHOD}")
                self._db.execute(f"INSERT INTO {METHOD} VALUES (?)", (method,))
            return self._n_rows() - before

    def has(self, question: str, context: str) -> bool:
        """Tell whether a question with this context is stored."""
        key = query_hash(question, context)
        with self._lock:
            return bool(self._db.execute(f"SELECT 1 FROM {TABLE} WHERE query_hash = ?", (key,)))

    def frame(self) -> pd.DataFrame:
        """Return all rows as they were stored; what something else wrote and cannot be read is missing."""
        return self._read([*_COLUMNS])

    def usable(self, texts: bool = True) -> pd.DataFrame:
        """Return the rows of `frame` that calibrate; without ``texts`` only what that is computed from."""
        rows = self._read([*_COLUMNS] if texts else _NUMBERS)
        return rows[rows["excluded"].isna() & rows["nonconformity_score"].notna()].reset_index(drop=True)

    def exclude(self, ids: Sequence[int], reason: str) -> None:
        """Leave rows out of the calibration; they stay in the store.

        For what can be seen without the score: a wrong reference answer, a question of another kind than the
        new ones. Leaving out a row *because of its score*, or because its answer was odd, breaks the
        guarantee: the scores that remain are no longer exchangeable with those of new answers. InputError
        without a reason or for an id that no row has.
        """
        if not reason.strip():
            raise InputError("An excluded score needs a reason; give one.")
        self._mark(ids, clean(reason))

    def include(self, ids: Sequence[int]) -> None:
        """Use excluded rows again; InputError where no row has such an id."""
        self._mark(ids, None)

    def close(self) -> None:
        """Close the file; the instance cannot be used afterwards."""
        with self._lock:
            self._db.close()

    def __len__(self) -> int:
        with self._lock:
            return self._n_rows()

    def __enter__(self) -> CalibrationStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, names: Sequence[str]) -> pd.DataFrame:
        with self._lock:
            rows = self._db.execute(f"SELECT {', '.join(names)} FROM {TABLE} ORDER BY id")
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        found = {}
        for name, values in zip(names, columns, strict=True):
            kind, _ = _COLUMNS[name]
            found[name] = pd.Series([_READ[kind](value) for value in values], dtype=kind)
        return pd.DataFrame(found)

    def _mark(self, ids: Sequence[int], reason: str | None) -> None:
        with self._lock, self._db.transaction():
            for one in map(int, ids):
                if not self._db.execute(f"SELECT 1 FROM {TABLE} WHERE id = ?", (one,)):
                    raise InputError(f"The calibration store {self.path} has no row with the id {one}.")
                self._db.execute(f"UPDATE {TABLE} SET excluded = ? WHERE id = ?", (reason, one))

    def _n_rows(self) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM {TABLE}")[0][0])

    def _provenance(self) -> Provenance | None:
        parts = ", ".join(PROVENANCE)
        found = self._db.execute(f"SELECT DISTINCT {parts} FROM {TABLE} LIMIT 2")
        if len(found) > 1:
            one, other = (Provenance(*map(_text, parts)) for parts in found)
            differ = "; ".join(one.differences(other))
            raise StoreError(
                f"The calibration store {self.path} mixes scores that cannot be compared ({differ}); "
                f"calibrate again {ELSEWHERE}."
            )
        return Provenance(*map(_text, found[0])) if found else None

    def _check(self, provenance: Provenance) -> None:
        """Refuse another provenance than that of the scores that are there."""
        there = self._provenance()
        differ = there.differences(provenance) if there is not None else ()
        if differ:
            raise StoreError(
                f"The calibration store {self.path} holds scores that cannot be compared with these: "
                f"{'; '.join(differ)}; use what it was calibrated with {ELSEWHERE}."
            )


def _row(case: CalibrationCase, provenance: Provenance, now: str) -> tuple[object, ...]:
    texts = (case.question, case.context, case.prediction, case.true_answer)
    correct = None if case.correct is None else int(case.correct)
    key = query_hash(case.question, case.context)
    kind = None if case.kind is None else clean(case.kind)
    return (key, *map(clean, texts), float(case.score), now, *map(clean, astuple(provenance)), correct, kind)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


_READ: dict[str, Any] = {
    "int64": int,
    "str": lambda value: None if value is None else _text(value),
    "float64": lambda value: float(value) if isinstance(value, (int, float)) else math.nan,
    "boolean": lambda value: bool(value) if value in (0, 1) else None,
}


def _set_up(db: sqlite3.Connection, path: Path) -> None:
    """Create or migrate the table in one transaction; StoreError where the file holds something else."""
    if _is_ready(db, path):
        return
    with immediate(db):
        if _is_ready(db, path):  # another process was quicker
            return
        columns = set(_columns(db))
        sources = next((sources for old, sources in _OLD if columns == old), None)
        if sources is not None:
            db.execute(f"ALTER TABLE {TABLE} RENAME TO old_scores")
        elif db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise StoreError(
                f"{path} is a database of another program, not a calibration store; choose another file with "
                "--store."
            )
        db.execute(_SCHEMA)
        if sources is not None:
            _migrate(db, sources)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _is_ready(db: sqlite3.Connection, path: Path) -> bool:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    columns = _columns(db)
    if version > SCHEMA_VERSION and columns:
        raise StoreError(
            f"The calibration store {path} was written by a newer version of Leadline (format {version}; "
            f"this one reads up to {SCHEMA_VERSION}); update Leadline {ELSEWHERE}."
        )
    return bool(version == SCHEMA_VERSION and columns == [*_COLUMNS])


def _columns(db: sqlite3.Connection) -> list[str]:
    return [name for _, name, *_ in db.execute(f"PRAGMA table_info({TABLE})")]


def _migrate(db: sqlite3.Connection, sources: Mapping[str, str]) -> None:
    db.execute(
        f"INSERT INTO {TABLE} ({', '.join((*sources, *PROVENANCE))}) "
        f"SELECT {', '.join(sources.values())}, ?, ?, ?, ? FROM old_scores ORDER BY id",
        astuple(Provenance(TRUTH_SCORE, UNKNOWN, UNKNOWN, UNKNOWN)),
    )
    db.execute("DROP TABLE old_scores")
