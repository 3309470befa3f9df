"""The questions of a run as a list to work through: which match a condition, and which to read first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.conditions import matching
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.reviews import DISPUTED, STATUSES, Review
from core.severity import SEVERITIES
from core.socket import BEYOND_CHANCE, UNCLEAR, Finding, QuestionColumn
from core.spreadsheet import csv_bytes
from core.text.display import shorten

READING, RUN = "", "run"  # orders that no column gives: most worth reading first, as in the run
_FIRST = ("query_id", "question", "kind", "findings")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which questions are listed, and in what order; "" where a part does not restrict them.

    ``finding`` is ``<diagnostic>.<name>`` of one that names the question, ``where`` a condition as
    `core.conditions.where` writes it, ``label`` a text that one of the diagnostics' columns has, ``kind``
    that of the question, ``words`` what the question, its answer or its id contains, each of them, and
    ``status`` that of the review. ``sort``: ``""`` (most worth reading first), ``run``, or a column of
    `worklist`, with a minus sign before it where the largest come first.
    """

    finding: str = ""
    where: str = ""
    label: str = ""
    kind: str = ""
    words: str = ""
    status: str = ""
    sort: str = ""


def key_of(finding: Finding) -> str:
    """Return how a filter names a finding: ``<diagnostic>.<name>``."""
    return f"{finding.diagnostic}.{finding.name}"


def title_of(diagnosis: Diagnosis, finding: Finding) -> str:
    """Return what a finding says of each of its questions: its label, or the title of its definition."""
    if finding.label:
        return finding.label
    definitions = diagnosis.diagnostic(finding.diagnostic).definitions
    titles = (one.title for one in definitions if one.name == finding.name)
    return next(titles, finding.name.replace("_", " ").capitalize())


def columns_of(diagnosis: Diagnosis) -> Mapping[str, QuestionColumn]:
    """Return what diagnostics with data say of single questions: their columns, by name in `worklist`."""
    return {
        f"{diagnostic.name}.{column.name}": column
        for diagnostic in diagnosis.diagnostics
        if diagnostic.lacks(diagnosis.run) is None
        for column in diagnostic.columns
    }


def worklist(diagnosis: Diagnosis) -> pd.DataFrame:
    """Return one row per question, in the run's order: what every diagnostic says of it.

    Columns: ``query_id, question, kind``; ``findings``, the titles of the findings that name the question,
    gravest first, without those that count every case or that chance explains; ``<diagnostic>.<column>`` for
    every `QuestionColumn`, of diagnostics that do not lack data; and ``reading``, its place (from 1) when the
    questions most worth reading come first: by the gravest of ``findings``, their number, and the place that
    the gravest gives it. Kept beside a large saved run (`core.analyses.Analyses.kept`).
    """
    return diagnosis.kept("worklist", _worklist)


def _worklist(diagnosis: Diagnosis) -> pd.DataFrame:
    run = diagnosis.run
    ids = pd.Index(run.queries["query_id"])
    titles: list[list[str]] = [[] for _ in ids]
    number = np.zeros(len(ids), dtype=int)
    gravest = np.full(len(ids), len(SEVERITIES))
    place = np.zeros(len(ids), dtype=int)
    for finding in diagnosis.findings():
        # What chance explains is said of the run, of no question.
        by_chance = finding.tone == UNCLEAR and (finding.p_adjusted or 0.0) > BEYOND_CHANCE
        if finding.n >= finding.of or by_chance:
            continue
        title, severity = title_of(diagnosis, finding), SEVERITIES.index(finding.severity)
        position = _places(ids, finding)
        rows = np.flatnonzero(position >= 0)
        first = rows[number[rows] == 0]
        gravest[first], place[first] = severity, position[first]
        number[rows] += 1
        for row in rows.tolist():
            titles[row].append(title)
    order = np.lexsort((place, -number, gravest))
    frame = run.queries[["query_id", "question", "kind"]].copy()
    frame["findings"] = pd.Series(titles, index=frame.index, dtype="object")
    for name, column in columns_of(diagnosis).items():
        analysed = diagnosis[name.partition(".")[0]].queries.set_index("query_id")[column.name]
        frame[name] = analysed.reindex(ids).array
    frame["reading"] = np.argsort(order) + 1
    return frame


def _places(ids: pd.Index, finding: Finding) -> NDArray[np.int64]:
    """Return the place that a finding gives each question, -1 where it does not name it, (n,)."""
    rows = ids.get_indexer(pd.Index(finding.query_ids, dtype=ids.dtype))
    found = np.full(len(ids), -1)
    found[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    return found


def labels(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the texts that the diagnostics' columns have, in order of columns and then of the alphabet."""
    return tuple(
        dict.fromkeys(
            text for name in _texts(frame) for text in sorted(set(frame[name].dropna().astype(str)))
        )
    )


def _texts(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if "." in name and _is_text(frame[name])]


def _is_text(values: pd.Series) -> bool:
    known = values.dropna()
    return not known.empty and isinstance(known.iloc[0], str)


def orders(diagnosis: Diagnosis, frame: pd.DataFrame) -> Mapping[str, str]:
    """Return the orders that a worklist can have, with a title each; its texts are for filters."""
    found = {READING: "Most worth reading first", RUN: "Order of the run"}
    for name, column in columns_of(diagnosis).items():
        if not column.is_list and frame[name].notna().any() and not _is_text(frame[name]):
            ends = ("no", "yes") if column.pattern == "bool" else ("lowest", "highest")
            found |= {
                f"{sign}{name}": f"{column.title}, {end} first"
                for sign, end in zip(("", "-"), ends, strict=True)
            }
    return found


def select(
    diagnosis: Diagnosis,
    frame: pd.DataFrame,
    wanted: Filter,
    reviews: Mapping[str, Review],
    disputed: Collection[str] = (),
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the rows of a worklist that a filter lets through, in its order, and what it asked in vain.

    A part of the filter that names something unknown restricts nothing, and has a sentence among the second
    result. The rows have the columns ``status`` and ``note`` of the ``reviews`` by question; the others are
    open. The filter's status may also be `DISPUTED`: the questions that are ``disputed`` between people.
    """
    found = [reviews.get(query_id, Review()) for query_id in frame["query_id"]]
    frame = frame.assign(
        status=pd.Series([one.status for one in found], index=frame.index, dtype="str"),
        note=pd.Series([one.note for one in found], index=frame.index, dtype="str"),
    )
    tests: Mapping[str, Callable[[str], Any]] = {
        "finding": lambda key: _places_by(diagnosis, frame, key) >= 0,
        "where": lambda text: frame["query_id"].isin(matching(diagnosis, text)),
        "label": lambda text: frame[_texts(frame)].eq(text).fillna(False).any(axis=1),
        "kind": lambda text: frame["kind"].eq(text).fillna(False),
        "words": lambda text: _has_words(diagnosis, text),
        "status": lambda text: (
            frame["query_id"].isin(disputed) if text == DISPUTED else frame["status"].eq(text)
        ),
    }
    met, problems = np.ones(len(frame), dtype=bool), []
    for part, test in tests.items():
        value = getattr(wanted, part)
        try:
            listed = np.asarray(test(value), dtype=bool) if value else met
            unknown = (
                value not in (*STATUSES, DISPUTED)
                if part == "status"
                else part in _IN_VAIN and not listed.any()
            )
            if value and unknown:
                raise InputError(_IN_VAIN[part].format(shorten(value)))
            met = met & listed
        except InputError as error:
            problems.append(f"{error} All questions are listed.")
    try:
        shown = _sorted(diagnosis, frame[met], wanted)
    except InputError as error:
        problems.append(str(error))
        shown = _sorted(diagnosis, frame[met], replace(wanted, sort=READING))
    return shown, tuple(problems)


# What is said of a value of a filter that names nothing.
_IN_VAIN = {
    "finding": "No finding {!r} names a question of this run at these settings.",
    "label": "No question has the label {!r}.",
    "kind": "No question is of the kind {!r}.",
    "status": f"{{!r}} is no status; they are {', '.join(STATUSES)}.",
}


def _has_words(diagnosis: Diagnosis, text: str) -> Any:
    queries = diagnosis.run.queries
    said = queries["query_id"] + "\n" + queries["question"].fillna("") + "\n" + queries["answer"].fillna("")
    said = said.str.casefold()
    met = np.ones(len(said), dtype=bool)
    for word in text.casefold().split():
        met &= said.str.contains(word, regex=False).to_numpy(dtype=bool)
    return met


def _sorted(diagnosis: Diagnosis, frame: pd.DataFrame, wanted: Filter) -> pd.DataFrame:
    """Sort; most worth reading first is, among the questions of a finding, the order that it gives them."""
    sort = wanted.sort
    if sort not in orders(diagnosis, frame):
        raise InputError(f"Questions cannot be sorted by {shorten(sort)!r}.")
    if sort == RUN:
        return frame
    if sort == READING:
        places = _places_by(diagnosis, frame, wanted.finding)
        return frame.iloc[np.lexsort((frame["reading"], places))]
    name = sort.removeprefix("-")
    return frame.sort_values(name, ascending=not sort.startswith("-"), kind="stable", na_position="last")


def _places_by(diagnosis: Diagnosis, frame: pd.DataFrame, key: str) -> NDArray[np.int64]:
    """Return `_places` of the findings of a key; of several, the last one that names the question says."""
    ids = pd.Index(frame["query_id"])
    found = np.full(len(ids), -1)
    for finding in diagnosis.findings() if key else ():
        if key_of(finding) == key:
            place = _places(ids, finding)
            found = np.where(place >= 0, place, found)
    return found


def worklist_csv(diagnosis: Diagnosis, frame: pd.DataFrame) -> bytes:
    """Return a selected worklist as CSV: formulas neutralised, with status and note of every question."""
    names = [*_FIRST, "status", "note", *(name for name in frame if "." in name)]
    return csv_bytes(frame[names], diagnosis.run.data_source)
