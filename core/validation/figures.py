"""Whether the numbers and dates of an answer are in its passages, with their units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import regex

from core.text.folding import folded, places
from core.text.numbers import WrittenNumber, numbers
from core.text.quantities import Date, Quantity, in_kind, located_dates, located_quantities, numerals
from core.text.sentences import Span

_MOST = 0.05  # relative difference that rounding, or "about", may make
_CONVERTED = 0.01  # what is converted is rounded on the way
_DEGREE = 0.5
_POUND = 0.45359237  # kilograms
_COUNTED_AT_A_GLANCE = 3  # "the two", "three reasons": counts that need no source
_DECIMALS = regex.compile(r"[.,](\d+)(?!.*\d)")
_DIGIT = regex.compile(r"\d")


class Figure(NamedTuple):
    """A number with its unit at ``span``; ``number``, ``decimals`` and ``in_words`` are how it is written."""

    span: Span
    quantity: Quantity
    number: WrittenNumber
    decimals: int
    in_words: bool


class Figures(NamedTuple):
    """The dates of a text with their places, its other numbers, and the values of all of them."""

    dates: tuple[tuple[Span, Date], ...]
    counted: tuple[Figure, ...]
    values: frozenset[float]


class Checked(NamedTuple):
    """How many numbers and dates of an answer were compared, and where those are that no source has."""

    n: int
    unsupported: tuple[Span, ...]


def check_figures(answer: str, passages: Sequence[str], question: str = "") -> Checked:
    """Compare each number of an answer with those of its passages, and of the question.

    Units are converted. A number may be rounded to the digits it is written with, by 5 % at most; behind
    "about" by 5 % in any case, and by 1 % where its unit is converted. A number with a unit needs one of the
    same kind, or one without a unit. A year is no count. Ordinals, and counts up to three in words, are not
    compared.

    >>> check_figures("It is 2 km long and has 9 arches.", ["2,000 metres long, with 15 arches"])
    Checked(n=2, unsupported=((24, 25),))
    """
    found = figures(answer)
    checked = [figure for figure in found.counted if not _needs_no_source(figure)]
    if not checked and not found.dates:
        return Checked(0, ())
    # Most numbers are in the first passages: the others are read only where one is not.
    texts = (*passages, question)
    missing = [span for span, date in found.dates if not _is_found(date, texts)]
    missing += [one.span for one in checked if not any(_is_counted(one, figures(text)) for text in texts)]
    return Checked(len(found.dates) + len(checked), tuple(sorted(missing)))


@lru_cache(maxsize=4096)
def figures(text: str) -> Figures:
    """Return the dates and numbers of a text."""
    plain = folded(text)
    if not plain.strip():
        return Figures((), (), frozenset())
    origin = places(text)
    dated = tuple(((origin[start], origin[end]), date) for start, end, date in located_dates(text))
    return Figures(dated, tuple(_counted(text, plain, origin)), frozenset().union(*numerals(text)))


def _counted(text: str, plain: str, origin: Sequence[int]) -> Iterator[Figure]:
    written = {number.start: number for number in numbers(plain)}
    for start, end, quantity in located_quantities(text):
        number = written.get(start)
        if number and len(number.values) == len(quantity.values):
            piece = plain[start : number.end]
            tail = _DECIMALS.search(piece)
            decimals = len(tail[1]) if tail else 0
            yield Figure((origin[start], origin[end]), quantity, number, decimals, not _DIGIT.search(piece))


def _needs_no_source(figure: Figure) -> bool:
    few = figure.in_words and 0 < figure.quantity.values[0] <= _COUNTED_AT_A_GLANCE
    return figure.number.ordinal or (few and not figure.quantity.measured)


def _is_found(date: Date, texts: Sequence[str]) -> bool:
    """Tell whether one text has a date, or all of them together."""
    return any(_is_dated(date, [figures(text)]) for text in texts) or _is_dated(
        date, [figures(text) for text in texts]
    )


def _is_dated(date: Date, sources: Sequence[Figures]) -> bool:
    """Tell whether a source has a date with all that this one says; its year may be said apart."""
    known = [reading for source in sources for _, other in source.dates for reading in other.readings()]
    years = {other.year for other in known}
    for one in date.readings():
        if one.month is None and any(one.year in source.values for source in sources):
            return True
        for other in known:
            day = one.month == other.month and one.day in (None, other.day)
            year = one.year in (None, other.year) or (other.year is None and one.year in years)
            if year and (day or one.month is None):
                return True
    return False


def _is_counted(figure: Figure, source: Figures) -> bool:
    if not figure.quantity.kind and any(value in source.values for value in figure.quantity.values):
        return True
    return any(_is_said_by(figure, other) for other in source.counted)


def _is_said_by(figure: Figure, other: Figure) -> bool:
    said, known = figure.quantity, other.quantity
    if not (said.measured or known.measured):
        return _near(figure, said.values, known.values, converted=False)
    if not (said.kind and known.kind):  # a unit on one side only: the bare numbers
        return _near(figure, figure.number.unscaled, other.number.unscaled, converted=False)
    if {said.kind, known.kind} == {"mass", "sterling"} and _in_pounds(figure) and _in_pounds(other):
        return _near(figure, figure.number.values, other.number.values, converted=False)
    same = in_kind(known, said.kind)
    if same is None:
        return False
    if same is not known:
        step = _DEGREE * 10**-figure.decimals + _DEGREE * figure.quantity.loose
        return any(abs(a - b) <= step for a in said.values for b in same.values)
    return _near(figure, said.values, known.values, converted=not _decimal(figure, other))


def _in_pounds(figure: Figure) -> bool:
    """Tell whether a number may be of money: "pounds" are read as a weight."""
    quantity, number = figure.quantity, figure.number
    return quantity.kind == "sterling" or math.isclose(quantity.values[0], number.values[0] * _POUND)


def _near(figure: Figure, said: Sequence[float], known: Sequence[float], converted: bool) -> bool:
    return any(
        math.isclose(a, b, rel_tol=1e-9) or abs(a - b) <= abs(a) * _leeway(figure, unscaled, converted)
        for a, unscaled in zip(said, figure.number.unscaled, strict=True)
        for b in known
    )


def _leeway(figure: Figure, unscaled: float, converted: bool) -> float:
    """Return the relative difference that the digits of a number allow: half a unit of the last."""
    if figure.quantity.loose:
        return _MOST
    decimals = 0 if unscaled.is_integer() and figure.decimals == 3 else figure.decimals
    half = min(_MOST, 0.5 * 10.0**-decimals / abs(unscaled)) if unscaled else 0.0
    return max(half, _CONVERTED) if converted else half


def _decimal(a: Figure, b: Figure) -> bool:
    """Tell whether the units of two numbers differ by a power of ten, so that converting rounds nothing."""
    sizes = [f.quantity.values[0] / f.number.unscaled[0] if f.number.unscaled[0] else 1.0 for f in (a, b)]
    power = math.log10(abs(sizes[0] / sizes[1])) if all(sizes) else 0.0
    return math.isclose(power, round(power), abs_tol=1e-9)
