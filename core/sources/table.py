"""A delimited text file as a table of strings: delimiter, header, ragged rows, limits."""

from __future__ import annotations

import csv
import io
import os
import re
from dataclasses import dataclass, field

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from core.errors import InputError
from core.sources.encoding import read_source, to_utf8
from core.sources.report import counted, shorten

MAX_ROWS = 5_000_000
MAX_TEXT = 1_000_000
MAX_COLUMNS = 500
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_MAX_COMMENTS = 200
# A line break inside quotation marks belongs to the record.
_RECORD = re.compile(rb'(?:[^"\r\n]++|"[^"]*+"?+)*+')
_QUOTED = re.compile(rb'"[^"]*+"?+')
# A row must fit into one block, and a cell may hold a megabyte.
_BLOCK = 1 << 25


class OneColumn(InputError):
    """A table of one column, which ``first``, the first line, may be the name of."""

    def __init__(self, message: str, first: str) -> None:
        super().__init__(message)
        self.first = first


@dataclass(frozen=True, slots=True)
class RawTable:
    """A delimited file, not yet interpreted.

    ``frame`` holds strings, "" where a cell is empty; its index is the 1-based spreadsheet row (comment lines
    counted), with gaps where rows were left out. ``rejected`` holds the rows that do not have as many cells
    as the header: ``row, reason, text``.
    """

    frame: pd.DataFrame = field(repr=False)
    rejected: pd.DataFrame = field(repr=False)
    notes: tuple[str, ...]
    delimiter: str


def read_table(
    source: bytes | str | os.PathLike[str],
    name: str | None = None,
    *,
    max_rows: int = MAX_ROWS,
) -> RawTable:
    """Read a CSV-like file, also gzipped, without interpreting any cell.

    Lines that start with ``#`` above the header are comments. The delimiter (comma, semicolon or
    tab) is the most frequent one in the header, outside quotation marks. Rows with too many or too few
    cells come back in ``rejected``, never shifted. InputError where the file is not text, exceeds a limit,
    has an unusable header (one column, an empty or repeated name) or no rows.
    """
    label = name or str(source if not isinstance(source, bytes) else "The file")
    text = to_utf8(read_source(source, label), label)
    utf8, n_comments = _without_comments(text.utf8)
    delimiter = _delimiter(utf8, label)
    header = _header(utf8, delimiter, label)
    frame, rejected = _parse(utf8, header, delimiter, n_comments, label)
    if len(frame) + len(rejected) > max_rows:
        raise InputError(
            f"{label} has {len(frame) + len(rejected):,} rows; the limit is {max_rows:,}, so split the file."
        )
    frame, rejected = _without_open_quote(utf8, frame, rejected)
    blank = _blank(frame)
    # A line of delimiters only is blank too, however many there are.
    void = (rejected["text"].str.strip(delimiter + '" \t\r\n') == "").to_numpy(dtype=bool)
    frame, rejected = frame[~blank], rejected[~void].reset_index(drop=True)
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


def read_columns(source: bytes | str | os.PathLike[str], name: str | None = None) -> tuple[str, ...]:
    """Return only the column names of a CSV-like file, as `read_table` finds them; raises as it does."""
    label = name or str(source if not isinstance(source, bytes) else "The file")
    utf8, _ = _without_comments(to_utf8(read_source(source, label), label).utf8)
    return tuple(_header(utf8, _delimiter(utf8, label), label))


def _without_comments(utf8: bytes) -> tuple[bytes, int]:
    """Cut off comment and blank lines above the header; return how many there were."""
    start = n = 0
    while n < _MAX_COMMENTS:
        end = utf8.find(b"\n", start)
        line = utf8[start : end if end >= 0 else len(utf8)].strip()
        # Spreadsheets write "sep=;" as a hint to themselves, and quote a comment that holds a comma.
        if end < 0 or (line and not line.startswith((b"#", b'"#', b"sep="))):
            break
        start, n = end + 1, n + 1
    return utf8[start:], n


def _first_record(utf8: bytes) -> bytes:
    found = _RECORD.match(utf8, 0, _BLOCK)
    return found[0] if found else b""


def _cells(record: bytes, delimiter: str) -> list[str]:
    text = io.StringIO(record.decode(errors="ignore"), newline="")
    try:
        return next(csv.reader(text, delimiter=delimiter), [])
    except csv.Error:  # a quotation mark that is never closed
        return []


def _delimiter(utf8: bytes, label: str) -> str:
    record = _first_record(utf8)
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


def _header(utf8: bytes, delimiter: str, label: str) -> list[str]:
    header = [cell.strip() for cell in _cells(_first_record(utf8), delimiter)]
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
    utf8: bytes, header: list[str], delimiter: str, n_comments: int, label: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    ragged: list[tuple[int, int, str]] = []

    def set_aside(row: pa_csv.InvalidRow) -> str:
        ragged.append((row.number + n_comments, row.actual_columns, row.text))
        return "skip"

    names = [str(i) for i in range(len(header))]
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(utf8),
            # One thread: only then are the numbers of ragged rows known.
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names),
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
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{label} cannot be read as a table: a row is longer than {_BLOCK // 2**20} MB, "
            "so a quotation mark is probably never closed."
        ) from error
    frame = table.to_pandas()
    frame.columns = pd.Index(header, dtype="str")
    bad = {number for number, _, _ in ragged}
    total = len(frame) + len(ragged)
    numbers = pd.RangeIndex(n_comments + 1, n_comments + total + 1)
    frame.index = numbers if not bad else numbers[~numbers.isin(bad)]
    return frame.iloc[1:], _ragged_frame(ragged, len(header))


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
    utf8: bytes, frame: pd.DataFrame, rejected: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Set the last row aside where an unclosed quotation mark swallowed what follows it."""
    if frame.empty or utf8.count(b'"') % 2 == 0:
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
    return frame.iloc[:-1], pd.concat([rejected, more], ignore_index=True)


def _blank(frame: pd.DataFrame) -> pd.Series:
    blank = pd.Series(True, index=frame.index)
    for column in frame.columns:
        if not blank.any():
            break
        blank &= frame[column] == ""
    return blank


def _check_lengths(frame: pd.DataFrame, label: str) -> None:
    for column in frame.columns:
        lengths = frame[column].str.len()
        if len(lengths) and lengths.max() > MAX_TEXT:
            raise InputError(
                f"{label}, row {lengths.idxmax()}, column {shorten(column)} holds {lengths.max():,} "
                f"characters; the limit is {MAX_TEXT:,}."
            )
