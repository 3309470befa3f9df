"""Records written as JSON that every reader takes: UTF-8, no NaN, no half characters."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any


def to_document(value: Any) -> bytes:
    """Return a JSON document, indented, with a final newline."""
    return _utf8(json.dumps(_finite(value), ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def to_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return JSON Lines, one record a line."""
    lines = (json.dumps(_finite(record), ensure_ascii=False, allow_nan=False) + "\n" for record in records)
    return _utf8("".join(lines))


def _finite(value: Any) -> Any:
    """Return the value with null in the place of numbers that JSON does not have."""
    if isinstance(value, float):
        # 3.0 was most often written as 3.
        whole = value.is_integer() and abs(value) < 2**53
        return int(value) if whole else value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _utf8(text: str) -> bytes:
    # JSON spells half of a surrogate pair just as Python's escape of it does.
    return text.encode("utf-8", errors="backslashreplace")
