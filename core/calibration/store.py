"""The calibration scores on disk: one row per question with its context, of one score and one model only.

Their table is created, migrated from that of rag_uq, or refused (`core.migrations`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from core.calibration.provenance import Provenance
from core.database import Database, Server, StoreWords, shared, version_table
from core.errors import InputError
from core.text.display import shorten
from core.text.strict import clean, finite

STORE = "calibration"
SCHEMA_VERSION = 1  # of files that no table of Alembic speaks of
TABLE = "calibration_scores"
METHOD = "calibration_method"  # at most one row, where a confidence is weighed
# Columns with their types in pandas; the first eight are those that rag_uq documents.
_COLUMNS: Mapping[str, str] = {
    "id": "int64",
    **dict.fromkeys(("query_hash", "question", "context", "prediction", "true_answer"), "str"),
    "nonconformity_score": "float64",
    **dict.fromkeys(("timestamp", "score_name", "model", "prompt", "retriever"), "str"),
    "correct": "boolean",
    **dict.fromkeys(("kind", "excluded"), "str"),
}
PROVENANCE = ("score_name", "model", "prompt", "retriever")
# The columns of the table that rag_uq documents, and of the one that it makes.
_DOCUMENTED = {*list(_COLUMNS)[:8]}
_OLD = (
    _DOCUMENTED,
    _DOCUMENTED - {"context", "prediction", "timestamp"} | {"predicted_answer", "created_at", "rouge_l"},
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

    Where ``LEADLINE_DATABASE`` names a database, a store is a schema in it, named after the file; its folder
    does not matter. One instance may be shared by threads, one file by processes. What `add` has returned
    survives a kill and a full disk. The table ``calibration_scores`` has the columns that rag_uq documents,
    then ``score_name, model, prompt, retriever`` (`Provenance`), ``correct`` (1, 0 or NULL), ``kind`` (group)
    and ``excluded`` (the reason, NULL where the score is used). A file made by rag_uq is migrated on opening:
    its scores are the distance to the true answer, and never mix with scores that a new answer has, too.

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
        self._db = Database(_place(self.path), WORDING, lambda db: _set_up(db, self.path))
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
            rows = self._db.execute(f"SELECT content FROM {METHOD} LIMIT 1")
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
        StoreError, and nothing is added, where the store holds scores of another one; likewise InputError
        where a score is infinite.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows = [_row(number, case, provenance, now) for number, case in enumerate(cases, start=1)]
        marks = ",".join("?" * len(_WRITTEN))
        insert = f"INSERT INTO {TABLE} ({', '.join(_WRITTEN)}) VALUES ({marks}) ON CONFLICT (query_hash) DO "
        # To SQL "excluded" is here the row that was to be inserted.
        new = ", ".join(f"{name} = excluded.{name}" for name in _WRITTEN)
        insert += f"UPDATE SET {new}" if replace else "NOTHING"

        def added() -> int:
            self._check(provenance)
            before = self._n_rows()
            for row in rows:
                self._db.execute(insert, row)
            if method is not None:
                self._db.execute(f"DELETE FROM {METHOD}")
                self._db.execute(f"INSERT INTO {METHOD} VALUES (?)", (method,))
            return self._n_rows() - before

        with self._lock:
            return self._db.write(added)

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
            kind = _COLUMNS[name]
            found[name] = pd.Series([_READ[kind](value) for value in values], dtype=kind)
        return pd.DataFrame(found)

    def _mark(self, ids: Sequence[int], reason: str | None) -> None:
        def marked() -> None:
            for one in map(int, ids):
                if not self._db.execute(f"SELECT 1 FROM {TABLE} WHERE id = ?", (one,)):
                    raise InputError(f"The calibration store {self.path} has no row with the id {one}.")
                self._db.execute(f"UPDATE {TABLE} SET excluded = ? WHERE id = ?", (reason, one))

        with self._lock:
            self._db.write(marked)

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


def _row(number: int, case: CalibrationCase, provenance: Provenance, now: str) -> tuple[object, ...]:
    if math.isinf(case.score):
        raise InputError(
            f"The score of case {number} ({shorten(case.question)!r}) must be finite, or NaN where it is "
            f"undefined; got {case.score}."
        )
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
    "float64": lambda value: math.nan if (found := finite(value)) is None else found,
    "boolean": lambda value: bool(value) if value in (0, 1) else None,
}


def exists(path: str | os.PathLike[str]) -> bool:
    """Tell whether there is a calibration store of this name; opening one creates it."""
    where = _place(Path(path))
    if isinstance(where, Path):
        return where.is_file()
    found = Database(where, WORDING, lambda _: None)
    try:
        return found.has_table(TABLE)
    finally:
        found.close()


def _place(path: Path) -> Path | Server:
    """Return where a store is kept: in a schema named after the file, or in the file itself."""
    name = re.sub(r"[^a-z0-9]+", "_", path.stem.lower())[:40]
    if name != path.stem:
        name += "_" + hashlib.sha256(str(path.name).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return shared(f"leadline_calibration_{name}") or path


def _set_up(db: Database, path: Path) -> None:
    """Create or migrate the tables; StoreError where the file holds something else, which stays as it is."""
    if not db.is_server and not db.has_table(version_table(STORE)):
        _refuse(db, path)
    db.migrate(STORE)
    if not db.is_server and db.execute("PRAGMA user_version") != [(SCHEMA_VERSION,)]:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")  # earlier versions of Leadline read it


def _refuse(db: Database, path: Path) -> None:
    """Raise StoreError where a file is neither empty nor a store of an earlier version or of rag_uq."""
    version = db.execute("PRAGMA user_version")[0][0]
    columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info({TABLE})")]
    if version > SCHEMA_VERSION and columns:
        raise StoreError(
            f"The calibration store {path} was written by a newer version of Leadline (format {version}; "
            f"this one reads up to {SCHEMA_VERSION}); update Leadline {ELSEWHERE}."
        )
    known = (version == SCHEMA_VERSION and columns == [*_COLUMNS]) or set(columns) in _OLD
    if not known and db.execute("SELECT 1 FROM sqlite_master LIMIT 1"):
        raise StoreError(
            f"{path} is a database of another program, not a calibration store; choose another file with "
            "--store."
        )
