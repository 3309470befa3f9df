"""Untrusted input made safe to store: strict JSON, finite numbers, texts that a file can hold."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

MAX_DEPTH = 100
_LONGEST_NUMBER = 308  # digits; beyond, arithmetic on it overflows
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_SPELLED_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class NotJson(ValueError):
    """A text holds no JSON, or JSON that must not be used; says why."""


class _Unusable(NamedTuple):
    """Takes the place of a value that must not be used, until its entry is rejected."""

    reason: str


def finite(value: Any) -> float | None:
    """Return a finite number as a float, also from numpy and torch; None for truth values and all else."""
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return number if math.isfinite(number) else None


def json_value(value: Any) -> Any:
    """Return a value as JSON can hold it; numbers without a value are None."""
    if isinstance(value, Mapping):
        return {str(key): json_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [json_value(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def clean(text: str) -> str:
    """Return a text with U+FFFD for each half of a surrogate pair, which no file can hold."""
    return _HALF_PAIR.sub("\ufffd", text)


def is_clean(text: str) -> bool:
    """Tell whether a text can be encoded: JSON can spell half of a surrogate pair."""
    return _HALF_PAIR.search(text) is None


def read_json(text: str, *, repair: bool = False) -> Any:
    """Return the value of a JSON text; ValueError where it cannot be used. See `JsonReader`."""
    return JsonReader(repair=repair).read(text)


class JsonReader:
    """Reads JSON of any origin; bare line breaks in strings are accepted.

    Refuses repeated names, numbers not finite or over 308 digits, halves of surrogate pairs, and too deep
    values. With ``repair`` such numbers become None and such halves are replaced, counted in ``n_missing``,
    ``n_replaced``.
    """

    def __init__(self, *, repair: bool = False, max_depth: int = MAX_DEPTH) -> None:
        self.repair, self.max_depth = repair, max_depth
        self.n_missing = self.n_replaced = 0
        self._spells_halves = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._int,
            parse_float=self._float,
            parse_constant=self._constant,
            strict=False,
        )

    def read(self, text: str) -> Any:
        """Return the value of a whole text; ValueError where it cannot be used."""
        return self.checked(self.parse(text))

    def parse(self, text: str) -> Any:
        """Return the value of a whole text, not yet `checked`; ValueError where it is not JSON."""
        self._spells_halves = _SPELLED_HALF_PAIR.search(text) is not None
        try:
            return self._decoder.decode(text)
        except RecursionError as error:
            raise NotJson("nested too deeply") from error

    def parse_start(self, text: str) -> tuple[Any, int]:
        """Return the checked value at the beginning of a text, and where it ends."""
        self._spells_halves = _SPELLED_HALF_PAIR.search(text) is not None
        try:
            value, end = self._decoder.raw_decode(text)
        except RecursionError as error:
            raise NotJson(f"it is nested deeper than {self.max_depth}") from error
        return self.checked(value), end

    def checked(self, value: Any) -> Any:
        """Return a value of the text parsed last, repaired if requested; `NotJson` says what is wrong."""
        stack = [(value, 1)]
        while stack:
            item, depth = stack.pop()
            if isinstance(item, _Unusable):
                raise NotJson(item.reason)
            if isinstance(item, (dict, list)):
                if depth > self.max_depth:
                    raise NotJson(f"it is nested deeper than {self.max_depth}")
                children = item.values() if isinstance(item, dict) else item
                stack += [(c, depth + 1) for c in children if isinstance(c, (dict, list, _Unusable))]
        return self._whole(value) if self._spells_halves else value

    def notes(self) -> list[str]:
        """Say what was changed while reading."""
        notes = []
        if self.n_missing:
            notes.append(f"Numbers that are not finite (NaN …) were read as missing: {self.n_missing:,}.")
        if self.n_replaced:
            notes.append(f"Texts in which half a surrogate pair was replaced: {self.n_replaced:,}.")
        return notes

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Unusable:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        return _Unusable(f"the name {twice[:50]!r} comes twice in one object")

    def _int(self, text: str) -> int | _Unusable | None:
        return int(text) if len(text) <= _LONGEST_NUMBER else self._odd("a number is too large")

    def _float(self, text: str) -> float | _Unusable | None:
        number = float(text)
        return number if math.isfinite(number) else self._odd("a number is too large")

    def _constant(self, text: str) -> _Unusable | None:
        return self._odd(f"{text} is not JSON")

    def _odd(self, reason: str) -> _Unusable | None:
        if not self.repair:
            return _Unusable(reason)
        self.n_missing += 1
        return None

    def _whole(self, value: Any) -> Any:
        """Replace the halves of surrogate pairs in every text, or refuse them."""
        if isinstance(value, str) and not is_clean(value):
            if not self.repair:
                raise NotJson("a string holds half a surrogate pair")
            self.n_replaced += 1
            return clean(value)
        if isinstance(value, dict):
            return {self._whole(key): self._whole(entry) for key, entry in value.items()}
        return [self._whole(entry) for entry in value] if isinstance(value, list) else value
