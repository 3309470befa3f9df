"""Numbers with their units, and dates, as a text states them: English, Vietnamese and Chinese."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import regex

from core.text.folding import folded
from core.text.numbers import EN_YEAR, NUMBER_WORDS, WrittenNumber, any_of, is_vietnamese, numbers, spelled
from core.text.words import STOP_WORDS, lines_of

_CACHE = 16_384


class Quantity(NamedTuple):
    """A number of a text: its readings in the base unit, the likeliest first; ``loose``: a bound or rough.

    ``kind`` is a dimension ("length"), "#" and a noun ("#passenger"), or "" where nothing is counted.
    """

    values: tuple[float, ...]
    kind: str
    loose: bool

    @property
    def measured(self) -> bool:
        """Whether the number has a unit, and can be said in another one."""
        return bool(self.kind) and not self.kind.startswith("#")


class Date(NamedTuple):
    """A date; None for what is not said. ``swapped``: month and day may be the other way round (5/3/2024)."""

    year: int | None
    month: int | None = None
    day: int | None = None
    swapped: bool = False

    def readings(self) -> tuple[Date, ...]:
        """Return the dates that this one may be."""
        first = Date(*self[:3])
        return (first, Date(self.year, self.day, self.month)) if self.swapped else (first,)


_UNIT = {
    name: (kind, float(size))
    for kind, size, names in (line.split(maxsplit=2) for line in lines_of("units"))
    for name in names.split("|")
}
MONTHS = {
    name: i + 1
    for i, names in enumerate(
        "january|jan february|feb march|mar april|apr may june|jun july|jul august|aug september|sept|sep "
        "october|oct november|nov december|dec".split()
    )
    for name in names.split("|")
}
_NUMBER_OF_MONTH = MONTHS | {"giêng": 1, "chạp": 12}

_MONTH = rf"(?P<m>{any_of(MONTHS)})\.?"
_VI_MONTH = r"(?P<M>\d{1,2}|giêng|hai|ba|tư|năm|sáu|bảy|tám|chín|mười(?:\s+(?:một|hai))?|chạp)\b"
_YEAR = r"(?P<y>[12]\d{3})"
_ZH_YEAR = r"(?P<y>[12]\d{3}|[一二][〇零一二三四五六七八九]{3})\s*年"
_ZH_MONTH = r"(?P<M>\d{1,2}|十[一二]?|[一二三四五六七八九])\s*月"
_ZH_DAY = r"(?P<d>\d{1,2}|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])\s*[日号]"
_DATES = [
    regex.compile(pattern, regex.IGNORECASE)
    for pattern in (
        rf"(?<!\d){_YEAR}(?P<mark>[-/])(?P<M>\d{{1,2}})(?P=mark)(?P<d>\d{{1,2}})(?!\d)",
        rf"(?<![\d./-])(?P<d>\d{{1,2}})(?P<mark>[-/.])(?P<M>\d{{1,2}})(?P=mark){_YEAR}(?!\d)",
        rf"(?<![\d-]){_YEAR}-(?P<M>0[1-9])(?![\d-])",
        rf"{_ZH_YEAR}(?:\s*{_ZH_MONTH}(?:\s*{_ZH_DAY})?)?",
        rf"{_ZH_MONTH}\s*{_ZH_DAY}",
        rf"(?:(?:ngày|mùng|mồng)\s+(?P<d>\d{{1,2}})\s+)?tháng\s+{_VI_MONTH}(?:(?:\s+năm\s+|/){_YEAR})?",
        rf"năm\s+{_YEAR}\b",
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?\b",
        rf"\b{_MONTH}\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s+{_YEAR}\b)?",
        rf"\b{_MONTH},?\s+{_YEAR}\b",
        # A bare number is a year where nothing is counted by it.
        r"(?<=\b(?:in|since|by|of|from|until|till|before|after|around|circa|during|to|and|between|year|early"
        r"|late|mid)\s+|[(–-]\s*)(?P<y>1\d{3}|20\d{2})\b(?!\s*(?:[-–]?\s*\p{L}|[%°]))",
        r"(?<![\d.,$€£])(?P<y>1\d{3}|20\d{2})(?=\s*(?:[;:!?)]|[.,](?!\d)|[–-]\s*\d|$))",
        r"(?<=\b(?:in|since|by|from|between|until|before|after|circa|during)\s+)"
        rf"(?P<y>1[1-9]\d{{2}}|20\d{{2}}|{EN_YEAR})\b(?!\s*[%°])",
    )
]
_DECADE = regex.compile(r"\b(?:1\d|20)\d0['’]?s\b")
_CURRENCY = regex.compile(r"(?:\bUS)?([$€£¥₫])\s?$")
_UNIT_AFTER = regex.compile(rf"[\s-]?(?P<unit>{any_of(_UNIT)})(?![\p{{Latin}}\d²])", regex.IGNORECASE)
_NOUN_AFTER = regex.compile(r"[\s-](\p{Latin}{3,})")
# Behind a measure word, or that word itself: 15个桥孔, 15人.
_HAN_NOUN_AFTER = regex.compile(
    r"\s?(?:[个名位条座只头匹张件台辆架艘枚颗棵朵把家所间层](\p{Han}{1,2})|(\p{Han}))"
)
_LOOSE = regex.compile(
    r"(?:about|around|roughly|nearly|almost|approximately|over|under|above|below|more than|less than"
    r"|fewer than|at least|at most|up to|some|khoảng|gần|hơn|trên|dưới|ít nhất|tối đa|约|大约|近|超过"
    r"|至少|不到)\s*$",
    regex.IGNORECASE,
)


@lru_cache(maxsize=_CACHE)
def dates(text: str) -> tuple[Date, ...]:
    """Return the dates and years of a text, in any notation and order; 5/3/2024 is two, but for Vietnamese.

    >>> dates("二〇二四年三月五日") == dates("ngày 5/3/2024") == dates("March 5, 2024")
    True
    """
    return tuple(date for _, _, date in located_dates(text))


@lru_cache(maxsize=_CACHE)
def quantities(text: str) -> tuple[Quantity, ...]:
    """Return the numbers of a text that are no dates, in order, with what they count, in base units.

    >>> quantities("It is twelve km long.")
    (Quantity(values=(12000.0,), kind='length', loose=False),)
    """
    return tuple(found for _, _, found in located_quantities(text))


@lru_cache(maxsize=_CACHE)
def numerals(text: str) -> tuple[frozenset[float], ...]:
    """Return what each number of a text may mean, whatever it counts: years, days, "twenty-four", "1,794".

    >>> [sorted(n) for n in numerals("24 of 1.5 million")]
    [[24.0], [1.5, 1500000.0]]
    """
    return tuple(frozenset({*n.values, *n.unscaled}) for n in numbers(folded(text)))


def same_values(a: Quantity, b: Quantity, tolerance: float = 1e-9) -> bool:
    """Tell whether two numbers are the same in one of their readings, within a relative difference."""
    return any(math.isclose(x, y, rel_tol=tolerance) for x in a.values for y in b.values)


def in_kind(quantity: Quantity, kind: str) -> Quantity | None:
    """Return a quantity as one of another kind: degrees Fahrenheit in Celsius and back; None where it is not.

    >>> in_kind(Quantity((68.0,), "fahrenheit", False), "celsius").values
    (20.0,)
    """
    if quantity.kind == kind:
        return quantity
    if (quantity.kind, kind) == ("fahrenheit", "celsius"):
        return quantity._replace(kind=kind, values=tuple((value - 32) / 1.8 for value in quantity.values))
    if (quantity.kind, kind) == ("celsius", "fahrenheit"):
        return quantity._replace(kind=kind, values=tuple(value * 1.8 + 32 for value in quantity.values))
    return None


def counts(word: str) -> bool:
    """Tell whether a case-folded word is a number, or a unit of numbers and dates."""
    return word.isdecimal() or word in NUMBER_WORDS or word in _UNIT or word in MONTHS


def located_dates(text: str) -> tuple[tuple[int, int, Date], ...]:
    """Return the dates of a text with their places in its folded form."""
    return _dates_and_rest(folded(text))[0]


def located_quantities(text: str) -> Iterator[tuple[int, int, Quantity]]:
    """Return the numbers of a text that are no dates, with their places in its folded form."""
    rest = _dates_and_rest(folded(text))[1]
    for number in numbers(rest):
        kind, size, end = _kind(rest, number)
        if number.values == (1.0,) and not rest[number.start].isdecimal() and not _is_unit(kind):
            continue  # "one" is mostly a pronoun
        loose = bool(_LOOSE.search(rest[max(0, number.start - 14) : number.start].rstrip("$€£¥₫")))
        yield number.start, end, Quantity(tuple(value * size for value in number.values), kind, loose)


def _is_unit(kind: str) -> bool:
    # "One day" is a day long ago, and a year may be any.
    return bool(kind) and kind[0] != "#" and kind not in ("time", "months")


@lru_cache(maxsize=1024)
def _dates_and_rest(text: str) -> tuple[tuple[tuple[int, int, Date], ...], str]:
    """Return the dates, and the text with blanks in their places."""
    found = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            name = parts.get("m")
            year, month, day = (_whole(parts.get(part)) for part in "yMd")
            month = MONTHS[name.lower()] if name else month
            numeric = "mark" in parts and match.start("d") < match.start("y")
            if numeric and month is not None and month > 12:
                month, day = day, month
            swapped = numeric and max(month or 0, day or 0) <= 12 and month != day and not is_vietnamese(text)
            # "may" and "march" are months only with a capital.
            if (month or 1) <= 12 and (day or 1) <= 31 and not (name and name[0].islower()):
                found.append((*match.span(), Date(year, month, day, swapped)))
                text = text[: match.start()] + " " * len(match.group()) + text[match.end() :]
    # "The 1980s" are no seconds, and no year of their own.
    return tuple(found), _DECADE.sub(lambda decade: " " * len(decade[0]), text)


def _whole(number: str | None) -> int | None:
    if not number:
        return None
    return (
        int(number)
        if number.isdecimal()
        else _NUMBER_OF_MONTH.get(number.lower()) or int(spelled(number.lower()))
    )


def _kind(text: str, number: WrittenNumber) -> tuple[str, float, int]:
    """Return what a number counts, the size of its unit, and where number and unit end."""
    end = number.end
    currency = _CURRENCY.search(text[max(0, number.start - 4) : number.start])
    if currency:
        return _UNIT[currency[1]][0], 1.0, end
    if number.percent:
        return "percent", 1.0, end
    if number.ordinal:
        return "", 1.0, end
    unit = _UNIT_AFTER.match(text, end)
    if unit:
        return *_UNIT[unit["unit"].casefold()], unit.end()
    noun = _NOUN_AFTER.match(text, end)
    if noun and noun[1].lower() not in STOP_WORDS:
        return "#" + noun[1].lower().removesuffix("s"), 1.0, end
    han = _HAN_NOUN_AFTER.match(text, end)
    return (f"#{han[1] or han[2]}" if han else ""), 1.0, end
