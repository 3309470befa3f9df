"""Cells of a CSV that hold lists and objects: as JSON, as Python prints them, as numpy prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.text.strict import MAX_DEPTH, read_json

# Nothing is evaluated: a cell is rewritten as JSON, token by token, and parsed as such.
_TOKEN = re.compile(
    r"""(?P<text>'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |(?P<number>-?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?)
    |(?P<word>None|True|False|nan|null|true|false)
    |(?P<open>[\[({])
    |(?P<close>[\])}])
    |(?P<between>[,:])
    |(?P<space>\s++)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"""\\(?:([\\'"nrtabfv])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}))"""
)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_AS_JSON = {"None": "null", "nan": "null", "True": "true", "False": "false", "(": "[", ")": "]"}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_MISSING = ("", "nan", "na", "n/a", "none", "null")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A cell that is meant as a list but breaks off or is broken; no reader takes it for anything else."""

    cell: str

    def __str__(self) -> str:
        return self.cell


def literal(cell: str) -> Any:
    """Return the list or object that a cell spells out.

    Parameters
    ----------
    cell : str
        JSON, or a Python literal of lists, dictionaries, texts, numbers and None; neighbours without a
        comma between them, as numpy prints an array, count as separate entries.

    Raises
    ------
    ValueError
        Neither of them, or nested deeper than 100 levels.

    Examples
    --------
    >>> literal('''["it's", 'b', None]''')
    ["it's", 'b', None]
    >>> literal("['one' 'two']")
    ['one', 'two']
    """
    try:
        return read_json(cell, mend=True)
    except ValueError:
        return read_json("".join(_as_json(cell)), mend=True)


def number_of(cell: str) -> float | None:
    """Return the number that a cell spells; None where it spells none (007 is a code, not a number)."""
    return read_json(cell.strip(), mend=True) if _NUMBER.fullmatch(cell.strip()) else None


def is_missing(cell: str) -> bool:
    """Tell whether a cell says that there is no value."""
    return cell.strip().lower() in _MISSING


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


def _as_json(cell: str) -> Iterable[str]:
    """Rewrite a Python literal as JSON; what is no literal comes out as no JSON."""
    depth = 0
    before = comma = ""
    for kind, token in _tokens(cell):
        depth += (kind == "open") - (kind == "close")
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        ends_value = before in ("text", "number", "word", "close")
        if kind == "between":
            yield comma
            comma = token
        else:
            # A comma before a closing bracket is left out; one between neighbours is put in.
            if kind != "close":
                yield comma or ("," if ends_value else "")
            comma = ""
            yield _value(kind, token)
        before = kind
    yield comma


def _tokens(cell: str) -> Iterable[tuple[str, str]]:
    place = 0
    while place < len(cell):
        match = _TOKEN.match(cell, place)
        if match is None:
            raise ValueError(f"no list or object at {cell[place : place + 20]!r}")
        place = match.end()
        if match.lastgroup and match.lastgroup != "space":
            yield match.lastgroup, match[0]


def _value(kind: str, token: str) -> str:
    if kind == "text":
        return json.dumps(_ESCAPE.sub(_character, token[1:-1]))
    if kind == "number" and not _NUMBER.fullmatch(token):
        return repr(float(token))
    return _AS_JSON.get(token, token)


def _character(match: re.Match[str]) -> str:
    plain, *codes = match.groups()
    if plain:
        return _ESCAPED.get(plain, plain)
    return chr(int(next(code for code in codes if code), 16))
