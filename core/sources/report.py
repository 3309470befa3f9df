"""The import report: problems in a file, row by row, and what was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import pandas as pd

from core.text.display import shorten as shorten

Severity = Literal["error", "warning"]
T = TypeVar("T")
MAX_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing wrong with one value, which is shortened to 80 characters.

    ``row`` is the 1-based row of a spreadsheet (the header is row 1) or line of a JSON Lines file; None for
    the file as a whole. An error leaves the row out; a warning does not.
    """

    row: int | None
    column: str | None
    value: str
    expected: str
    severity: Severity = "error"

    def __str__(self) -> str:
        place = [f"row {self.row}"] if self.row is not None else []
        place += [f"column {self.column}"] if self.column is not None else []
        where = f"{', '.join(place)}: " if place else ""
        text = f"{where}found {self.value!r}, expected {self.expected}."
        return text[0].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What became of a file's rows (or lines with content).

    ``issues`` are the first 1,000, in file order; ``n_issues`` and ``n_errors`` count all. ``rejected`` holds
    the rows left out, after the columns ``row`` and ``reason``; ``ignored`` are the columns that no
    calculation uses. ``enables`` and ``missing`` list what can and cannot be computed from the file.
    """

    n_rows: int
    n_kept: int
    issues: tuple[Issue, ...]
    rejected: pd.DataFrame = field(repr=False)
    notes: tuple[str, ...] = ()
    enables: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    n_issues: int = 0
    n_errors: int = 0
    ignored: tuple[str, ...] = ()

    @property
    def n_rejected(self) -> int:
        """How many rows were kept out."""
        return self.n_rows - self.n_kept

    @property
    def n_warnings(self) -> int:
        """How many issues are warnings; their rows are kept."""
        return self.n_issues - self.n_errors

    def to_frame(self) -> pd.DataFrame:
        """Return the listed issues: ``row, column, value, expected, severity``."""
        types = {"row": "Int64", **dict.fromkeys(("column", "value", "expected", "severity"), "str")}
        rows = [[getattr(issue, name) for name in types] for issue in self.issues]
        return pd.DataFrame(rows, columns=list(types)).astype(types)


@dataclass(slots=True)
class IssueLog:
    """Collects issues while a file is read: lists up to 1,000 of each severity, counts all."""

    counts: dict[str, int] = field(default_factory=lambda: {"error": 0, "warning": 0})
    _listed: list[Issue] = field(default_factory=list)

    def add(
        self, row: int | None, column: str | None, value: object, expected: str, severity: Severity = "error"
    ) -> None:
        """Note one issue."""
        self.add_many([row], column, [value], expected, severity)

    def add_many(
        self,
        rows: Iterable[int | None],
        column: str | None,
        values: Iterable[object],
        expected: str,
        severity: Severity = "error",
    ) -> None:
        """Note the same issue for many rows; ``rows`` and ``values`` are equally long."""
        for row, value in zip(rows, values, strict=True):
            self.counts[severity] += 1
            if self.counts[severity] <= MAX_LISTED:
                place = None if row is None else int(row)
                self._listed.append(Issue(place, column, shorten(value), expected, severity))

    def count_more(self, n: int, severity: Severity = "error") -> None:
        """Count ``n`` further issues that are not listed."""
        self.counts[severity] += n

    @property
    def first_error(self) -> Issue | None:
        """The first error in the file."""
        errors = [issue for issue in self._listed if issue.severity == "error"]
        return min(errors, key=lambda issue: issue.row or 0, default=None)

    @property
    def n_issues(self) -> int:
        """How many issues there are, listed or not."""
        return sum(self.counts.values())

    def report(
        self,
        n_kept: int,
        rejected: pd.DataFrame,
        notes: Iterable[str],
        possible: tuple[Iterable[str], Iterable[str]] = ((), ()),
        ignored: Iterable[str] = (),
    ) -> ValidationReport:
        """Return the report on a file; ``possible`` as `possibilities` gives it."""
        enables, missing = tuple(possible[0]), tuple(possible[1])
        n, counts = n_kept + len(rejected), (self.n_issues, self.counts["error"])
        return ValidationReport(
            n, n_kept, self.listed(), rejected, tuple(notes), enables, missing, *counts, tuple(ignored)
        )

    def nothing_usable(self, name: str, n: int, things: str, place: str, column: str = "field") -> str:
        """Return the message that no row, line or record can be used, with the first problem."""
        first = self.first_error
        if first is None:
            return f"{name} has no {things} with content."
        where = f"{place} {first.row}" + (f", {column} {first.column}" if first.column else "")
        return (
            f"None of the {n:,} {things} of {name} can be used: {where}: found {first.value!r}, "
            f"expected {first.expected}."
        )

    def listed(self) -> tuple[Issue, ...]:
        """Return the issues in order of the file, errors before warnings of the same row; capped."""
        ordered = sorted(self._listed, key=lambda issue: (issue.row or 0, issue.severity))
        if len(ordered) > MAX_LISTED:
            # Errors decide what is lost, so they are shown before any warning when not all fit.
            ordered = sorted(sorted(ordered, key=lambda i: i.severity)[:MAX_LISTED], key=lambda i: i.row or 0)
        return tuple(ordered)


def rejected_frame(rejected: Iterable[tuple[int, str, str]]) -> pd.DataFrame:
    """Return ``row, reason, text`` of what was kept out, in order of the file."""
    rows = sorted(rejected, key=lambda entry: entry[0])
    frame = pd.DataFrame(rows, columns=["row", "reason", "text"])
    return frame.astype({"row": "int64", "reason": "str", "text": "str"})


def possibilities(
    questions: Sequence[T], analyses: Iterable[tuple[str, Callable[[T], bool], str]]
) -> tuple[list[str], list[str]]:
    """Return one line per analysis that the questions (at least one) allow, and one per analysis they do not.

    ``analyses`` are (name, whether a question has what it needs, what that is). Where only some questions
    have it, the line says how many.
    """
    enables, missing = [], []
    for what, test, needs in analyses:
        n = sum(map(test, questions))
        share = "" if n == len(questions) else f" ({n:,} of {len(questions):,} questions)"
        if n:
            enables.append(what + share)
        else:
            missing.append(f"{what}: needs {needs}")
    return enables, missing


def counted(n: int, thing: str) -> str:
    """Return ``1 question`` or ``2,000 questions``."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"
