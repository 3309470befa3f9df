"""Parsing JSON of any origin into values that can be kept, shown and written again."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

MAX_DEPTH = 100
_MAX_DIGITS = 300
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonReader:
    """Parses JSON texts and counts what could not be taken as it stands.

    Attributes
    ----------
    n_missing : int
        Numbers that are not finite (NaN, Infinity, 1e999, thousands of digits), read as null.
    n_replaced : int
        Texts in which half of a surrogate pair was replaced: it is no character and no file can hold it.
    """

    def __init__(self) -> None:
        self.n_missing = self.n_replaced = 0
        self._repeated: list[tuple[dict[str, Any], str]] = []
        self._spells_halves = False

    def parse(self, text: str) -> Any:
        """Return the value of a JSON text; ValueError where it has none."""
        self._repeated.clear()
        self._spells_halves = _SURROGATE_ESCAPE.search(text) is not None
        try:
            value = json.loads(
                text,
                object_pairs_hook=self._object,
                parse_float=self._float,
                parse_int=self._int,
                parse_constant=self._missing,
            )
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        return value

    def problem(self, value: Any) -> str | None:
        """Say what would be right in a value of the text parsed last (depth, keys given twice), or None."""
        repeated = {id(entry): key for entry, key in self._repeated}
        stack = [(value, 1)]
        while stack:
            item, depth = stack.pop()
            if not isinstance(item, (dict, list)):
                continue
            if id(item) in repeated:
                return f"every key once in an object ({repeated[id(item)][:40]!r} stands there twice)"
            if depth > MAX_DEPTH:
                return f"at most {MAX_DEPTH} levels of nesting"
            children = item.values() if isinstance(item, dict) else item
            stack += [(child, depth + 1) for child in children if isinstance(child, (dict, list))]
        return None

    def tidy(self, value: Any) -> Any:
        """Return a value of the text parsed last, without `problem`, with half surrogate pairs replaced."""
        return self._whole(value) if self._spells_halves else value

    def notes(self) -> list[str]:
        """Say what was not taken as it stands."""
        notes = []
        if self.n_missing:
            notes.append(f"Numbers that are not finite (NaN …) were read as missing: {self.n_missing:,}.")
        if self.n_replaced:
            notes.append(f"Texts in which half a surrogate pair was replaced: {self.n_replaced:,}.")
        return notes

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entry = dict(pairs)
        if len(entry) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            # Kept alive here, so that no later object gets its id.
            self._repeated.append((entry, counts.most_common(1)[0][0]))
        return entry

    def _float(self, text: str) -> float | None:
        number = float(text)
        return number if math.isfinite(number) else self._missing(text)

    def _int(self, text: str) -> int | None:
        return int(text) if len(text) <= _MAX_DIGITS else self._missing(text)

    def _missing(self, _: str) -> Any:
        self.n_missing += 1
        return None

    def _whole(self, value: Any) -> Any:
        if isinstance(value, str):
            whole = _LONE_SURROGATE.sub("\ufffd", value)
            self.n_replaced += whole != value
            return whole
        if isinstance(value, dict):
            return {self._whole(key): self._whole(entry) for key, entry in value.items()}
        return [self._whole(entry) for entry in value] if isinstance(value, list) else value
