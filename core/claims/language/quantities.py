"""Numbers with their units, and dates, as a text states them: English, Vietnamese and Chinese."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import regex

from core.text.stop_words import ENGLISH

_CACHE = 16_384


class Quantity(NamedTuple):
    """A number of a text.

    ``values`` are its readings in the base unit: "1.794" is 1794 or 1.794. ``kind`` is what it counts: a
    dimension ("length"), "#" and a noun ("#passenger"), or "" where nothing follows. ``loose``: the text
    gives a bound or a rough number.
    """

    values: tuple[float, ...]
    kind: str
    loose: bool


class Date(NamedTuple):
    """A date; None for what is not said."""

    year: int | None
    month: int | None = None
    day: int | None = None


# Dimension, then names with their size in the base unit. Names are compared as written, case-folded.
_UNITS = {
    "length": "km|kms|kilometer|kilometers|kilometre|kilometres|ki-lô-mét|cây số|公里|千米:1000 "
    "m|meter|meters|metre|metres|mét|米:1 cm|centimeter|centimeters|centimetre|centimetres|厘米:0.01 "
    "mm|millimeter|millimeters|millimetre|millimetres|毫米:0.001 mi|mile|miles|dặm|英里:1609.344 "
    "ft|foot|feet|英尺:0.3048 yd|yard|yards:0.9144 inch|inches|英寸:0.0254",
    "mass": "kg|kgs|kilogram|kilograms|kilogramme|kilogrammes|ki-lô-gam|cân|公斤|千克:1 "
    "g|gram|grams|gam|克:0.001 mg|milligram|milligrams|毫克:0.000001 "
    "t|ton|tons|tonne|tonnes|tấn|吨|噸:1000 lb|lbs|pound|pounds:0.45359237",
    "area": "km2|km²|square kilometers|square kilometres|平方公里:1000000 "
    "m2|m²|square meters|square metres|平方米:1 ha|hectare|hectares|公顷:10000 "
    "acre|acres:4046.8564 square miles:2589988.11",
    "volume": "l|liter|liters|litre|litres|lít|升:1 "
    "ml|milliliter|milliliters|millilitre|millilitres|毫升:0.001",
    "time": "s|sec|second|seconds|giây|秒:1 min|mins|minute|minutes|phút|分钟|分鐘:60 "
    "h|hr|hrs|hour|hours|giờ|小时|小時:3600 day|days|ngày|天:86400 week|weeks|tuần|周:604800",
    "months": "month|months|tháng|个月|個月:1 year|years|năm:12 decade|decades|thập kỷ:120 "
    "century|centuries|thế kỷ|世纪|世紀:1200",
    "speed": "km/h|kph|kmh:1 mph:1.609344 m/s:3.6",
    "power": "kw|kilowatt|kilowatts:1000 mw|megawatt|megawatts:1000000 w|watt|watts:1 "
    "gw|gigawatt|gigawatts:1000000000",
    "celsius": "°c|degrees celsius|độ c|摄氏度:1",
    "fahrenheit": "°f|degrees fahrenheit|độ f:1",
    "percent": "%|％|percent|per cent|phần trăm:1",
    "dollar": "$|usd|dollar|dollars|đô la|美元:1",
    "euro": "€|eur|euro|euros|欧元:1",
    "sterling": "£|gbp:1",
    "dong": "₫|vnd|đồng|越南盾:1",
    "yuan": "¥|cny|rmb|yuan|元:1",
}
_UNIT = {
    name: (kind, float(size))
    for kind, entries in _UNITS.items()
    for names, size in (entry.rsplit(":", 1) for entry in regex.split(r"(?<=:[\d.]+)\s+", entries))
    for name in names.split("|")
}
_TIMES = {
    "hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "trăm": 100, "nghìn": 1e3, "ngàn": 1e3, "triệu": 1e6, "tỷ": 1e9, "tỉ": 1e9,
    "千": 1e3, "万": 1e4, "萬": 1e4, "百万": 1e6, "百萬": 1e6, "亿": 1e8, "億": 1e8,
}  # fmt: skip
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_WORD = {word: float(i) for i, word in enumerate(_ONES)} | {
    word: 10.0 * (i + 2)
    for i, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())
}
_MONTHS = {
    name: i + 1
    for i, names in enumerate(
        "january|jan february|feb march|mar april|apr may june|jun july|jul august|aug september|sept|sep "
        "october|oct november|nov december|dec".split()
    )
    for name in names.split("|")
}


def _any(names: Iterable[str]) -> str:
    return "|".join(regex.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))


_MONTH = rf"(?P<m>{_any(_MONTHS)})\.?"
_DATES = [
    regex.compile(pattern, regex.IGNORECASE)
    for pattern in (
        r"(?P<y>[12]\d{3})-(?P<M>\d{1,2})-(?P<d>\d{1,2})(?!\d)",
        r"(?P<y>[12]\d{3})\s*年(?:\s*(?P<M>\d{1,2})\s*月(?:\s*(?P<d>\d{1,2})\s*[日号號])?)?",
        r"(?:ngày\s+(?P<d>\d{1,2})\s+)?tháng\s+(?P<M>\d{1,2})(?:\s+năm\s+(?P<y>[12]\d{3}))?",
        r"năm\s+(?P<y>[12]\d{3})\b",
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+(?P<y>[12]\d{{3}}))?\b",
        rf"\b{_MONTH}\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s+(?P<y>[12]\d{{3}})\b)?",
        rf"\b{_MONTH},?\s+(?P<y>[12]\d{{3}})\b",
        # A bare number is a year where nothing is counted by it.
        r"(?<=\b(?:in|since|by|of|from|until|till|before|after|around|circa|during|to|and|between|year|early"
        r"|late|mid)\s+|[(–-]\s*)(?P<y>1\d{3}|20\d{2})\b(?!\s*(?:[-–]?\s*\p{L}|[%°]))",
        r"(?<![\d.,$€£])(?P<y>1\d{3}|20\d{2})(?=\s*(?:[;:!?)]|[.,](?!\d)|[–-]\s*\d|$))",
        r"(?<=\b(?:in|since|by|from|between|until|before|after|circa|during)\s+)"
        r"(?P<y>1[1-9]\d{2}|20\d{2})\b(?!\s*[%°])",
    )
]
_NUMBER = regex.compile(
    rf"(?P<currency>[$€£¥₫])?\s?(?:(?<![\p{{Latin}}\d.,])(?P<digits>\d(?:\d|[.,](?=\d))*)"
    rf"|\b(?P<words>(?:{_any(_WORD)})(?:[\s-]+(?:{_any(_ONES[1:10])})\b)?)\b)"
    rf"(?P<times>(?:[\s-]?(?:{_any(_TIMES)})(?!\p{{Latin}}))*)",
    regex.IGNORECASE,
)
_UNIT_AFTER = regex.compile(rf"[\s-]?(?P<unit>{_any(_UNIT)})(?![\p{{Latin}}\d²])", regex.IGNORECASE)
_NOUN_AFTER = regex.compile(r"[\s-](\p{Latin}{3,})")
_LOOSE = regex.compile(
    r"(?:about|around|roughly|nearly|almost|approximately|over|under|above|below|more than|less than"
    r"|fewer than|at least|at most|up to|some|khoảng|gần|hơn|trên|dưới|ít nhất|tối đa|约|約|大约|大約|近|超过"
    r"|超過|至少|不到)\s*$",
    regex.IGNORECASE,
)


@lru_cache(maxsize=_CACHE)
def dates(text: str) -> tuple[Date, ...]:
    """Return the dates and years of a text, in no particular order."""
    return _dates_and_rest(text)[0]


@lru_cache(maxsize=_CACHE)
def quantities(text: str) -> tuple[Quantity, ...]:
    """Return the numbers of a text that are no dates, in order.

    >>> quantities("It is 12 km long and carries 1,500 passengers.")[0]
    Quantity(values=(12000.0,), kind='length', loose=False)
    """
    rest = _dates_and_rest(text)[1]
    found = []
    for match in _NUMBER.finditer(rest):
        times = _times(match["times"])
        values = _readings(match["digits"]) if match["digits"] else (_spelled(match["words"]),)
        if match["words"] and values == (1.0,) and times == 1.0:
            continue  # "one" is mostly a pronoun
        kind, size = _kind(rest, match.end(), match["currency"])
        loose = bool(_LOOSE.search(rest[max(0, match.start() - 14) : match.start()]))
        found.append(Quantity(tuple(v * times * size for v in values), kind, loose))
    return tuple(found)


@lru_cache(maxsize=_CACHE)
def numerals(text: str) -> tuple[frozenset[float], ...]:
    """Return what each number of a text may mean, whatever it counts: years, days, "twenty-four", "1,794".

    >>> [sorted(n) for n in numerals("24 of 1.5 million")]
    [[24.0], [1.5, 1500000.0]]
    """
    found = []
    for match in _NUMBER.finditer(text):
        values = _readings(match["digits"]) if match["digits"] else (_spelled(match["words"]),)
        found.append(frozenset({*values, *(value * _times(match["times"]) for value in values)}))
    return tuple(found)


def counts(word: str) -> bool:
    """Tell whether a case-folded word is a number, or a unit of numbers and dates."""
    return word.isdecimal() or word in _WORD or word in _TIMES or word in _UNIT or word in _MONTHS


def _times(names: str) -> float:
    times = 1.0
    for name in regex.findall(_any(_TIMES), names.lower()):
        times *= _TIMES[name]
    return times


def _dates_and_rest(text: str) -> tuple[tuple[Date, ...], str]:
    """Return the dates, and the text with blanks in their places."""
    found = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            name = parts.get("m")
            month = _MONTHS[name.lower()] if name else _whole(parts.get("M"))
            date = Date(_whole(parts.get("y")), month, _whole(parts.get("d")))
            # "may" and "march" are months only with a capital.
            if (date.month or 1) <= 12 and (date.day or 1) <= 31 and not (name and name[0].islower()):
                found.append(date)
                text = text[: match.start()] + " " * len(match.group()) + text[match.end() :]
    return tuple(found), text


def _whole(digits: str | None) -> int | None:
    return int(digits) if digits else None


def _readings(digits: str) -> tuple[float, ...]:
    separators = regex.findall("[.,]", digits)
    plain = float(regex.sub("[.,]", "", digits)[:300])
    if not separators:
        return (plain,)
    head, _, tail = digits.rpartition(separators[-1])
    decimal = float(f"{regex.sub('[.,]', '', head)}.{tail}"[:300])
    groups = regex.split("[.,]", digits)
    thousands = len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
    if len(set(separators)) > 1 or not thousands:
        return (decimal,)
    return (plain, decimal) if len(separators) == 1 else (plain,)


def _spelled(number: str) -> float:
    return sum(_WORD[word] for word in regex.split(r"[\s-]+", number.lower()))


def _kind(text: str, end: int, currency: str | None) -> tuple[str, float]:
    if currency:
        return _UNIT[currency][0], 1.0
    unit = _UNIT_AFTER.match(text, end)
    if unit:
        return _UNIT[unit["unit"].lower()]
    noun = _NOUN_AFTER.match(text, end)
    if noun and noun[1].lower() not in ENGLISH:
        return "#" + noun[1].lower().removesuffix("s"), 1.0
    return "", 1.0
