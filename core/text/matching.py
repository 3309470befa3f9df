"""Whether an answer is correct, where reference answers are known."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from core.text.abstention import answer_status
from core.text.reading import read


def is_correct(answer: str | None, references: Sequence[str] | None) -> bool | None:
    """Tell whether an answer contains one of the reference answers, word for word and numbers by value.

    Parameters
    ----------
    answer : str or None
        The answer given.
    references : sequence of str or None
        Answers known to be correct.

    Returns
    -------
    bool or None
        None without a reference, and for an empty answer or an abstention, which are neither correct
        nor incorrect.

    Examples
    --------
    >>> is_correct("It was Raymond Unwin.", ["Raymond Unwin"]), is_correct("I don't know", ["Unwin"])
    (True, None)
    >>> is_correct("It has fifteen arches.", ["15 arches"])
    True
    """
    targets = [target for target in map(_said, references or ()) if target]
    if not targets or answer is None or answer_status(answer) != "answered":
        return None
    given = _said(answer)
    return any(
        given[start : start + len(target)] == target
        for target in targets
        for start in range(len(given) - len(target) + 1)
    )


def _said(text: str) -> list[str]:
    return [token.stem if token.is_number else token.word for token in read(text)]


def correctness(answers: pd.Series, references: pd.Series) -> pd.Series:
    """Return `is_correct` of every answer, missing where it is None."""
    return pd.Series(
        [
            is_correct(answer if isinstance(answer, str) else None, known)
            for answer, known in zip(answers, references, strict=True)
        ],
        dtype="boolean",
    )
