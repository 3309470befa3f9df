"""Labelled answers with their signals, from a table: what weights and maps are fitted on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.calibration.in_use import COLUMNS
from core.calibration.saved import digest
from core.errors import InputError
from core.text import is_correct

_YES, _NO = {"true", "yes", "1", "1.0"}, {"false", "no", "0", "0.0"}


@dataclass(frozen=True, eq=False)
class Labelled:
    """Answers with every signal and a label.

    Attributes
    ----------
    questions : tuple of str, length n
        The question of each; the same one may come several times.
    signals : mapping of str to ndarray, each of shape (n,)
        ``similarity``, ``lexical`` and ``llm`` in their own units, finite.
    correct : ndarray, shape (n,)
        1 correct, 0 wrong.
    n_by_reference : int
        Labels that come from a comparison with the expected answer.
    n_unlabelled, n_without_signal : int
        Rows left out: without a label, and with a label but without all signals.
    """

    questions: tuple[str, ...]
    signals: Mapping[str, Floats]
    correct: Floats
    n_by_reference: int
    n_unlabelled: int
    n_without_signal: int

    @property
    def n(self) -> int:
        """Labelled answers."""
        return self.correct.size

    def half(self) -> Labelled:
        """Return the answers to half of the questions, by a digest of their text: those that teach."""
        teach = np.array([teaches(one) for one in self.questions], dtype=np.bool_)
        questions = tuple(one for one in self.questions if teaches(one))
        signals = {name: values[teach] for name, values in self.signals.items()}
        return replace(self, questions=questions, signals=signals, correct=self.correct[teach])

    def left_out(self, before: str) -> str:
        """Say behind ``before`` how many rows were left out and why; "" where none was."""
        left = {"without a label": self.n_unlabelled, "without all signals": self.n_without_signal}
        said = ", ".join(f"{n:,} {why}" for why, n in left.items() if n)
        return f"{before}{said} left out" if said else ""


def teaches(question: str) -> bool:
    """Tell whether a question is of the half that teaches weights and a map; the other calibrates."""
    return int(digest(question)[-1], 16) % 2 == 0


def labelled(rows: pd.DataFrame) -> Labelled:
    """Return the labelled answers of a table.

    Parameters
    ----------
    rows : DataFrame
        ``query, similarity, lexical, llm_score`` and a label: ``is_correct`` (true, false, yes, no, 1 or 0),
        or where that is empty the comparison of ``answer`` with ``expected_answer`` (a text or a list of
        texts), which gives none for an empty answer and for an abstention. Other columns are ignored.

    Raises
    ------
    InputError
        A column is missing, or a value is no number or no label; the message names row and column.
    """
    needed = {"query", *COLUMNS} - set(rows.columns)
    if needed:
        raise InputError(f"The table lacks the columns {', '.join(sorted(needed))}.")
    if "is_correct" not in rows and not {"answer", "expected_answer"} <= set(rows.columns):
        raise InputError("The table needs a column is_correct, or the columns answer and expected_answer.")
    records = rows.to_dict("records")
    nameless = next((place for place, one in enumerate(records, start=1) if _is_empty(one["query"])), None)
    if nameless is not None:
        raise InputError(f"Row {nameless}: query must not be empty.")
    stated = [_label(one.get("is_correct"), place) for place, one in enumerate(records, start=1)]
    compared = [
        _by_reference(one) if math.isnan(label) else math.nan
        for one, label in zip(records, stated, strict=True)
    ]
    correct = np.where(np.isnan(stated), compared, stated)
    signals = {
        name: np.array(
            [_number(one[column], column, place) for place, one in enumerate(records, start=1)], float
        )
        for column, name in COLUMNS.items()
    }
    has_label = ~np.isnan(correct)
    whole = has_label & np.all([np.isfinite(values) for values in signals.values()], axis=0)
    return Labelled(
        tuple(str(one["query"]) for one, kept in zip(records, whole, strict=True) if kept),
        {name: values[whole] for name, values in signals.items()},
        correct[whole],
        int(np.count_nonzero(~np.isnan(compared) & whole)),
        int(np.count_nonzero(~has_label)),
        int(np.count_nonzero(has_label & ~whole)),
    )


def _label(value: Any, place: int) -> float:
    """Return a label as 1, 0 or NaN."""
    if _is_empty(value):
        return math.nan
    said = str(value).strip().casefold()
    if said not in _YES | _NO:
        raise InputError(f"Row {place}: is_correct must be true or false, got {value!r:.60}.")
    return float(said in _YES)


def _by_reference(row: Mapping[Any, Any]) -> float:
    answer, expected = row.get("answer"), row.get("expected_answer")
    known = [expected] if isinstance(expected, str) else expected
    if not isinstance(answer, str) or not isinstance(known, list | tuple | np.ndarray):
        return math.nan
    found = is_correct(answer, [one for one in known if isinstance(one, str)], str(row["query"]))
    return math.nan if found is None else float(found)


def _number(value: Any, column: str, place: int) -> float:
    if _is_empty(value):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"Row {place}: {column} must be a number, got {value!r:.60}.") from error


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
