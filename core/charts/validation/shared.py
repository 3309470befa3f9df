"""What the figures of *validation* share: why there is nothing to draw, and names of validators."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from core.charts.theme import safe_text, where_door
from core.conditions import where
from core.validation.analysis import ValidationAnalysis
from core.validation.definitions import REASONS
from core.validation.fallback import OURS

UNLABELLED = "No validated answer is known to be correct or incorrect."
_NAME = 40  # characters of a validator's name
_PART = re.compile(r"(?<=[a-z])(?=[A-Z])")


def void(analysis: ValidationAnalysis, *, labelled: bool = False) -> str:
    """Return why there is nothing to draw; "" where there is, with labels where they are asked for."""
    if not analysis.n:
        return REASONS["not_validated"].meaning
    return UNLABELLED if labelled and not analysis.stopped.n else ""


def applied(analysis: ValidationAnalysis) -> pd.DataFrame:
    """Return the validators that could check an answer, with their places: others have nothing to show."""
    rows = analysis.validators
    rows = rows[rows["n_applied"] > 0]
    return rows.assign(at=range(1, len(rows) + 1))


def name_of(validator: str) -> str:
    """Return the name of a validator in lines that leave a phone room for the bars."""
    return _PART.sub("<br>", safe_text(validator, _NAME), count=1)


def known_name(validator: str) -> str:
    """Return the name of a validator for a description, which holds no text from data."""
    return validator if validator in OURS else "a validator of the file"


def door(table: str, n: int, /, **columns: Any) -> str:
    """Return the door to the n questions that meet a condition; "" where there is none."""
    return where_door(where("validation", table, **columns)) if n else ""
