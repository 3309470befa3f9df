"""Reading one record of a file, field by field, and the cells of a CSV that hold lists and objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from core.sources.report import IssueLog, shorten
from core.text.strict import finite, is_clean, read_json

# The limits of every record, whatever file it comes from.
MAX_TEXT = 1_000_000
MAX_LIST = 10_000
MAX_ID = 1_000
_SHOWN = 12
T = TypeVar("T")
Rejected = tuple[int, str, Any]


class FieldError(Exception):
    """A field cannot be used; becomes an issue of the report, so users never see it as such."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        super().__init__(expected)
        self.field, self.value, self.expected = field, value, expected


class Fields:
    """The fields of one record.

    A required field that cannot be used raises `FieldError`: the record is left out and the reader notes why.
    An optional one is noted as a warning and read as absent, so that one odd field does not cost the record –
    unless the reading is strict: what will be paid for must be right. ``row`` is the record's 1-based number
    in the file, ``path`` its place inside a larger one, e.g. ``tasks[3].``.
    """

    def __init__(
        self, record: object, row: int = 1, log: IssueLog | None = None, path: str = "", strict: bool = False
    ) -> None:
        if not isinstance(record, Mapping):
            raise FieldError(path.rstrip(".") or "record", record, "an object with named fields")
        self.record: Mapping[str, Any] = record
        self.row, self.path, self.strict = row, path, strict
        self.log = IssueLog() if log is None else log
        self.used: set[str] = set()

    def inner(self, record: object, name: str) -> Fields:
        """Return the fields of an object under a name of this record."""
        return Fields(record, self.row, self.log, f"{self.path}{name}.", self.strict)

    def required_text(self, *names: str) -> str:
        """Return the first of these fields that is there: a text that is not empty."""
        name, value = self._first(names)
        if value is None:
            seen = ", ".join(shorten(name) for name in list(self.record)[:_SHOWN])
            there = f"; there are only {seen}" if seen and name not in self.record else ""
            raise FieldError(self.path + name, "", f"a text that is not empty{there}")
        if not isinstance(value, str) or not value.strip():
            raise FieldError(self.path + name, value, "a text that is not empty")
        if wrong := text_problem(value):
            raise FieldError(self.path + name, value, wrong)
        return value

    def required_items(self, *names: str) -> Sequence[Any]:
        """Return a list of anything; `FieldError` where it is absent or no list."""
        name, value = self._first(names)
        entries = _as_list(value)
        if entries is None:
            expected = f"at most {MAX_LIST:,} entries" if isinstance(value, (list, tuple)) else "a list"
            raise FieldError(self.path + name, "" if value is None else value, expected)
        return entries

    def required_id(self, name: str) -> str:
        """Return an identifier; `FieldError` without a usable one."""
        value = self._first((name,))[1]
        found = as_id(value)
        if found is None:
            value = "" if value is None else value
            raise FieldError(self.path + name, value, "an id: a text or a whole number")
        return found

    def text(self, *names: str) -> str | None:
        """Return a text, which may be empty; None where absent, null or unusable."""
        return self._optional(names, _as_text, "a text")

    def texts(self, *names: str) -> tuple[str, ...]:
        """Return a list of texts; () where absent, null or unusable."""
        return self._optional(names, _as_texts, f"a text or a list of at most {MAX_LIST:,} texts") or ()

    def identifier(self, *names: str) -> str | None:
        """Return an id as text, also from an integer; None where absent, null or unusable."""
        return self._optional(names, as_id, f"a text of 1 to {MAX_ID:,} characters, or a whole number")

    def number(self, *names: str) -> float | None:
        """Return a finite number; None where absent, null or unusable."""
        return self._optional(names, finite, "a finite number")

    def seconds(self, *names: str) -> float | None:
        """Return a time that something took; None where absent, null or unusable."""
        return self._optional(names, _as_seconds, "seconds, 0 or more")

    def flag(self, *names: str) -> bool | None:
        """Return a truth value; None where absent, null or unusable."""
        return self._optional(names, lambda v: v if isinstance(v, bool) else None, "true or false")

    def items(self, *names: str) -> Sequence[Any]:
        """Return a list of anything; () where absent, null or unusable."""
        return self._optional(names, _as_list, f"a list of at most {MAX_LIST:,} entries") or ()

    def mapping(self, *names: str) -> Mapping[str, Any]:
        """Return an object; empty where absent, null or unusable."""
        return self._optional(names, lambda v: v if isinstance(v, Mapping) else None, "an object") or {}

    def numbers(self, name: str) -> dict[str, float]:
        """Return the finite numbers of an object; other values and unusable names are left out."""
        given = self.mapping(name)
        found = {key: n for key, value in given.items() if (n := finite(value)) is not None and as_id(key)}
        for key in (key for key in given if key not in found):
            self.warn(f"{name}.{shorten(key)}", given[key], "a named finite number")
        return found

    def warn(self, name: str, value: object, expected: str) -> None:
        """Note that a field is not used; `FieldError` where the reading is strict."""
        if self.strict:
            raise FieldError(self.path + name, value, expected)
        self.log.add(self.row, self.path + name, value, expected, "warning")

    def rest(self) -> dict[str, Any]:
        """Return the unused fields that are not null."""
        return {str(k): v for k, v in self.record.items() if k not in self.used and v is not None}

    def present(self, *names: str) -> str | None:
        """Return the first of these names whose field is not null, or None; only this one counts as used."""
        for name in names:
            if self.record.get(name) is not None:
                self.used.add(name)
                return name
        return None

    def _first(self, names: Sequence[str]) -> tuple[str, Any]:
        name = self.present(*names)
        return (names[0], None) if name is None else (name, self.record[name])

    def _optional(self, names: Sequence[str], read: Callable[[Any], T | None], expected: str) -> T | None:
        name = self.present(*names)
        if name is None:
            return None
        value = self.record[name]
        result = read(value)
        if result is None:
            self.warn(name, value, (isinstance(value, str) and text_problem(value)) or expected)
        return result


def text_problem(text: str) -> str | None:
    """Return what would be right where a text cannot be used, or None."""
    if len(text) > MAX_TEXT:
        return f"a text of at most {MAX_TEXT:,} characters"
    return None if is_clean(text) else "valid Unicode (this holds half of a surrogate pair)"


def as_id(value: object) -> str | None:
    """Return an identifier as text, also from an integer; None where it is absent or of no use."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
        value = str(value)
    usable = isinstance(value, str) and value.strip() and len(value) <= MAX_ID and is_clean(value)
    return str(value) if usable else None


def without_null(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in entry.items() if value is not None}


def unique(names: Sequence[str | None], stem: str = "d") -> tuple[str, ...]:
    """Return unique names: ``a, a, None`` becomes ``a, a (2), d3``; no new name is already in the list."""
    given = {name for name in names if name is not None}
    used: set[str] = set()
    counts: dict[str, int] = {}
    result = []
    for place, name in enumerate(names, start=1):
        base = f"{stem}{place}" if name is None else name
        candidate = base
        while candidate in used or (candidate in given and (name is None or candidate != name)):
            counts[base] = counts.get(base, 1) + 1
            candidate = f"{base} ({counts[base]})"
        used.add(candidate)
        result.append(candidate)
    return tuple(result)


def read_each(
    entries: Iterable[tuple[int, Any]], log: IssueLog, read: Callable[[int, Any], T]
) -> tuple[list[T], list[Rejected]]:
    """Read entries one by one; those for which ``read`` raises `FieldError` are logged and rejected."""
    records, rejected = [], []
    for number, entry in entries:
        try:
            records.append(read(number, entry))
        except FieldError as error:
            log.add(number, error.field, error.value, error.expected)
            rejected.append((number, f"{error.field}: expected {error.expected}", entry))
    return records, rejected


def _as_seconds(value: object) -> float | None:
    number = finite(value)
    return None if number is None or number < 0 else number


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) and text_problem(value) is None else None


def _as_texts(value: object) -> tuple[str, ...] | None:
    entries = [value] if isinstance(value, str) else _as_list(value)
    if entries is None or not all(_as_text(entry) is not None for entry in entries):
        return None
    return tuple(entries)


def _as_list(value: object) -> Sequence[Any] | None:
    return value if isinstance(value, (list, tuple)) and len(value) <= MAX_LIST else None


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


def said_number(value: object) -> float | None:
    """Return a finite number, also one that is written as a text; None for anything else."""
    try:
        return finite(float(value) if isinstance(value, str) else value)
    except ValueError:
        return None


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
