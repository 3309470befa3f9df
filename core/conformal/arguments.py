"""What the functions of this package take: error rates read as decimals, columns of numbers, labels."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats, Ints
from core.errors import InputError


def rate(name: str, value: float) -> Fraction:
    """Return an error rate as the decimal it is written as.

    0.7 as a float is a little less than 7/10, so that 10 · (1 − 0.7) is more than 3 and its ceiling is 4: one
    label too many. Here it is 7/10.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    value : float
        Between 0 and 1, both excluded.

    Raises
    ------
    InputError
        It lies elsewhere, or is no number.
    """
    try:
        found = Fraction(str(value))
    except ValueError:
        found = Fraction(0)
    if not 0 < found < 1:
        raise InputError(f"{name} must lie between 0 and 1, both excluded; got {value!r}.")
    return found


def numbers(name: str, values: ArrayLike) -> Floats:
    """Return values as an array of floats; NaN stays. Raises InputError where they are none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}.") from error


def column(name: str, values: ArrayLike) -> Floats:
    """Return values as a column of floats; NaN stays.

    Raises
    ------
    InputError
        They are no numbers, or no column.
    """
    found = numbers(name, values)
    if found.ndim != 1:
        raise InputError(f"{name} must have one dimension, got the shape {found.shape}.")
    return found


def labels(name: str, values: ArrayLike) -> Floats:
    """Return labels as 1, 0 and NaN (unknown).

    Raises
    ------
    InputError
        They are no column, or hold another value.
    """
    found = column(name, values)
    if not np.isin(found[~np.isnan(found)], (0, 1)).all():
        raise InputError(f"{name} must be 1 (correct), 0 (wrong) or NaN (unknown) for each.")
    return found


def same_length(first: str, n: int, second: str, m: int) -> None:
    """Raise InputError where two arguments that belong together differ in length."""
    if n != m:
        raise InputError(f"{first} and {second} must be of equal length, got {n} and {m}.")


def ragged(
    first: str, values: Sequence[ArrayLike], second: str, right: Sequence[ArrayLike]
) -> tuple[Floats, Floats, Ints]:
    """Return lists of numbers and their labels one after another, and the list that each came from.

    Raises
    ------
    InputError
        They differ in length, or `column` or `labels` refuses one.
    """
    same_length(first, len(values), second, len(right))
    given = [column(f"{first}[{i}]", one) for i, one in enumerate(values)]
    known = [column(f"{second}[{i}]", one) for i, one in enumerate(right)]
    for i, (one, other) in enumerate(zip(given, known, strict=True)):
        same_length(f"{first}[{i}]", one.size, f"{second}[{i}]", other.size)
    row = np.repeat(np.arange(len(given)), [one.size for one in given])
    return np.concatenate([[], *given]), labels(second, np.concatenate([[], *known])), row


def weight(name: str, values: ArrayLike, zero: bool) -> Floats:
    """Return weights above 0, or of 0 where that is allowed.

    Raises
    ------
    InputError
        A weight is missing, infinite or too small.
    """
    found = column(name, values)
    if not (np.isfinite(found) & (found >= 0 if zero else found > 0)).all():
        raise InputError(f"{name} must be finite and {'at least' if zero else 'above'} 0.")
    return found
