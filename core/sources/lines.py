"""The file of a data set: JSON, CSV, a table of one column, or plain text with one prompt a line."""

from __future__ import annotations

import csv
import io
import re

from core.errors import InputError
from core.sources.content import Content, read_content
from core.sources.encoding import to_utf8
from core.sources.question import FIELDS, names_of
from core.sources.report import shorten

_QUESTION = set(names_of("question"))


def question_entries(data: bytes, source: str) -> Content:
    """Parse the unpacked file of a data set into its records; InputError where it cannot be read as a whole.

    A name that ends in ``.txt`` says that a line is a prompt, unless the file is JSON or its first line is a
    CSV header with a column for the question. A file of that one column is read under any name.
    """
    text = to_utf8(data, source)
    plain = text.utf8.decode()
    notes = (text.note,) if text.note else ()
    if plain.lstrip()[:1] not in ("{", "["):
        header = _cells(plain)
        if len(header) == 1 and header <= _QUESTION:
            return Content(source, "csv", None, _one_column(plain, source), notes=notes)
        if source.lower().removesuffix(".gz").endswith(".txt") and not header & _QUESTION:
            return Content(source, "jsonl", None, prompts(plain), notes=notes)
    content = read_content(data, source, strict=True).opened()
    if content.kind == "csv" and not _QUESTION & set(content.columns):
        raise InputError(
            f"{source} has the columns {', '.join(map(shorten, content.columns[:20]))}; "
            f"expected question and one of documents, passages and corpus (of {', '.join(FIELDS)}); "
            "a plain list of prompts is named .txt."
        )
    return content


def prompts(text: str) -> list[tuple[int, dict[str, str]]]:
    """Return a record for each line of plain text that is not blank."""
    return [(n, {"question": line}) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _one_column(text: str, source: str) -> list[tuple[int, dict[str, str]]]:
    """Return a record for each row of a CSV with one column: its header says that it holds the question."""
    rows = csv.reader(io.StringIO(text.lstrip(), newline=""))
    try:
        # Commas that nobody put between quotes are the prompt's own: there is no other column.
        lines = [(row, ",".join(cells)) for row, cells in enumerate(rows, start=1)]
    except csv.Error as error:
        raise InputError(
            f"{source}, line {rows.line_num} is not CSV ({error}); expected one prompt a line."
        ) from error
    return [(row, {"question": prompt}) for row, prompt in lines[1:] if prompt.strip()]


def _cells(text: str) -> set[str]:
    """Return the cells of the first line, whatever separates them."""
    first = text.lstrip().split("\n", 1)[0].lower()
    return {cell.strip().strip('"') for cell in re.split("[,;\t|]", first)}
