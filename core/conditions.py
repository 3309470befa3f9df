"""Conditions on the questions of a run, as links and figures carry them: written, read, and said in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.schema import TABLES as RAW
from core.text.display import number, shorten

TABLES = ("queries", "passages", "claims", "verdicts", "pairs")
_SIGNALS = "signals"
_RANGE = ".."
_CONDITION = re.compile(r"([a-z_]+)\.([a-z_]+)\.(.+)", re.DOTALL)
_HALF = re.compile(r"\d{1,9}\.5")  # ends of a range of whole ranks
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


def where(diagnostic: str, table: str, /, **columns: Any) -> str:
    """Write a condition on the rows of one table of an analysis; `matching` reads it.

    Parameters
    ----------
    diagnostic : str
        Name of a diagnostic.
    table : {"queries", "passages", "claims", "verdicts"}
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
    ids = pd.Index(diagnosis.run.queries["query_id"])
    rows = np.unique(ids.get_indexer(pd.Index(frame["query_id"].array[met])))
    return tuple(ids[rows[rows >= 0]])


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
    given = diagnosis.run["confidences"]
    if table == "queries" and column in given["name"].unique().tolist():
        values = given[given["name"] == column].set_index("query_id")["value"]
        return frame["query_id"].map(values).rename(column)
    # Confidence signals have one row per question, too, and no analysis of their own.
    own = _SIGNALS if table == "queries" and column in RAW[_SIGNALS].names else table
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
    """Return a title without the capital at its start, unless it begins with an abbreviation or a name."""
    return title[:1].lower() + title[1:] if title.partition(" ")[0][1:].islower() else title
