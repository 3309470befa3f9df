"""Checks of whole columns at once: what fits, what does not, and in which rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from core.schema import Column
from core.sources.cells import MISSING
from core.sources.report import IssueLog, Severity
from core.sources.table import each_text, is_blank

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_TRUE, _FALSE = ("true", "1", "1.0", "yes", "t", "y"), ("false", "0", "0.0", "no", "f", "n")
_SLACK = 1e-9


class ColumnChecks:
    """The rows of a raw table under a mapping of fields to columns, with their problems so far.

    ``frame`` is that of a `core.sources.table.RawTable`. ``bad`` marks the rows to leave out, ``reason``
    is the first reason of each.
    """

    def __init__(
        self, frame: pd.DataFrame, mapping: Mapping[str, str], log: IssueLog, decimal_comma: bool
    ) -> None:
        self.frame, self.mapping, self.log, self.decimal_comma = frame, mapping, log, decimal_comma
        self.bad: Bools = np.zeros(len(frame), dtype=bool)
        self.reason = np.full(len(frame), None, dtype=object)
        self.used_decimal_comma = False
        self._read: dict[str, Floats] = {}
        self._has: dict[str, bool] = {}

    def has(self, field: str) -> bool:
        """Whether the field is mapped and at least one of its cells is filled."""
        if field not in self._has:
            self._has[field] = field in self.mapping and not is_blank(self.text(field)).all()
        return self._has[field]

    def text(self, field: str) -> pd.Series:
        """Return the column of a mapped field: strings, or categories where they repeat."""
        return self.frame[self.mapping[field]]

    def flag(
        self, where: Bools | NDArray[np.int64], field: str, expected: str, severity: Severity = "error"
    ) -> None:
        """Note the same issue for all rows of a mask, or of a list of rows; errors keep the rows out."""
        rows = np.flatnonzero(where) if where.dtype == bool else np.unique(where)
        if not rows.size:
            return
        column = self.mapping[field]
        shown = rows[:1_000]
        self.log.add_many(self.frame.index[shown], column, self.text(field).iloc[shown], expected, severity)
        self.log.count_more(rows.size - shown.size, severity)
        if severity == "error":
            first = rows[~self.bad[rows]]
            self.reason[first] = f"{column}: expected {expected}"
            self.bad[rows] = True

    def numbers(self, field: str) -> tuple[Floats, Bools]:
        """Return a mapped column as numbers, NaN where blank or not finite, and which cells are unreadable.

        Cells like ``NaN`` count as blank.
        """
        values = each_text(self.text(field), self._as_numbers)
        unreadable = np.zeros(values.size, dtype=bool)
        rows = np.flatnonzero(np.isnan(values))
        unreadable[rows] = each_text(self.text(field).iloc[rows], lambda texts: ~_missing(texts))
        return values, unreadable

    def _as_numbers(self, texts: pd.Series) -> Floats:
        values = _to_float(texts)
        unread = np.isnan(values)
        if self.decimal_comma and unread.any():
            rows = np.flatnonzero(unread)
            again = _to_float(texts.iloc[rows].str.replace(",", ".", n=1, regex=False))
            self.used_decimal_comma |= bool((~np.isnan(again)).any())
            values[rows] = again
        values[np.isinf(values)] = np.nan
        return values

    def optional_numbers(self, field: str, definition: Column) -> Floats:
        """Read a column that is not essential: what does not fit is left out with a warning."""
        if field in self._read:  # one warning for one cell, however often it is read
            return self._read[field]
        values, unreadable = self.numbers(field)
        outside = outside_range(values, definition)
        expected = f"a number{_range_text(definition)}, or an empty cell"
        self.flag((unreadable | outside) & ~self.bad, field, expected, "warning")
        values[outside] = np.nan
        self._read[field] = values
        return values

    def optional_flags(self, field: str) -> pd.Series:
        """Read a True/False column; what does not fit is left out with a warning."""
        text = self.text(field)
        yes = each_text(text, lambda texts: _among(texts, _TRUE))
        no = each_text(text, lambda texts: _among(texts, _FALSE))
        blank = each_text(text, _missing)
        self.flag(~(yes | no | blank) & ~self.bad, field, "True or False, or an empty cell", "warning")
        flags = pd.array(yes, dtype="boolean")
        flags[~(yes | no)] = pd.NA
        return pd.Series(flags, index=self.frame.index)


def outside_range(values: Floats, definition: Column) -> Bools:
    """Return which values lie outside the schema's range, rounding aside; NaN does not."""
    low, high = definition.range or (None, None)
    outside = np.zeros(values.size, dtype=bool)
    with np.errstate(invalid="ignore"):
        if low is not None:
            outside |= values < low - _SLACK
        if high is not None:
            outside |= values > high + _SLACK
    return outside


def _among(texts: pd.Series, words: Sequence[str]) -> Bools:
    return texts.str.strip().str.lower().isin(words).to_numpy(dtype=bool)


def _missing(texts: pd.Series) -> Bools:
    return _among(texts, MISSING)


def _range_text(definition: Column) -> str:
    low, high = definition.range or (None, None)
    if low is None and high is None:
        return ""
    return f" from {low} to {high}" if high is not None else f" of at least {low}"


def _to_float(raw: pd.Series) -> Floats:
    try:
        # Several times faster, but all or nothing.
        return np.asarray(pa.array(raw.array).cast(pa.float64()), dtype=np.float64).copy()
    except pa.ArrowInvalid:
        return np.asarray(pd.to_numeric(raw, errors="coerce"), dtype=np.float64).copy()
