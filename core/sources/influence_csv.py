"""Import of influence files: one row per question and passage, as the published tool writes them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from core.errors import InputError
from core.run import MARKS, Run, marked_source
from core.sources.checks import ColumnChecks
from core.sources.encoding import read_source, to_utf8
from core.sources.influence_rows import Rows, check_rows
from core.sources.influence_tables import passage_table, query_table
from core.sources.mapping import MAPPABLE, PUBLISHED_COLUMNS, check_mapping, suggest_mapping
from core.sources.report import IssueLog, ValidationReport, shorten
from core.sources.table import RawTable, some_rows, table_of
from core.spreadsheet import restore

__all__ = [
    "MAPPABLE",
    "PUBLISHED_COLUMNS",
    "Imported",
    "read_influence_csv",
    "suggest_mapping",
]

_MARK_COLUMN = "data_source"

# Analysis -> the fields of which it needs any.
_ANALYSES: Mapping[str, tuple[str, ...]] = {
    "influence vs retrieval": ("question",),
    "comparison with the file's own verdicts": ("reported_rho", "reported_divergent"),
    "empty answers and refusals": ("answer",),
    "retrieval scores": ("retrieval_score",),
    "passage texts": ("text",),
    "word diff of ablated answers": ("ablated_answer",),
    "parametric and redundant answers": ("closed_book_answer",),
    "correct and incorrect answers, harmful passages": ("reference_answers",),
    "gold passages": ("is_gold",),
}


@dataclass(frozen=True, slots=True)
class Imported:
    """A run made of a file, and the import report."""

    run: Run
    report: ValidationReport


def read_influence_csv(
    source: bytes | str | os.PathLike[str], name: str | None = None, mapping: Mapping[str, str] | None = None
) -> Imported:
    """Read a file of influences: one row per question and passage.

    Parameters
    ----------
    source : bytes or path
        The file; separators, encodings and gzip as in `core.sources.table.read_table`.
    name : str, optional
        Name of the run and of the file in messages; a path's own name by default.
    mapping : Mapping of str to str, optional
        Schema field to column; `suggest_mapping` by default.

    Returns
    -------
    Imported
        The run holds the good rows; ``report.rejected`` holds the others with the reason of each.
        Values that the file reports of itself become ``reported_*`` and are only compared. A blank
        influence keeps its row: the question is then undefined (``incomplete``).

    Raises
    ------
    InputError
        The file cannot be read as a table, a needed column is missing, or no row can be used.

    Notes
    -----
    Cost: no LLM calls; a million rows take seconds.
    """
    label = name or (Path(source).name if not isinstance(source, bytes) else "The file")
    queries, passages, manifest, report = _read(source, label, mapping)
    pa.default_memory_pool().release_unused()
    return Imported(Run.create(manifest, queries=queries, passages=passages), report)


def _read(
    source: bytes | str | os.PathLike[str], label: str, mapping: Mapping[str, str] | None
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any], ValidationReport]:
    """Return the tables of a file, what its run is, and the report.

    Whatever else was made of the file is free again when the run is made: each step holds only what it needs.
    """
    table, digest = _table(source, label)
    columns = list(table.frame.columns)
    fields = check_mapping(suggest_mapping(columns) if mapping is None else mapping, columns, label)
    frame, marked = _own_export(table.frame)
    log = IssueLog()
    _log_ragged(table, log)
    checks = ColumnChecks(frame, fields, log, decimal_comma=table.delimiter != ",")
    rows = check_rows(checks)
    if not rows.kept.size:
        n_rows = len(frame) + len(table.rejected)
        raise InputError(log.nothing_usable(label, n_rows, "rows", "row", "column"))
    # pyarrow keeps what it has freed, which is as much as the file here, until it is told.
    pa.default_memory_pool().release_unused()
    queries = query_table(checks, rows)
    pa.default_memory_pool().release_unused()
    passages = passage_table(checks, rows, queries)
    notes = [*table.notes, *rows.notes]
    unused = [c for c in columns if c not in fields.values() and c != _MARK_COLUMN]
    if unused:
        notes.append(f"Columns not used: {', '.join(map(shorten, unused[:40]))}.")
    if checks.used_decimal_comma:
        notes.append("Commas in numbers were read as decimal points.")
    notes += mark_notes(marked)
    report = _report(checks, rows, table, notes, unused)
    return queries, passages, upload_manifest(digest, label, report, {}, fields, marked), report


def _table(source: bytes | str | os.PathLike[str], label: str) -> tuple[RawTable, str]:
    data = read_source(source, label)
    digest, text = digest_of(data), to_utf8(data, label)
    del data  # the text may be a copy
    return table_of(text, label), digest


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(data).hexdigest()


def upload_manifest(
    digest: str,
    name: str,
    report: ValidationReport,
    facts: Mapping[str, str],
    mapping: Mapping[str, str],
    marked: str,
) -> dict[str, Any]:
    """Return the manifest of a run made of a file with this digest.

    Equal bytes read in the same way give the same run id, whatever the file is called. ``marked`` is the
    source that the file names by its mark, "" without one.
    """
    key = json.dumps([digest, *facts.values(), mapping])
    return {
        "run_id": hashlib.sha256(key.encode()).hexdigest()[:12],
        "name": name,
        "source": marked or "upload",
        "dataset": {
            "name": name,
            "digest": digest,
            **facts,
            "rows": report.n_rows,
            "kept": report.n_kept,
            "rejected": report.n_rejected,
            **({"mapping": dict(mapping)} if mapping else {}),
        },
        "notes": list(report.notes),
    }


def mark_notes(source: str) -> list[str]:
    """Return the note about a file that carries the mark of a source."""
    if not source:
        return []
    return [f"The file says that its data are {MARKS[source]}, so the run is marked as {MARKS[source]}."]


def _own_export(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Undo the neutralised formulas of our own export, and see which source it is marked with."""
    if _MARK_COLUMN not in frame.columns:
        return frame, ""
    restored = pd.DataFrame({name: restore(frame[name]) for name in frame.columns}, copy=False)
    return restored, next(filter(None, map(marked_source, frame[_MARK_COLUMN].unique())), "")


def _log_ragged(table: RawTable, log: IssueLog) -> None:
    shown = table.rejected.head(log.room)
    for row, reason, text in shown.itertuples(index=False):
        log.add(row, None, text, reason)
    log.count_more(len(table.rejected) - len(shown))


def _report(
    checks: ColumnChecks, rows: Rows, table: RawTable, notes: list[str], unused: list[str]
) -> ValidationReport:
    bad = np.flatnonzero(checks.bad)
    rejected = pd.DataFrame({_not_ours(name): some_rows(checks.frame[name], bad) for name in checks.frame})
    rejected.index = checks.frame.index[bad]
    rejected.insert(0, "reason", pd.Series(checks.reason[bad], index=rejected.index, dtype="str"))
    rejected.insert(0, "row", rejected.index)
    if len(table.rejected):
        ragged = table.rejected.assign(reason="expected " + table.rejected["reason"])
        rejected = pd.concat([rejected, ragged]).sort_values("row", kind="stable")
        rejected = rejected.astype({"row": "int64"})
    enables = [what for what, fields in _ANALYSES.items() if any(map(checks.has, fields))]
    missing = [f"{what}: needs {' or '.join(_ANALYSES[what])}" for what in _ANALYSES if what not in enables]
    missing.append("noise floor: needs repeated calls, which such a file cannot hold")
    rejected = rejected.reset_index(drop=True)
    return checks.log.report(rows.kept.size, rejected, notes, (enables, missing), unused)


def _not_ours(column: str) -> str:
    """Keep a file's own columns apart from ours: its ``reason`` becomes ``reason (file)``."""
    return f"{column} (file)" if re.fullmatch(r"(row|reason)( \(file\))*", column) else column
