"""From the checked rows of an influence file to the tables of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema import PASSAGES, QUERIES, Column
from core.sources.checks import ColumnChecks
from core.sources.fields import MAX_LIST
from core.sources.grouping import first_rows, position_within
from core.sources.influence_rows import Rows
from core.sources.table import is_blank, some_rows, text_codes
from core.text.abstention import answer_status
from core.text.strict import read_json

_DONE = {"query_id", "question", "passage_id", "retrieval_rank", "influence_score", "ablated_answer"}
_FULL = 1 - 1e-9


def query_table(checks: ColumnChecks, rows: Rows) -> pd.DataFrame:
    """Return the table ``queries``: the first row of each question speaks for all of them.

    Rows that say otherwise get a warning.
    """
    group = rows.grouping.group
    first = rows.kept[first_rows(group)]
    columns: dict[str, object] = {
        "query_id": _query_ids(checks, rows, first),
        "question": some_rows(checks.text("question"), first, strip=True).array,
    }
    for definition in QUERIES.columns:
        if definition.name in checks.mapping and checks.has(definition.name):
            _warn_where_differing(checks, rows, first, definition.name)
            if definition.name in _DONE:
                continue
            if definition.type == "list":
                cells = checks.text(definition.name).iloc[first]
                columns[definition.name] = [_listed(cell) for cell in cells]
            else:
                columns[definition.name] = _values(checks, definition, first)
    if "answer" in columns:
        columns["answer_status"] = _statuses(pd.Series(columns["answer"]))
    elif "answer" in checks.mapping:
        # The column is there and blank throughout: every answer was empty.
        columns["answer"] = pd.array([""] * first.size, dtype="str")
        columns["answer_status"] = pd.array(["empty"] * first.size, dtype="str")
    return pd.DataFrame(columns)


def passage_table(checks: ColumnChecks, rows: Rows, queries: pd.DataFrame) -> pd.DataFrame:
    """Return the table ``passages``, one row per kept row of the file, in its order."""
    group, kept = rows.grouping.group, rows.kept
    if checks.has("passage_id"):
        identifier = some_rows(checks.text("passage_id"), kept, strip=True).array
    else:
        identifier = "p" + pd.Series(position_within(group) + 1).astype("str").array
    columns: dict[str, object] = {
        "query_id": queries["query_id"].take(group).array,
        "passage_id": identifier,
        "retrieval_rank": rows.rank,
        "influence_score": rows.influence,
    }
    if checks.has("ablated_answer"):
        columns |= _ablated(some_rows(checks.text("ablated_answer"), kept), rows.influence)
    for definition in PASSAGES.columns:
        name = definition.name
        if name in checks.mapping and name not in _DONE and checks.has(name):
            columns[name] = _values(checks, definition, kept)
    return pd.DataFrame(columns, copy=False)


def _query_ids(checks: ColumnChecks, rows: Rows, first: NDArray[np.int64]) -> pd.Series:
    run = pd.Series(rows.grouping.run)
    if checks.has("query_id"):
        base = some_rows(checks.text("query_id"), first, strip=True)
    else:
        number = pd.Series(pd.factorize(rows.grouping.question)[0] + 1).astype("str")
        base = "q" + number.str.zfill(max(4, int(number.str.len().max())))
    return (base + ("-" + run.astype("str")).where(run > 1, "")).array


def _values(checks: ColumnChecks, definition: Column, rows: NDArray[np.int64]) -> object:
    name = definition.name
    if definition.type in ("float", "int"):
        numbers = checks.optional_numbers(name, definition)
        return numbers if rows.size == numbers.size else numbers[rows]
    if definition.type == "bool":
        return checks.optional_flags(name).take(rows).array
    text = some_rows(checks.text(name), rows)
    # A blank answer is an answer; any other blank text is not there.
    blank = is_blank(text)
    return (text if name == "answer" or not blank.any() else text.mask(blank)).array


def _warn_where_differing(checks: ColumnChecks, rows: Rows, first: NDArray[np.int64], name: str) -> None:
    codes = text_codes(checks.text(name))
    differs = codes[rows.kept] != codes[first][rows.grouping.group]
    expected = "the same value in all rows of the question; the first was used"
    checks.flag(rows.kept[differs], name, expected, "warning")


def _ablated(answer: pd.Series, influence: NDArray[np.float64]) -> dict[str, object]:
    """Ablated answers; a blank one beside an influence below 1 was not recorded rather than empty."""
    blank = is_blank(answer)
    known = answer.mask(blank & ~np.isnan(influence) & (influence < _FULL)) if blank.any() else answer
    return {"ablated_answer": known.array, "ablated_status": _statuses(known)}


def _statuses(answers: pd.Series) -> pd.Series:
    """Return the status of every answer; equal answers are looked at once."""
    codes, texts = pd.factorize(answers)
    names = pd.Series([answer_status(text) for text in texts], dtype="str")
    return pd.Series(names.reindex(codes).array).where(codes >= 0).array


def _listed(cell: str) -> list[str] | None:
    """Read reference answers: a JSON list of texts, or one text."""
    cell = cell.strip()
    if cell.startswith("[") and cell.endswith("]"):
        try:
            entries = read_json(cell)
        except ValueError:
            return [cell]
        if all(isinstance(entry, str) for entry in entries):
            return entries[:MAX_LIST] or None
    return [cell] if cell else None
