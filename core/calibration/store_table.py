"""The table of a calibration store: created, migrated from that of rag_uq, or refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path

from core.calibration.provenance import UNKNOWN, Provenance
from core.database import StoreWords, immediate
from core.errors import InputError

SCHEMA_VERSION = 1
TABLE = "calibration_scores"
METHOD = "calibration_method"  # at most one row, and only where a confidence is weighed
# The score of stores that rag_uq has made: it needs the true answer, so a new answer has none.
TRUTH_SCORE = "1 − ROUGE-L to the true answer"
# Columns with their types in pandas; the first eight are those that rag_uq documents.
TYPES: Mapping[str, str] = {
    "id": "int64",
    "query_hash": "str",
    "question": "str",
    "context": "str",
    "prediction": "str",
    "true_answer": "str",
    "nonconformity_score": "float64",
    "timestamp": "str",
    "score_name": "str",
    "model": "str",
    "prompt": "str",
    "retriever": "str",
    "correct": "boolean",
    "kind": "str",
    "excluded": "str",
}
PROVENANCE = ("score_name", "model", "prompt", "retriever")
_SCHEMA = f"""
CREATE TABLE {TABLE} (
    id INTEGER PRIMARY KEY,
    query_hash TEXT UNIQUE,
    question TEXT,
    context TEXT,
    prediction TEXT,
    true_answer TEXT,
    nonconformity_score REAL,
    timestamp DATETIME,
    score_name TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    retriever TEXT NOT NULL,
    correct INTEGER,
    kind TEXT,
    excluded TEXT
)
"""
# What fills the first eight columns, from the table that rag_uq documents and from the one it makes.
_DOCUMENTED = {name: name for name in list(TYPES)[:8]}
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


def set_up(db: sqlite3.Connection, path: Path) -> None:
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
    return bool(version == SCHEMA_VERSION and columns == [*TYPES])


def _columns(db: sqlite3.Connection) -> list[str]:
    return [name for _, name, *_ in db.execute(f"PRAGMA table_info({TABLE})")]


def _migrate(db: sqlite3.Connection, sources: Mapping[str, str]) -> None:
    db.execute(
        f"INSERT INTO {TABLE} ({', '.join((*sources, *PROVENANCE))}) "
        f"SELECT {', '.join(sources.values())}, ?, ?, ?, ? FROM old_scores ORDER BY id",
        astuple(Provenance(TRUTH_SCORE, UNKNOWN, UNKNOWN, UNKNOWN)),
    )
    db.execute("DROP TABLE old_scores")
