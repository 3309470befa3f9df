"""The questions of a run as a list to work through: which match a condition, and which to read first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd

from core.diagnosis import SEVERITIES, Diagnosis, Finding, QuestionColumn
from core.errors import InputError
from core.reviews import STATUSES, Review
from core.schema import TABLES as RAW
from core.spreadsheet import csv_bytes
from core.text.display import number, shorten

TABLES = ("queries", "passages", "claims")
READING, RUN = "", "run"  # orders that no column gives: most worth reading first, as in the run
_SIGNALS = "signals"
_RANGE = ".."
_CONDITION = re.compile(r"([a-z_]+)\.([a-z_]+)\.(.+)", re.DOTALL)
_HALF = re.compile(r"\d{1,9}\.5")  # ends of a range of whole ranks
_FIRST = ("query_id", "question", "kind", "findings")
# Columns that no definition explains, where their name alone would not do for people.
_TITLES = {
    "above_noise": "above noise",
    "drift_p": "p-value of the drift test",
    "is_gold": "gold passage",
    "k": "passages",
    "label": "label",
    "label_reason": "undefined because",
    "lexical": "lexical retrieval score",
    "llm_score": "stated confidence of the model",
    "n_supported": "supported claims",
    "ndcg_by_chance": "nDCG by chance",
    "quadrant": "passage",
    "reason": "undefined because",
    "retrieval_order": "retrieval rank",
    "set_covers": "set holds a correct answer",
    "similarity": "similarity of question and passages",
    "state": "claim",
}
# Where a tie spans several ranks, a condition asks for the first and the last of them.
_SPAN = ("best_influence_rank", "worst_influence_rank", "influence rank")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which questions are listed, and in what order; "" where a part does not restrict them.

    Attributes
    ----------
    finding : str
        ``<diagnostic>.<name>`` of a finding that names the question.
    where : str
        A condition as `where` writes it.
    label : str
        A text that one of the diagnostics' columns has.
    kind : str
        Kind of the question, a label of its data set.
    words : str
        Words that the question, its answer or its id contains, each of them.
    status : str
        Status of the review.
    sort : str
        ``""`` (most worth reading first), ``run``, or a column of `worklist`, with a minus sign before it
        where the largest come first.
    """

    finding: str = ""
    where: str = ""
    label: str = ""
    kind: str = ""
    words: str = ""
    status: str = ""
    sort: str = ""

    @property
    def restricts(self) -> bool:
        """Whether any part but the order is given."""
        return replace(self, sort="") != Filter()


def where(diagnostic: str, table: str, /, **columns: Any) -> str:
    """Write a condition on the rows of one table of an analysis; `matching` reads it.

    Parameters
    ----------
    diagnostic : str
        Name of a diagnostic.
    table : {"queries", "passages", "claims"}
        Table of its analysis.
    **columns : Any
        For each column a value, or a pair ``(low, high)`` for ``low <= v < high``; either may be None.

    Returns
    -------
    str
        ``<diagnostic>.<table>.<column>:<value>[,<column>:<value> …]``. A column that the analysis lacks is
        that of the run's own table, or of its confidence signals.

    Raises
    ------
    ValueError
        No column, or a missing value.

    Examples
    --------
    >>> where("influence", "passages", retrieval_order=1, influence_rank=10)
    'influence.passages.retrieval_order:1,influence_rank:10'
    >>> where("influence", "queries", rho=(None, 0.5), label="Not, yet")
    'influence.queries.rho:..0.5,label:Not%2C%20yet'
    """
    if not columns:
        raise ValueError("where needs at least one column.")
    return f"{diagnostic}.{table}." + ",".join(f"{name}:{_written(value)}" for name, value in columns.items())


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        low, high = ("" if end is None else _literal(end) for end in value)
        return f"{low}{_RANGE}{high}"
    return _literal(value).replace(_RANGE, "%2E%2E")


def _literal(value: Any) -> str:
    if value is None or value is pd.NA or value != value:
        raise ValueError("A missing value matches nothing.")
    return quote(str(value), safe="", errors="replace")


def matching(diagnosis: Diagnosis, text: str) -> tuple[str, ...]:
    """Return the ids of the questions with a row that meets every part of a condition, in the run's order.

    Parameters
    ----------
    diagnosis : Diagnosis
        The run.
    text : str
        As `where` writes it. Numbers are compared as numbers, yes and no as ``True`` and ``False``, all else
        as text; a missing value meets no condition.

    Raises
    ------
    InputError
        Malformed text, or no such diagnostic, table or column.

    Examples
    --------
    >>> from core.run import Run
    >>> diagnosis = Diagnosis(Run.load("sample_data/recorded_run"))
    >>> first = matching(diagnosis, "influence.passages.retrieval_order:1")
    >>> len(first) == len(diagnosis.run.queries)
    True
    """
    form = _CONDITION.fullmatch(text)
    if form is None:
        raise InputError(
            f"{shorten(text)!r} is no condition; one reads like "
            "influence.passages.retrieval_order:1,influence_rank:10."
        )
    diagnostic, table, rest = form.groups()
    frame = _table(diagnosis, diagnostic, table)
    met = np.ones(len(frame), dtype=bool)
    for part in rest.split(","):
        column, colon, value = part.partition(":")
        if not colon:
            raise InputError(f"{shorten(part)!r} is no condition: it needs a column, a colon and a value.")
        met &= _meets(_values(diagnosis, frame, table, column, diagnostic), value)
    ids = diagnosis.run.queries["query_id"]
    return tuple(ids[ids.isin(frame.loc[met, "query_id"])])


def _table(diagnosis: Diagnosis, diagnostic: str, table: str) -> pd.DataFrame:
    known = [one.name for one in diagnosis.diagnostics]
    if diagnostic not in known:
        raise InputError(f"There is no diagnostic {shorten(diagnostic)!r}; they are {', '.join(known)}.")
    frame = getattr(diagnosis[diagnostic], table, None) if table in TABLES else None
    if not isinstance(frame, pd.DataFrame) or "query_id" not in frame:
        raise InputError(f"{diagnostic} has no table {shorten(table)!r}.")
    return frame


def _values(diagnosis: Diagnosis, frame: pd.DataFrame, table: str, column: str, diagnostic: str) -> pd.Series:
    """Return a column of an analysis or, where it has none of that name, of the run."""
    if column in frame and not column.startswith("_"):
        return frame[column]
    # Confidence signals have one row per question, too, and no analysis of their own.
    own = _SIGNALS if table == "queries" and column in RAW[_SIGNALS].names[1:] else table
    raw, key = diagnosis.run[own], list(RAW[own].key)
    if column not in raw or not set(key) <= set(frame):
        raise InputError(f"{diagnostic}.{table} has no column {shorten(column)!r}.")
    found: pd.Series = frame[key].merge(raw[[*key, column]], on=key, how="left")[column]
    return found


def _meets(values: pd.Series, written: str) -> Any:
    """Return for every row whether its value is the written one, or lies in the written range."""
    truth, numeric = pd.api.types.is_bool_dtype(values), pd.api.types.is_numeric_dtype(values)
    if numeric and not truth:
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        low, dots, high = written.partition(_RANGE)
        if not dots:
            return numbers == _number(written)
        least, below = _number(low or "-inf"), _number(high or "inf")
        return (numbers >= least) & ((numbers < below) if high else ~np.isnan(numbers))
    if _RANGE in written:
        raise InputError(f"{shorten(written)!r} is a range; the column {values.name} holds no numbers.")
    known = values.notna().to_numpy(dtype=bool)
    return known & (values.astype("object").map(str) == unquote(written)).to_numpy(dtype=bool)


def _number(written: str) -> float:
    try:
        return float(unquote(written))
    except ValueError:
        raise InputError(f"{shorten(unquote(written))!r} is no number.") from None


def describe(diagnosis: Diagnosis, text: str) -> str:
    """Return a condition for people: the titles of its columns, with what each must be.

    Examples
    --------
    >>> from core.run import Run
    >>> diagnosis = Diagnosis(Run.load("sample_data/recorded_run"))
    >>> describe(diagnosis, where("influence", "queries", rho=(0.2, 0.4), buried_evidence=True))
    '0.2 ≤ ρ < 0.4, buried evidence: yes'
    >>> describe(diagnosis, where("claims", "claims", planted="date", verdict="NOT_SUPPORTED"))
    'planted: date changed, verdict: not supported'
    """
    diagnostic, _, rest = text.partition(".")
    defined: dict[str, str] = {}
    columns: dict[str, str] = {}
    for one in diagnosis.diagnostics:
        if one.name == diagnostic:
            defined = {d.name: d.title for d in one.definitions}
            columns = {c.name: c.title for c in one.columns}
    titles = defined | _TITLES | columns
    conditions = dict(part.partition(":")[::2] for part in rest.partition(".")[2].split(","))
    ranks = [_span(conditions)] if {*_SPAN[:2]} <= set(conditions) else []
    said = [_condition(_title(titles, name), written, defined) for name, written in conditions.items()]
    return ", ".join(said + ranks)


def _span(conditions: dict[str, str]) -> str:
    """Say which of the ranks that a tie spans are asked for, and take these conditions out."""
    best, worst, title = _SPAN
    last, first = (unquote(conditions.pop(name).replace(_RANGE, "")) for name in (best, worst))
    last = f"{float(last) - 1:g}" if last.isdecimal() else last
    return f"{title} {first}" if first == last else f"{title} {first} to {last}"


def _title(titles: Mapping[str, str], column: str) -> str:
    """Return the title of a column as it reads within a sentence; that of one depth is of any depth k."""
    name, _, depth = column.rpartition("_")
    if depth.isdecimal() and f"{name}_k" in titles:
        return _within(titles[f"{name}_k"].removesuffix("k") + depth)
    return _within(titles.get(column, column.replace("_", " ")))


def _condition(title: str, written: str, defined: Mapping[str, str]) -> str:
    low, dots, high = written.partition(_RANGE)
    if not dots:
        value, figure = unquote(written), _figure(written)
        return f"{title}: {_value(value, defined)}" if figure is None else f"{title} {figure}"
    if title.endswith("rank") and _HALF.fullmatch(low) and _HALF.fullmatch(high):
        return f"{title} {float(low) + 0.5:g} to {float(high) - 0.5:g}"
    low, high = (_figure(end) or unquote(end) for end in (low, high))
    if low and high:
        if low == high:  # apart by less than is shown
            return f"{title} {low}"
        return f"{low} ≤ {title} < {high}"
    return f"{title} ≥ {low}" if low else f"{title} < {high}" if high else f"{title} known"


def _value(value: str, defined: Mapping[str, str]) -> str:
    """Return a value for people: yes or no, the title of what a name stands for, or the text itself."""
    if value in ("True", "False"):
        return {"True": "yes", "False": "no"}[value]
    if value not in defined:
        return value
    title = defined[value]
    return title.replace("_", " ").lower() if title.isupper() else _within(title)


def _figure(written: str) -> str | None:
    """Return a number for people; None where it is none."""
    try:
        value = float(unquote(written))
    except ValueError:
        return None
    return number(value, "{:.4g}" if abs(value) < 1_000 else "{:,.0f}")


def _within(title: str) -> str:
    """Return a title without the capital at its start, unless it begins with an abbreviation."""
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def key_of(finding: Finding) -> str:
    """Return how a filter names a finding: ``<diagnostic>.<name>``."""
    return f"{finding.diagnostic}.{finding.name}"


def title_of(diagnosis: Diagnosis, finding: Finding) -> str:
    """Return a finding's title: that of the definition it is named after."""
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

    Parameters
    ----------
    diagnosis : Diagnosis
        The run; diagnostics that lack data have no columns.

    Returns
    -------
    DataFrame
        ``query_id, question, kind``; ``findings``, the titles of the findings that name the question, gravest
        first, without those that count every case; ``named``, for each finding that names it the place that
        it gives the question, by key; ``<diagnostic>.<column>`` for every `QuestionColumn`; and ``reading``,
        its place (from 1) when the questions most worth reading come first: by the gravest of ``findings``,
        their number, and the place that the gravest gives it.
    """
    run, found = diagnosis.run, diagnosis.findings()
    ids = pd.Index(run.queries["query_id"])
    titles: list[list[str]] = [[] for _ in ids]
    named: list[dict[str, int]] = [{} for _ in ids]
    gravest = np.full(len(ids), len(SEVERITIES))
    place = np.zeros(len(ids), dtype=int)
    for finding in found:
        title, severity = title_of(diagnosis, finding), SEVERITIES.index(finding.severity)
        rows = ids.get_indexer(pd.Index(finding.query_ids, dtype=ids.dtype))
        telling = finding.n < finding.of
        for position, row in enumerate(rows):
            if row < 0:
                continue
            named[row][key_of(finding)] = position
            if telling and not titles[row]:
                gravest[row], place[row] = severity, position
            if telling:
                titles[row].append(title)
    number = np.array([len(found) for found in titles], dtype=int)
    order = np.lexsort((place, -number, gravest))
    frame = run.queries[["query_id", "question", "kind"]].copy()
    frame["findings"] = pd.Series(titles, index=frame.index, dtype="object")
    frame["named"] = pd.Series(named, index=frame.index, dtype="object")
    for name, column in columns_of(diagnosis).items():
        analysed = diagnosis[name.partition(".")[0]].queries.set_index("query_id")[column.name]
        frame[name] = analysed.reindex(ids).array
    frame["reading"] = np.argsort(order) + 1
    return frame


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
    diagnosis: Diagnosis, frame: pd.DataFrame, wanted: Filter, reviews: Mapping[str, Review]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the rows of a worklist that a filter lets through, in its order, and what it asked in vain.

    Parameters
    ----------
    diagnosis : Diagnosis
        The run.
    frame : DataFrame
        Its `worklist`.
    wanted : Filter
        A part that names something unknown restricts nothing.
    reviews : Mapping
        `Review` by question; the others are open.

    Returns
    -------
    DataFrame
        With a column ``status`` and a column ``note`` more.
    tuple of str
        A sentence for every part that names something unknown.
    """
    frame, problems = with_reviews(frame, reviews), []
    met = np.ones(len(frame), dtype=bool)
    tests: dict[str, Callable[[str], Any]] = {
        "finding": lambda key: _named_by(frame, key),
        "where": lambda text: frame["query_id"].isin(matching(diagnosis, text)),
        "label": lambda text: _labelled(frame, text),
        "kind": lambda text: _of_kind(frame, text),
        "words": lambda text: _has_words(diagnosis, text),
        "status": lambda text: _of_status(frame, text),
    }
    for part, test in tests.items():
        value = getattr(wanted, part)
        if value:
            try:
                met &= np.asarray(test(value), dtype=bool)
            except InputError as error:
                problems.append(f"{error} All questions are listed.")
    try:
        found = _sorted(diagnosis, frame[met], wanted)
    except InputError as error:
        problems.append(str(error))
        found = _sorted(diagnosis, frame[met], replace(wanted, sort=READING))
    return found, tuple(problems)


def with_reviews(frame: pd.DataFrame, reviews: Mapping[str, Review]) -> pd.DataFrame:
    """Return a worklist with the columns ``status`` and ``note``."""
    found = [reviews.get(query_id, Review()) for query_id in frame["query_id"]]
    status, note = [one.status for one in found], [one.note for one in found]
    return frame.assign(
        status=pd.Series(status, index=frame.index, dtype="str"),
        note=pd.Series(note, index=frame.index, dtype="str"),
    )


def _named_by(frame: pd.DataFrame, key: str) -> Any:
    met = np.array([key in named for named in frame["named"]], dtype=bool)
    if not met.any():
        raise InputError(f"No finding {shorten(key)!r} names a question of this run at these settings.")
    return met


def _labelled(frame: pd.DataFrame, text: str) -> Any:
    if text not in labels(frame):
        raise InputError(f"No question has the label {shorten(text)!r}.")
    return frame[_texts(frame)].eq(text).fillna(False).any(axis=1)


def _of_kind(frame: pd.DataFrame, text: str) -> Any:
    met = frame["kind"].eq(text).fillna(False)
    if not met.any():
        raise InputError(f"No question is of the kind {shorten(text)!r}.")
    return met


def _of_status(frame: pd.DataFrame, text: str) -> Any:
    if text not in STATUSES:
        raise InputError(f"{shorten(text)!r} is no status; they are {', '.join(STATUSES)}.")
    return frame["status"].eq(text)


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
        places = [named.get(wanted.finding, 0) for named in frame["named"]]
        return frame.iloc[np.lexsort((frame["reading"], places))]
    name = sort.removeprefix("-")
    return frame.sort_values(name, ascending=not sort.startswith("-"), kind="stable", na_position="last")


def worklist_csv(diagnosis: Diagnosis, frame: pd.DataFrame) -> bytes:
    """Return a selected worklist as CSV: formulas neutralised, with status and note of every question."""
    names = [*_FIRST, "status", "note", *(name for name in frame if "." in name)]
    return csv_bytes(frame[names], diagnosis.run.data_source)
