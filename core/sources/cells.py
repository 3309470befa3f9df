"""Cells of a CSV that hold lists and objects: as JSON, as Python prints them, as numpy prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.text.strict import read_json

# Nothing is evaluated: a cell is rewritten as JSON, and parsed as such.
_TEXT = re.compile(r"""'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)\"""", re.DOTALL)
_ESCAPE = re.compile(
    r"""\\(?:([\\'"nrtabfv])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}))"""
)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
# All texts are spelled in hexadecimal digits before, so none of these finds anything inside them.
_AS_JSON = (
    (r"\b(?:None|nan)\b", "null"),
    (r"\bTrue\b", "true"),
    (r"\bFalse\b", "false"),
    (r"\(", "["),
    (r"\)", "]"),
    (r"(?<![\w.])\.(?=\d)", "0."),
    (r"(?<=\d)\.(?!\d)", ".0"),
    (r",\s*(?=[\]}])", ""),
    (r"""(?<=["\]}\w])\s+(?=["\[{\w-])""", ","),
)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
MISSING = ("", "nan", "na", "n/a", "none", "null")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A cell that is meant as a list but breaks off or is broken; no reader takes it for anything else."""

    cell: str

    def __str__(self) -> str:
        return self.cell


def literal(cell: str) -> Any:
    """Return the list or object in a cell, written as JSON or as a Python literal; else ValueError.

    Neighbours without a comma between them, as numpy prints an array, count as separate entries.

    Examples
    --------
    >>> literal('''["it's", 'b', None]''')
    ["it's", 'b', None]
    >>> literal("['one' 'two']")
    ['one', 'two']
    """
    try:
        return read_json(cell, repair=True)
    except ValueError:
        text = _TEXT.sub(_spelled, cell)
        for pattern, new in _AS_JSON:
            text = re.sub(pattern, new, text)
        return read_json(text, repair=True)


def number_of(cell: str) -> float | None:
    """Return the number in a cell, or None (007 is a code, not a number)."""
    return read_json(cell.strip(), repair=True) if _NUMBER.fullmatch(cell.strip()) else None


def is_missing(cell: str) -> bool:
    """Return whether a cell marks a missing value."""
    return cell.strip().lower() in MISSING


def with_cells(row: Mapping[str, Any], lists: Iterable[str], numbers: Iterable[str] = ()) -> dict[str, Any]:
    """Return a row of a CSV with some of its columns read as lists or objects, and some as numbers.

    A text that is no list stays a text, a list that cannot be read becomes `Unreadable`; cells such as
    ``nan`` become None.
    """
    cells = dict(row)
    for name in cells.keys() & set(lists):
        cells[name] = _list_cell(cells[name])
    for name in cells.keys() & set(numbers):
        number = number_of(cells[name])
        cells[name] = cells[name] if number is None and not is_missing(cells[name]) else number
    return cells


def _list_cell(cell: str) -> Any:
    if is_missing(cell):
        return None
    text = cell.strip()
    if text[:1] not in ("[", "{"):
        return cell
    try:
        return literal(text)
    except ValueError:
        # "[1] See below" is just a text; a list that is broken, or that a spreadsheet cut off, must be seen.
        return Unreadable(cell) if re.match(r"[\[{]\s*['\"]|\[.*]$", text, re.DOTALL) else cell


def _spelled(match: re.Match[str]) -> str:
    """Return a text in quotation marks, every character spelled by its code."""
    text = _ESCAPE.sub(_character, match[1] if match[1] is not None else match[2])
    units = text.encode("utf-16-be", "surrogatepass").hex()
    return '"' + "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)) + '"'


def _character(match: re.Match[str]) -> str:
    plain, *codes = match.groups()
    if plain:
        return _ESCAPED.get(plain, plain)
    return chr(int(next(code for code in codes if code), 16))
