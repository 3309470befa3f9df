"""The lines of a data set file, JSON Lines or CSV, as records that may still hold anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from core.errors import InputError
from core.sources.question import FIELDS, FieldError, fields_of, fields_of_cells
from core.sources.report import shorten
from core.sources.table import read_table

# One line of the file: its number, its fields (or what is wrong with it), its cells, unused names.
Line = tuple[int, "dict[str, Any] | FieldError", dict[str, str], list[str]]


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
            f"expected question and one of documents, passages and corpus (of {', '.join(FIELDS)})."
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
