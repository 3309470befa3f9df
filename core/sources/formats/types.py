"""The description of a file format of another tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from core.sources.content import Content
from core.sources.fields import Rejected
from core.sources.formats.records import Record
from core.sources.report import IssueLog, shorten

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """The result of a format's reader.

    ``rejected`` holds ``(number, reason, entry)`` of each entry that could not be used; the issue log says
    the same with field and value. ``unused`` are the fields that no reader used. A table of whole columns
    gives the ``tables`` of the run, made of ``n_rows`` rows; it may say itself what is ``possible``, what was
    rejected (as a table) and which columns it took for which fields (``mapping``).
    """

    records: Sequence[Record]
    rejected: Sequence[Rejected] | pd.DataFrame = ()
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    n_rows: int | None = None
    possible: tuple[list[str], list[str]] | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    ``name`` is as in ``--format``, ``title`` for people, ``suffix`` the ending of written files, with the
    dot. ``recognise`` returns the number of tell-tale names found: 0 = not this format, and the largest wins.
    ``read`` raises InputError only where the file as a whole is not of this format. Without ``write`` a
    format is read only. ``losses`` are what a round trip loses, one sentence each. ``fields`` are what a user
    may name columns for, with the format's own name of each; empty where records are not flat.
    """

    name: str
    title: str
    suffix: str
    recognise: Callable[[Content], int]
    read: Callable[[Content, IssueLog], ReadRecords]
    write: Callable[[Sequence[Record]], bytes] | None
    losses: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


def not_used(names: Sequence[str], kept: bool = True) -> list[str]:
    """Return the note on fields that are only kept, or not even that, if there are any."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    shown = ", ".join(map(shorten, names[:_SHOWN]))
    how = "Not used in calculations, only kept" if kept else "Columns not used"
    return [f"{how}: {shown}{more}."] if names else []


def as_dataset(name: str, corpus: bool = False) -> str:
    """Return what to do with a file of questions; with ``corpus`` it has nothing to answer them from."""
    documents = " --corpus DOCUMENTS" if corpus else ""
    return f"run it with `python -m core analyze {name}{documents} --out RUN`, or on the page Live run"


def count_names(present: set[str], telltale: Iterable[str], common: Iterable[str]) -> int:
    """Return how many names of a format are there; 0 without one that only this format uses."""
    n = len(present.intersection(telltale))
    return n + len(present.intersection(common)) if n else 0
