"""Files of the command line: data sets, folders of runs, exports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.cli.output import log
from core.errors import InputError
from core.files import write_atomically
from core.run import Run, check_target, holds_run, read_manifest, sole_writer
from core.sources.continue_run import open_questions
from core.sources.dataset import Dataset, load_dataset
from core.sources.report import ValidationReport

_ISSUES_SHOWN = 20


def open_dataset(path: str, limit: int | None, corpus: str | None = None) -> Dataset:
    """Read a data set, or the questions of a saved run, and log the problems found."""
    data = load_dataset(path, corpus=corpus) if corpus is not None else open_questions(path)
    log_report(data.report, path)
    return data if limit is None else data.head(limit)


def log_report(report: ValidationReport, source: str) -> None:
    """Log the detected format of a file and the problems found in it."""
    for note in report.notes:
        log(f"{source}: {note}")
    for issue in report.issues[:_ISSUES_SHOWN]:
        where = (("row", issue.row), ("column", issue.column))
        place = ", ".join(f"{what} {value}" for what, value in where if value is not None)
        found = f"found {issue.value!r}, expected {issue.expected} ({issue.severity})."
        log(f"{source}, {place or 'file'}: {found}")
    if report.n_issues > _ISSUES_SHOWN:
        log(f"{source}: and {report.n_issues - _ISSUES_SHOWN:,} more.")
    if report.n_kept < report.n_rows:
        log(f"{source}: {report.n_kept:,} of {report.n_rows:,} rows are used.")


def log_possible(report: ValidationReport) -> None:
    """Log which analyses a file allows, and what the others need."""
    for what in report.enables:
        log(f"  allows {what}")
    for what in report.missing:
        log(f"  cannot show {what}")


def occupant(out: str) -> dict[str, Any] | None:
    """Return the manifest of the run that a folder holds, if any."""
    return read_manifest(out) if holds_run(out) else None


def check_free(run_id: str, out: str, overwrite: bool) -> None:
    """Raise InputError, before any work, where a folder holds another run or other files."""
    check_target(out)
    there = None if overwrite else occupant(out)
    if there is not None and there.get("run_id") != run_id:
        raise InputError(
            f"{out} already holds another run, {there.get('name')!r} ({there.get('run_id')}): "
            "give another --out, or --overwrite to replace it."
        )


def save_run(run: Run, out: str, overwrite: bool) -> None:
    """Save a run; InputError where the folder holds another one that may not be replaced."""
    with sole_writer(out):
        check_free(run.run_id, out, overwrite)
        run.save(out)


def free_file(out: str, overwrite: bool, option: str = "--out") -> Path:
    """Return the path of a file to write; InputError where it exists and may not be replaced."""
    if os.path.lexists(out) and not overwrite:
        raise InputError(f"{out} exists; give another {option} or --overwrite.")
    return Path(out)


def write_file(target: Path, content: bytes) -> None:
    """Write a file atomically."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, content)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error


def option_pairs(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    """Read ``name=value`` texts of a repeatable option."""
    pairs = []
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.strip() or not value.strip():
            raise InputError(f"{option} must be name=value, got {text!r}.")
        pairs.append((name.strip(), value.strip()))
    return pairs
