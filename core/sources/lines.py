"""The lines of a data set file (JSON Lines, CSV or plain prompts) as records that may still hold anything."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from core.errors import InputError
from core.sources.question import FIELDS, FieldError, fields_of, fields_of_cells
from core.sources.report import shorten
from core.sources.table import read_table

_QUESTION = {"question", *FIELDS["question"]}
# One line of the file: its number, its fields (or what is wrong with it), its cells, unused names.
Line = tuple[int, "dict[str, Any] | FieldError", dict[str, str], list[str]]


def read_lines(data: bytes, text: str, source: str, max_rows: int) -> Iterator[Line]:
    """Yield the records of a file: JSON where it starts like JSON, plain prompts, or else CSV.

    Parameters
    ----------
    data : bytes
        The file.
    text : str
        The same, decoded.
    source : str
        Its name, for messages; a name that ends in ``.txt`` says that a line is a prompt, unless the first
        line is a CSV header with a column for the question. A file of that one column is read under any name.
    max_rows : int
        Most rows of a CSV.
    """
    if text.lstrip()[:1] in ("{", "["):
        return json_lines(text, source)
    header = _cells(text)
    if len(header) == 1 and header <= _QUESTION:
        return column_lines(text, source)
    if source.lower().removesuffix(".gz").endswith(".txt") and not header & _QUESTION:
        return prompt_lines(text)
    return csv_rows(data, source, max_rows)


def prompt_lines(text: str) -> Iterator[Line]:
    """Yield a record for each line of plain text that is not blank."""
    for row, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield row, {"question": line}, {"line": line.strip()}, []


def column_lines(text: str, source: str) -> Iterator[Line]:
    """Yield a record for each row of a CSV with one column: its header says that it holds the question."""
    rows = csv.reader(io.StringIO(text.lstrip(), newline=""))
    try:
        for row, cells in enumerate(rows, start=1):
            # Commas that nobody put between quotes are the prompt's own: there is no other column.
            prompt = ",".join(cells)
            if row > 1 and prompt.strip():
                yield row, {"question": prompt}, {"question": prompt}, []
    except csv.Error as error:
        raise InputError(
            f"{source}, line {rows.line_num} is not CSV ({error}); expected one prompt a line."
        ) from error


def json_lines(text: str, source: str) -> Iterator[Line]:
    """Yield the records of JSON Lines, or of one JSON list; blank lines are skipped."""
    lines: list[tuple[int, Any]] = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if text.lstrip().startswith("["):
        try:
            lines = list(enumerate(json.loads(text), start=1))
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{source} starts like a JSON list but is not valid JSON; expected one JSON object a line."
            ) from error
    for row, line in lines:
        record = _loads(line) if isinstance(line, str) else line
        cells = {"line": line.strip() if isinstance(line, str) else _as_json(line)}
        if not isinstance(record, dict):
            yield row, FieldError("line", line, "a JSON object"), cells, []
            continue
        fields, extra = fields_of(record)
        yield row, fields, cells, extra


def _loads(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def csv_rows(data: bytes, source: str, max_rows: int) -> Iterator[Line]:
    """Yield the records of a CSV file whose columns are called like the fields."""
    table = read_table(data, source, max_rows=max_rows)
    if "question" not in fields_of(dict.fromkeys(table.frame.columns, ""))[0]:
        raise InputError(
            f"{source} has the columns {', '.join(map(shorten, table.frame.columns[:20]))}; "
            f"expected question and one of documents, passages and corpus (of {', '.join(FIELDS)}); "
            "a plain list of prompts is named .txt."
        )
    # Ragged rows were set apart; they take their places by number again.
    bad = {int(r["row"]): r for r in table.rejected.to_dict("records")}
    good = dict(zip(table.frame.index.tolist(), table.frame.to_dict("records"), strict=True))
    for row in sorted({*bad, *good}):
        if row in bad:
            cells = {"text": str(bad[row]["text"])}
            yield row, FieldError("row", cells["text"], str(bad[row]["reason"])), cells, []
            continue
        named, extra = fields_of(good[row])
        try:
            yield row, fields_of_cells(named), good[row], extra
        except FieldError as error:
            yield row, error, good[row], extra


def _as_json(record: object) -> str:
    try:
        return json.dumps(record)
    except RecursionError:
        return "(nested too deeply)"


def _cells(text: str) -> set[str]:
    """Return the cells of the first line, whatever separates them."""
    first = text.lstrip().split("\n", 1)[0].lower()
    return {cell.strip().strip('"') for cell in re.split("[,;\t|]", first)}
