"""Reading one record of a foreign file, field by field, with an exact word for everything that is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from core.sources.corpus import text_problem
from core.sources.question import FieldError
from core.sources.report import IssueLog

MAX_TEXT = 1_000_000
MAX_LIST = 10_000
T = TypeVar("T")


class Fields:
    """The fields of one record.

    A required field that cannot be used raises `FieldError`: the record is left out and the reader notes why.
    An optional one that cannot be used is noted as a warning and read as absent, so that one odd field does
    not cost the record.

    Parameters
    ----------
    record : Mapping
        As parsed from the file.
    row : int
        1-based number of the record (or line) in the file.
    log : IssueLog
        Takes the warnings.
    path : str
        Where the record stands inside a larger one, e.g. ``tasks[3].``; put before field names.
    """

    def __init__(self, record: object, row: int, log: IssueLog, path: str = "") -> None:
        if not isinstance(record, Mapping):
            raise FieldError(path.rstrip(".") or "record", record, "an object with named fields")
        self.record: Mapping[str, Any] = record
        self.row, self.log, self.path = row, log, path
        self.used: set[str] = set()

    def required_text(self, *names: str) -> str:
        """Return the first of these fields that is there: a text that is not empty."""
        name = self.present(*names)
        value = None if name is None else self.record[name]
        if not isinstance(value, str) or not value.strip():
            raise FieldError(
                self.path + (name or names[0]), "" if value is None else value, "a text that is not empty"
            )
        return _checked(self.path + str(name), value)

    def text(self, *names: str) -> str | None:
        """Return a text, which may be empty; None where absent, null or unusable."""
        return self._optional(names, _as_text, "a text")

    def texts(self, *names: str) -> tuple[str, ...]:
        """Return a list of texts; () where absent, null or unusable."""
        return self._optional(names, _as_texts, f"a list of at most {MAX_LIST:,} texts") or ()

    def number(self, *names: str) -> float | None:
        """Return a finite number; None where absent, null or unusable."""
        return self._optional(names, as_number, "a finite number")

    def items(self, *names: str) -> Sequence[Any]:
        """Return a list of anything; () where absent, null or unusable."""
        return self._optional(names, _as_list, f"a list of at most {MAX_LIST:,} entries") or ()

    def required_items(self, *names: str) -> Sequence[Any]:
        """Return a list of anything; `FieldError` where it is absent or no list."""
        name = self.present(*names)
        value = None if name is None else self.record[name]
        entries = _as_list(value)
        if entries is None:
            raise FieldError(self.path + (name or names[0]), "" if value is None else value, "a list")
        return entries

    def mapping(self, *names: str) -> Mapping[str, Any]:
        """Return an object; empty where absent, null or unusable."""
        return self._optional(names, lambda v: v if isinstance(v, Mapping) else None, "an object") or {}

    def warn(self, name: str, value: object, expected: str) -> None:
        """Note that a field is not used as it stands."""
        self.log.add(self.row, self.path + name, value, expected, "warning")

    def rest(self) -> dict[str, Any]:
        """Return the fields that nobody asked for and that are not null."""
        return {str(k): v for k, v in self.record.items() if k not in self.used and v is not None}

    def present(self, *names: str) -> str | None:
        """Return the first of these names whose field is not null, and count it as used; None without any.

        A further one of them that is there too stays unused, so that `rest` returns it.
        """
        name = next((name for name in names if self.record.get(name) is not None), None)
        if name is not None:
            self.used.add(name)
        return name

    def _optional(self, names: Sequence[str], read: Callable[[Any], T | None], expected: str) -> T | None:
        name = self.present(*names)
        if name is None:
            return None
        value = self.record[name]
        result = read(value)
        if result is None:
            self.warn(name, value, expected)
        return result


def as_number(value: object) -> float | None:
    """Return a finite number, also from an integer; None for anything else (truth values included)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _as_text(value: object) -> str | None:
    usable = isinstance(value, str) and len(value) <= MAX_TEXT and not text_problem(value)
    return str(value) if usable else None


def _as_texts(value: object) -> tuple[str, ...] | None:
    entries = [value] if isinstance(value, str) else _as_list(value)
    if entries is None:
        return None
    texts = [_as_text(entry) for entry in entries]
    return None if None in texts else tuple(text for text in texts if text is not None)


def _as_list(value: object) -> Sequence[Any] | None:
    return value if isinstance(value, (list, tuple)) and len(value) <= MAX_LIST else None


def _checked(field: str, value: str) -> str:
    if len(value) > MAX_TEXT:
        raise FieldError(field, value, f"a text of at most {MAX_TEXT:,} characters")
    if wrong := text_problem(value):
        raise FieldError(field, "(not valid Unicode)", wrong)
    return value
