"""Whether an answer is correct, where reference answers are known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pandas as pd
import regex

from core.text.abstention import answer_status
from core.text.choices import chosen, options
from core.text.folding import folded
from core.text.numbers import any_of
from core.text.quantities import MONTHS, Date, Quantity, located_dates, located_quantities
from core.text.reading import read

_MONTH = regex.compile(rf"\b(?:{any_of(MONTHS)})\b")
_MAY_HOLD_A_DAY = regex.compile(r"\d|\p{Han}")
_OR = {"or", "hay", "hoặc", "或"}
_BEFORE = {"a", "an", "the"}
_REWRITTEN = {"not", "can", "will", "shall"}  # read in "n't", "can't", "won't", "shan't"


def is_correct(answer: str | None, references: Sequence[str] | None, question: str = "") -> bool | None:
    """Tell whether an answer says one of the reference answers: word for word, numbers and dates by value.

    Parameters
    ----------
    answer : str or None
        The answer given.
    references : sequence of str or None
        Answers known to be correct.
    question : str, optional
        Where it offers two options, an answer that names both is judged by what it says of them.

    Returns
    -------
    bool or None
        None without a reference, and for an empty answer or an abstention, which are neither correct
        nor incorrect.

    Notes
    -----
    A date with a day is compared whole, so "27 July" is not said by "27 July 1858"; "5/11/2018" may be two
    days and is neither. A value that is only one of several offered ("new moon or full moon") is not said.

    Examples
    --------
    >>> is_correct("It was Raymond Unwin.", ["Raymond Unwin"]), is_correct("I don't know", ["Unwin"])
    (True, None)
    >>> is_correct("It has fifteen arches.", ["15 arches"]), is_correct("27/07/1866", ["27 July 1866"])
    (True, True)
    """
    texts = [text for text in references or () if _said(text)]
    if not texts or answer is None or answer_status(answer) != "answered":
        return None
    choice = chosen(question, answer)
    right = [option for option in options(question) if _says(option, texts)]
    return (choice is None or not right or choice in right) and _says(answer, texts)


def correctness(queries: pd.DataFrame) -> pd.Series:
    """Return whether every answer of a run is correct, missing where that is not known.

    What a person or another program said (``queries["correct"]``) goes before `is_correct`.
    """
    columns = (queries[name] for name in ("answer", "reference_answers", "question"))
    found = [
        _is_correct(answer, tuple(known or ()), question) if isinstance(answer, str) else None
        for answer, known, question in zip(*columns, strict=True)
    ]
    return queries["correct"].reset_index(drop=True).fillna(pd.Series(found, dtype="boolean"))


def labelled(queries: pd.DataFrame) -> pd.Series:
    """Return of which questions of a run a label is known: a judgement, or a reference answer."""
    return queries["correct"].notna() | queries["reference_answers"].notna()


# Several diagnostics ask it of the answers of one run, one after the other.
_is_correct = lru_cache(maxsize=131_072)(is_correct)


def says(text: str, references: Sequence[str]) -> bool:
    """Tell whether a text holds a reference answer, word for word, numbers and dates by value.

    Examples
    --------
    >>> says("It was finished in July 1893, at last.", ["1893"]), says("It was finished.", ["1893"])
    (True, False)
    """
    known = [reference for reference in references if _said(reference)]
    return bool(known) and _says(text, known)


def _says(text: str, references: Sequence[str]) -> bool:
    """Tell whether a text holds a reference, in the same words or the same amount in another unit."""
    spoken = folded(text).casefold()
    references = [known for known in references if all(word in spoken for word in _needed(known))]
    if not references:
        return False
    if _holds(_said(text), [_said(known) for known in references]):
        return True
    amounts = [_said(known, True) for known in references if _said(known, True) != _said(known)]
    return bool(amounts) and _holds(_said(text, True), amounts)


@lru_cache(maxsize=16_384)
def _needed(known: str) -> tuple[str, ...]:
    """Return words that stand in every text that says a reference answer: seen without reading the text.

    Only plain words of ASCII: all others may be written in another way. With amounts none are sure.
    """
    said = _said(known)
    if said != _said(known, True):
        return ()
    return tuple(word for word in said if word.isascii() and word.isalpha() and word not in _REWRITTEN)


def _holds(given: tuple[str, ...], targets: Sequence[tuple[str, ...]]) -> bool:
    places = [
        (start, start + len(target))
        for target in targets
        for start in range(len(given) - len(target) + 1)
        if given[start : start + len(target)] == target
    ]
    return any(
        not any(
            # Another alternative; unless that is known to be right as well.
            given[i] in _OR and not any(first >= i if i >= end else last <= i for first, last in places)
            for i in _beside(given, start, end)
        )
        for start, end in places
    )


def _beside(given: tuple[str, ...], start: int, end: int) -> list[int]:
    """Return the places of the words that stand just before and just behind a value."""
    while start and given[start - 1] in _BEFORE:
        start -= 1
    return [i for i in (start - 1, end) if 0 <= i < len(given)]


@lru_cache(maxsize=16_384)
def _said(text: str, measured: bool = False) -> tuple[str, ...]:
    """Return the words of a text, with dates, and amounts with a unit if ``measured``, as one form each."""
    # A small letter is no month elsewhere: "may", "march".
    plain = _MONTH.sub(lambda month: month[0].capitalize(), folded(text))
    dated = located_dates(plain) if _MAY_HOLD_A_DAY.search(plain) else []
    values = [(start, end, _day(date)) for start, end, date in dated if date.day and not date.swapped]
    if measured:
        values += [(start, end, _amount(q)) for start, end, q in located_quantities(plain) if q.measured]
    found: list[str] = []
    last = 0
    for start, end, value in sorted(values):
        found += [*_words(plain[last:start]), *value]
        last = end
    return (*found, *_words(plain[last:]))


def _words(text: str) -> list[str]:
    return [token.stem if token.is_number else token.word for token in read(text)]


def _day(date: Date) -> list[str]:
    # The year stays a number of its own, so that it may be all that was asked for.
    if date.year is None:
        return [f"{date.month}/{date.day}"]
    return [f"{date.month}/{date.day}/", f"#{date.year}"]


def _amount(quantity: Quantity) -> list[str]:
    return [f"{quantity.values[0]:.9g} {quantity.kind}"]
