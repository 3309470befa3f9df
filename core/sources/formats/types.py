"""What a file format of another tool must say of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from core.sources.formats.records import Record
from core.sources.report import IssueLog


class BadEntry(NamedTuple):
    """A line or row that could not even be parsed: its number, what would be right, and its text."""

    number: int
    expected: str
    text: str


@dataclass(frozen=True, slots=True)
class Content:
    """A file, parsed as far as it can be without knowing its format.

    Attributes
    ----------
    name : str
        Name of the file, for messages.
    kind : {"json", "jsonl", "csv"}
        How it is written.
    value : Any
        The parsed JSON value where ``kind`` is json, else None.
    entries : sequence of (int, object)
        The candidates for records with their 1-based number (line, or row of a spreadsheet): the entries of a
        JSON list, the lines of JSON Lines, the rows of a CSV (cells as text, empty ones left out). For a JSON
        object: empty, except that a single list found under one of its keys is *not* opened here.
    columns : tuple of str
        Column names of a CSV.
    notes : tuple of str
        Remarks on encoding and the like.
    bad : tuple of BadEntry
        Lines and rows that could not be parsed; `core.sources.formats.import_file` reports them.
    """

    name: str
    kind: Literal["json", "jsonl", "csv"]
    value: Any = field(repr=False)
    entries: Sequence[tuple[int, Any]] = field(repr=False)
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    bad: tuple[BadEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """What a format's reader made of a file.

    ``rejected`` holds ``(number, reason, entry)`` of each entry that could not be used; the issue log says
    the same with field and value.
    """

    records: Sequence[Record]
    rejected: Sequence[tuple[int, str, Any]] = ()
    n_entries: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    Attributes
    ----------
    name, title : str
        As in ``--format``, and for people.
    suffix : str
        Ending of files that `write` makes, with the dot.
    recognise : callable
        From content to the number of tell-tale names found in it: 0 = not this format, and the largest wins.
    read : callable
        From content and an issue log to records; InputError only where the file as a whole is not of this
        format.
    write : callable
        From records to a file of this format.
    losses : tuple of str
        What does not come back when a file is read and written again, one sentence each.
    fields : Mapping of str to str
        What a user may name columns for (question, answer, passages, references, samples, id), and this
        format's own name of each; empty where records are not flat.
    """

    name: str
    title: str
    suffix: str
    recognise: Callable[[Content], int]
    read: Callable[[Content, IssueLog], ReadRecords]
    write: Callable[[Sequence[Record]], bytes]
    losses: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


def share_of(entries: Sequence[tuple[int, Any]], names: Sequence[str], most: int = 50) -> Mapping[str, float]:
    """Return for each name the share of the first entries that have it and are objects."""
    first = [entry for _, entry in entries[:most]]
    objects = [entry for entry in first if isinstance(entry, Mapping)]
    return {name: sum(name in entry for entry in objects) / max(1, len(first)) for name in names}
