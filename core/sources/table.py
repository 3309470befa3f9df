"""A delimited text file as a table of strings, and checks of its whole columns at once."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from core.errors import InputError
from core.schema import Column
from core.sources.encoding import Text
from core.sources.fields import MAX_LIST, MAX_TEXT, MISSING
from core.sources.report import IssueLog, Severity, counted, shorten
from core.text.strict import read_json

MAX_ROWS = 5_000_000
MAX_COLUMNS = 500
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_MAX_COMMENTS = 200
# A line break inside quotation marks belongs to the record.
_RECORD = re.compile(rb'(?:[^"\r\n]++|"[^"]*+"?+)*+')
_QUOTED = re.compile(rb'"[^"]*+"?+')
# A row must fit into one block: a file is read again in large ones where a cell holds a megabyte.
_BLOCK, _LARGEST_BLOCK = 1 << 19, 1 << 25
_TAKEN = 10_000


class OneColumn(InputError):
    """A table of one column, which ``first``, the first line, may be the name of."""

    def __init__(self, message: str, first: str) -> None:
        super().__init__(message)
        self.first = first


@dataclass(frozen=True, slots=True)
class RawTable:
    """A delimited file, not yet interpreted.

    ``frame`` holds strings, "" where a cell is empty, as categories in columns where they repeat; its index
    is the 1-based spreadsheet row (comment lines counted), with gaps where rows were left out. ``rejected``
    holds the rows that do not have as many cells as the header: ``row, reason, text``.
    """

    frame: pd.DataFrame = field(repr=False)
    rejected: pd.DataFrame = field(repr=False)
    notes: tuple[str, ...]
    delimiter: str


def table_of(text: Text, label: str) -> RawTable:
    """Read the text of a CSV-like file without interpreting any cell.

    Lines that start with ``#`` above the header are comments. The delimiter (comma, semicolon or
    tab) is the most frequent one in the header, outside quotation marks. Rows with too many or too few
    cells come back in ``rejected``, never shifted. InputError where the file exceeds a limit,
    has an unusable header (one column, an empty or repeated name) or no rows.
    """
    start, n_comments = _after_comments(text.utf8)
    delimiter = _delimiter(text.utf8, start, label)
    header = _header(text.utf8, start, delimiter, label)
    frame, rejected = _parse(text.utf8, start, header, delimiter, n_comments, label)
    if len(frame) + len(rejected) > MAX_ROWS:
        raise InputError(
            f"{label} has {len(frame) + len(rejected):,} rows; the limit is {MAX_ROWS:,}, so split the file."
        )
    frame, rejected = _without_open_quote(text.utf8, start, frame, rejected)
    blank = _blank(frame)
    # A line of delimiters only is blank too, however many there are.
    void = (rejected["text"].str.strip(delimiter + '" \t\r\n') == "").to_numpy(dtype=bool)
    frame, rejected = _rows(frame, ~blank), rejected[~void].reset_index(drop=True)
    n_blank = int(blank.sum()) + int(void.sum())
    if frame.empty and rejected.empty:
        raise InputError(f"{label} has a header ({shorten(', '.join(header))}) but no rows below it.")
    _check_lengths(frame, label)
    notes = [text.note] if text.note else []
    if delimiter != ",":
        notes.append(f"Cells are separated by {_DELIMITERS[delimiter]}.")
    if n_blank:
        notes.append(f"Blank rows left out: {n_blank:,}.")
    return RawTable(frame, rejected, tuple(notes), delimiter)


def _repeats(column: pd.Series) -> bool:
    return isinstance(column.dtype, pd.CategoricalDtype)


def each_text(column: pd.Series, work: Callable[[pd.Series], NDArray[Any]]) -> NDArray[Any]:
    """Return what a function makes of each text of a column, called once for each of its categories."""
    if not _repeats(column):
        return work(column)
    return work(pd.Series(column.cat.categories)).take(column.cat.codes.to_numpy())


def text_codes(column: pd.Series, *, strip: bool = False) -> NDArray[Any]:
    """Return an integer from 0 for each row of a column of `RawTable.frame`, the same for equal texts."""
    if _repeats(column) and not strip:
        return column.cat.codes.to_numpy()
    texts = pd.Series(column.cat.categories) if _repeats(column) else column
    codes = pd.factorize(texts.str.strip() if strip else texts)[0].astype(np.int32)
    return codes.take(column.cat.codes) if _repeats(column) else codes


def is_blank(column: pd.Series, *, strip: bool = False) -> NDArray[np.bool_]:
    """Return which cells of a column of `RawTable.frame` are empty, or hold nothing but white space."""
    return each_text(
        column, lambda texts: ((texts.str.strip() if strip else texts) == "").to_numpy(dtype=bool)
    )


def some_rows(column: pd.Series, rows: NDArray[np.int64], *, strip: bool = False) -> pd.Series:
    """Return rows, in rising order, of a column of `RawTable.frame` as strings, numbered from 0.

    Rows that follow each other are not copied; others are taken some at a time, since pyarrow would
    first copy the whole column into one piece.
    """
    if _repeats(column):
        texts = pd.Series(column.cat.categories)
        texts = texts.str.strip() if strip else texts
        return texts.take(column.cat.codes.to_numpy()[rows]).reset_index(drop=True)
    pieces = [column.iloc[:0]]
    for some in np.array_split(rows, 1 + rows.size // _TAKEN):
        if some.size:
            piece = column.iloc[some[0] : some[-1] + 1]
            pieces.append(piece if len(piece) == some.size else piece.iloc[some - some[0]])
    texts = pd.concat(pieces, ignore_index=True)
    return texts.str.strip() if strip else texts


def _after_comments(utf8: bytes) -> tuple[int, int]:
    """Return where the header starts, and how many comment and blank lines stand above it."""
    start = n = 0
    while n < _MAX_COMMENTS:
        end = utf8.find(b"\n", start)
        line = utf8[start : end if end >= 0 else len(utf8)].strip()
        # Spreadsheets write "sep=;" as a hint to themselves, and quote a comment that holds a comma.
        if end < 0 or (line and not line.startswith((b"#", b'"#', b"sep="))):
            break
        start, n = end + 1, n + 1
    return start, n


def _first_record(utf8: bytes, start: int) -> bytes:
    found = _RECORD.match(utf8, start, start + _LARGEST_BLOCK)
    return found[0] if found else b""


def _cells(record: bytes, delimiter: str) -> list[str]:
    text = io.StringIO(record.decode(errors="ignore"), newline="")
    try:
        return next(csv.reader(text, delimiter=delimiter), [])
    except csv.Error:  # a quotation mark that is never closed
        return []


def _delimiter(utf8: bytes, start: int, label: str) -> str:
    record = _first_record(utf8, start)
    if not record.strip():
        raise InputError(f"{label} holds only comments or blank lines; expected a header and rows below it.")
    bare = _QUOTED.sub(b"", record)
    counts = {delimiter: bare.count(delimiter.encode()) for delimiter in _DELIMITERS}
    best = max(counts, key=lambda delimiter: counts[delimiter])
    if not counts[best]:
        first = record.strip().splitlines()[0].decode(errors="ignore")
        raise OneColumn(
            f"{label} has one column only (its first line is {shorten(first)!r}); "
            "expected a header and cells separated by comma, semicolon or tab.",
            first,
        )
    return best


def _header(utf8: bytes, start: int, delimiter: str, label: str) -> list[str]:
    header = [cell.strip() for cell in _cells(_first_record(utf8, start), delimiter)]
    # A delimiter at the end of the header makes a last column without a name.
    named = [cell for cell in header if cell]
    if len(header) > MAX_COLUMNS:
        raise InputError(f"{label} has {len(header):,} columns; the limit is {MAX_COLUMNS}.")
    repeated = [cell for i, cell in enumerate(named) if cell in named[:i]]
    if repeated:
        raise InputError(
            f"{label} has the column {shorten(repeated[0])!r} twice; every column needs a name of its own."
        )
    if len(named) < 2:
        raise InputError(f"{label} has no header: its first line names {len(named)} columns.")
    taken = set(named)
    for i, cell in enumerate(header):
        if not cell:
            header[i] = next(n for n in (f"column {i + 1}", f"column {i + 1} (no name)") if n not in taken)
    return header


def _parse(
    utf8: bytes, start: int, header: list[str], delimiter: str, n_comments: int, label: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    content = pa.py_buffer(utf8).slice(start)
    try:
        try:
            columns, ragged = _columns(content, len(header), delimiter, _BLOCK)
        except pa.ArrowInvalid:
            columns, ragged = _columns(content, len(header), delimiter, _LARGEST_BLOCK)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{label} cannot be read as a table: a row is longer than {_LARGEST_BLOCK // 2**20} MB, "
            "so a quotation mark is probably never closed."
        ) from error
    ragged = [(number + n_comments, found, text) for number, found, text in ragged]
    bad = {number for number, _, _ in ragged}
    total = len(columns[0]) + 1 + len(ragged)
    numbers = pd.RangeIndex(n_comments + 1, n_comments + total + 1)
    numbers = numbers[1:] if not bad else numbers[~numbers.isin(bad)][1:]
    pa.default_memory_pool().release_unused()
    frame = pd.DataFrame(dict(zip(header, columns, strict=True)), copy=False)
    frame.index = numbers
    return frame, _ragged_frame(ragged, len(header))


def _columns(
    content: pa.Buffer, n_columns: int, delimiter: str, block: int
) -> tuple[list[pd.Series], list[tuple[int, int, str]]]:
    """Read the cells below the header, and set aside the rows of other lengths: number, cells, text."""
    ragged: list[tuple[int, int, str]] = []

    def set_aside(row: pa_csv.InvalidRow) -> str:
        ragged.append((row.number, row.actual_columns, row.text))
        return "skip"

    names = [str(i) for i in range(n_columns)]
    reader = pa_csv.open_csv(
        pa.BufferReader(content),
        # One thread: only then are the numbers of ragged rows known.
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=block, column_names=names),
        parse_options=pa_csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            ignore_empty_lines=False,
            invalid_row_handler=set_aside,
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False
        ),
    )
    header_left = 1
    repeat: list[bool] = []
    chunks: list[list[Any]] = [[] for _ in names]
    for batch in reader:
        rows, header_left = batch.slice(header_left), max(0, header_left - batch.num_rows)
        if not rows.num_rows:
            continue
        repeat = repeat or [2 * len(column.unique()) < len(column) for column in rows.columns]
        for i, column in enumerate(rows.columns):
            if repeat[i]:  # the place of each text among the different ones, in as few bytes as it takes
                found = column.dictionary_encode()
                codes = found.indices.to_numpy().astype(np.min_scalar_type(len(found.dictionary)))
                chunks[i].append((codes, found.dictionary))
            else:
                chunks[i].append(column)
    # Each column's chunks are free when it is done.
    kinds = [_categories if one else _strings for one in repeat] or [_strings] * n_columns
    return [kind(chunks.pop(0)) for kind in kinds], ragged


def _categories(chunks: list[tuple[NDArray[Any], pa.Array]]) -> pd.Series:
    # pyarrow's unify_dictionaries() takes several times the memory.
    texts = pa.chunked_array([texts for _, texts in chunks]).combine_chunks().dictionary_encode()
    place, start, codes = texts.indices.to_numpy(), 0, []
    for chunk, own in chunks:
        codes.append(place[start : start + len(own)][chunk])
        start += len(own)
    dtype = pd.CategoricalDtype(pd.Index(_strings([texts.dictionary])))
    return pd.Series(pd.Categorical.from_codes(np.concatenate(codes), dtype=dtype, validate=False))


def _strings(chunks: list[pa.Array]) -> pd.Series:
    return pa.chunked_array(chunks, pa.large_string()).to_pandas()


def _rows(frame: pd.DataFrame, kept: NDArray[np.bool_]) -> pd.DataFrame:
    """Return some of the rows; categories are always those that occur."""
    if kept.all():
        return frame
    rows = np.flatnonzero(kept)
    columns = {
        name: column.iloc[rows].cat.remove_unused_categories().reset_index(drop=True)
        if _repeats(column)
        else some_rows(column, rows)
        for name, column in frame.items()
    }
    return pd.DataFrame(columns, copy=False).set_axis(frame.index[rows])


def _ragged_frame(ragged: list[tuple[int, int, str]], n_columns: int) -> pd.DataFrame:
    reasons = []
    for _, found, text in ragged:
        reason = f"{n_columns} cells as in the header, not {found}"
        if text.count('"') % 2:
            reason += " (a quotation mark is opened and never closed)"
        reasons.append(reason)
    return pd.DataFrame(
        {
            "row": pd.Series([number for number, _, _ in ragged], dtype="int64"),
            "reason": pd.Series(reasons, dtype="str"),
            "text": pd.Series([text[:MAX_TEXT] for _, _, text in ragged], dtype="str"),
        }
    )


def _without_open_quote(
    utf8: bytes, start: int, frame: pd.DataFrame, rejected: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Set the last row aside where an unclosed quotation mark swallowed what follows it."""
    if frame.empty or utf8.count(b'"', start) % 2 == 0:
        return frame, rejected
    last = frame.iloc[-1]
    if "\n" not in last.iloc[-1]:
        return frame, rejected
    swallowed = counted(last.iloc[-1].count("\n"), "line")
    row = [
        frame.index[-1],
        f"a quotation mark that is closed (it swallows {swallowed})",
        last.iloc[-1][:MAX_TEXT],
    ]
    more = pd.DataFrame([row], columns=rejected.columns).astype(rejected.dtypes.to_dict())
    rejected = pd.concat([rejected, more], ignore_index=True)
    return _rows(frame, frame.index != frame.index[-1]), rejected


def _blank(frame: pd.DataFrame) -> NDArray[np.bool_]:
    blank = np.ones(len(frame), dtype=bool)
    for column in frame.columns:
        if not blank.any():
            break
        blank &= is_blank(frame[column])
    return blank


def _check_lengths(frame: pd.DataFrame, label: str) -> None:
    for column in frame.columns:
        lengths = each_text(frame[column], lambda texts: texts.str.len().to_numpy())
        if lengths.size and lengths.max() > MAX_TEXT:
            raise InputError(
                f"{label}, row {frame.index[lengths.argmax()]}, column {shorten(column)} holds "
                f"{lengths.max():,} characters; the limit is {MAX_TEXT:,}."
            )


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
        """Return a mapped column as numbers, NaN where blank or not finite, and which are unreadable."""
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

    def values(self, field: str, definition: Column, rows: NDArray[np.int64]) -> Any:
        """Return some rows of a mapped column, as the schema has it; what does not fit is not there."""
        if definition.type in ("float", "int"):
            numbers = self.optional_numbers(field, definition)
            return numbers if rows.size == numbers.size else numbers[rows]
        if definition.type == "bool":
            return self.optional_flags(field).take(rows).array
        if definition.type == "list":
            found = [_listed(cell) for cell in self.text(field).iloc[rows]]
            return [one or None for one in found] if field == "reference_answers" else found
        text = some_rows(self.text(field), rows)
        if definition.values:
            odd = ~text.isin(("", *definition.values)).to_numpy()
            self.flag(rows[odd], field, f"one of {', '.join(definition.values)}", "warning")
            text = text.mask(odd)
        # A blank answer is an answer; any other blank text is not there.
        blank = is_blank(text)
        return (text if field in ("answer", "sample") or not blank.any() else text.mask(blank)).array


def _listed(cell: str) -> list[Any] | None:
    """Read a JSON list of texts, or of lists; any other cell is one text."""
    cell = cell.strip()
    if cell.startswith("[") and cell.endswith("]"):
        try:
            entries = read_json(cell)
        except ValueError:
            return [cell]
        if any(all(isinstance(entry, kind) for entry in entries) for kind in (str, list)):
            return entries[:MAX_LIST]
    return [cell] if cell else None


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
