"""Values that a file reports of a question, as the table ``reported`` holds them: any JSON value, exactly."""

from __future__ import annotations

import json
import math
from typing import Any


def stored(value: Any) -> dict[str, Any]:
    """Return the columns ``value`` and ``text`` of a JSON value; `restored` undoes it exactly.

    Numbers go into ``value``. A text goes into ``text`` as it is, everything else as JSON; a text that
    reads as JSON itself is written as a JSON text, so that it does not come back as what it spells.
    """
    if isinstance(value, str):
        return {"value": None, "text": json.dumps(value, ensure_ascii=False) if _is_json(value) else value}
    if isinstance(value, (int, float)) and not isinstance(value, bool) and _fits(value):
        return {"value": float(value), "text": None}
    return {"value": None, "text": json.dumps(value, ensure_ascii=False)}


def restored(value: float | None, text: str | None) -> Any:
    """Return the JSON value that `stored` put into these columns."""
    if text is None:
        return value
    return json.loads(text) if _is_json(text) else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _fits(number: int | float) -> bool:
    """Tell whether a column of floats can hold the number exactly."""
    try:
        return math.isfinite(number) and float(number) == number
    except OverflowError:
        return False
