"""Numbers as people write them, in digits and in English, Vietnamese and Chinese words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import regex

_LONGEST = 300  # digits that a float can hold
_LARGEST = 1e300


class WrittenNumber(NamedTuple):
    """A number at ``text[start:end]`` of a folded text, with its readings, the likeliest first.

    ``unscaled``: those without "million" and the like. ``ordinal``: it counts nothing. ``percent``: 百分之.
    """

    start: int
    end: int
    values: tuple[float, ...]
    unscaled: tuple[float, ...]
    ordinal: bool = False
    percent: bool = False


def any_of(names: Iterable[str]) -> str:
    """Return a pattern for any of some names, the longest first."""
    return "|".join(regex.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))


# What the words of a number do: "add" themselves, "times" what stands before them within a group of digits
# (hundred), "scale" the whole group (thousand).
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "twentieth": 20, "thirtieth": 30,
} | {word + "th": i for i, word in enumerate(_ONES) if i > 12}  # fmt: skip
_VI_ONES = "không một hai ba bốn năm sáu bảy tám chín".split()
_ADD: dict[str, float] = (
    {word: i for i, word in enumerate(_ONES)}
    | {word: 10 * i for i, word in enumerate(_TENS, 2)}
    | _ORDINALS
    | {word: i for i, word in enumerate(_VI_ONES)}
    | {"mốt": 1, "tư": 4, "lăm": 5, "nhăm": 5, "bẩy": 7, "mười": 10, "half": 0.5}
    | {c: i for i, c in enumerate("零一二三四五六七八九")}
    | {c: i for i, c in enumerate("〇壹贰叁肆伍陆柒捌玖")}
    | {"两": 2, "廿": 20, "卅": 30}
)
_TIMES = {"hundred": 100, "dozen": 12, "mươi": 10, "chục": 10, "trăm": 100, "tá": 12} | {
    c: 10 ** (1 + i % 3) for i, c in enumerate("十百千拾佰仟")
}
_SCALE = {
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "nghìn": 1e3, "ngàn": 1e3, "triệu": 1e6, "tỷ": 1e9, "tỉ": 1e9,
    "万": 1e4, "亿": 1e8, "兆": 1e12,
}  # fmt: skip
_BRIEF = {"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9}  # behind money: $3bn
NUMBER_WORDS = frozenset({*_ADD, *_TIMES, *_SCALE}) - {"không", "half"}

_EN_BIG = r"(?:hundred|dozen|thousand|million|billion|trillion)"
_EN_SMALL = rf"(?:(?:{any_of(_TENS)})(?:[\s-](?:{any_of([*_ONES[1:10], *list(_ORDINALS)[:9]])})\b)?|(?:{any_of(_ONES)}))"
_EN_ORDINAL = rf"(?<!\b(?:an?|one)\s)(?:{any_of(list(_ORDINALS)[3:])})"
_EN_GROUP = rf"(?:half\s+an?|an?|{_EN_SMALL}(?:\s+and\s+a\s+half)?)(?:[\s-]{_EN_BIG})+"
EN_YEAR = rf"(?:twenty|{any_of(_ONES[16:])})[\s-](?:(?:{any_of(_TENS)})(?:[\s-](?:{any_of(_ONES[1:10])}))?|{any_of(_ONES[10:])})"
_ENGLISH = (
    rf"\b(?:{EN_YEAR}|{_EN_GROUP}(?:(?:\s+and)?\s+{_EN_GROUP})*(?:(?:\s+and)?\s+{_EN_SMALL})?|{_EN_ORDINAL}|half\s+an?"
    rf"|{_EN_SMALL}(?:\s+and\s+a\s+half|(?:\s+point(?:\s+(?:{any_of(_ONES[:10])}))+))?)\b"
)
_VI_ONE = f"(?:{any_of([*_VI_ONES[1:], 'bẩy'])})"
_VI_TENS = rf"(?:mười|{_VI_ONE}\s+mươi)(?:\s+(?:{any_of(['mốt', 'tư', 'lăm', 'nhăm', 'bẩy', *(w for w in _VI_ONES[1:] if w != 'năm')])})\b)?"
_VI_HUNDREDS = rf"(?:{_VI_ONE}|không)\s+trăm(?:\s+(?:(?:linh|lẻ)\s+(?:{_VI_ONE}|tư)|{_VI_TENS}))?"
_VI_BIG = r"(?:nghìn|ngàn|triệu|tỷ|tỉ)"
_VI_GROUP = rf"(?:{_VI_HUNDREDS}|{_VI_TENS}|{_VI_ONE})"
_VI_REST = rf"(?:\s+(?:{_VI_HUNDREDS}|{_VI_TENS}|(?:linh|lẻ)\s+{_VI_ONE}))"
# What is counted: most of the single words are also something else (năm: year, ba: father).
_VI_COUNTED = (
    r"(?=\s+(?:ngày|giờ|phút|giây|tuần|tháng|năm|thập\s+kỷ|thế\s+kỷ|km|kg|mét|ki-lô|cây|tấn|cân|lít|đồng|đô\s+la|phần\s+trăm|người"
    r"|con|cái|chiếc|quyển|cuốn|lần|tầng|nhịp|tỉnh|thành\s+phố|nước|quốc\s+gia|loại|câu|bài|trường|ngôi|ngọn|bức|vị|trận|cuộc"
    r"|chương|trang|cầu|làng|xã|huyện|hòn|đảo)\b)"
)
_VIETNAMESE = (
    rf"(?<!\bthứ\s)\b(?:{_VI_GROUP}(?:\s+{_VI_BIG})+(?:{_VI_REST}(?:\s+{_VI_BIG})+)*{_VI_REST}?(?:\s+rưỡi)?"
    rf"|{_VI_HUNDREDS}|{_VI_TENS}|{_VI_ONE}\s+(?:chục|tá)|{_VI_GROUP}\s+phẩy(?:\s+{_VI_ONE})+|{_VI_ONE}{_VI_COUNTED})\b"
)
_ZH_DIGIT = "零〇一二三四五六七八九两壹贰叁肆伍陆柒捌玖"
_ZH_ANY = f"[{_ZH_DIGIT}十百千拾佰仟廿卅万亿兆]"
_ZH_COUNTED = (
    "(?=[个名位人条座只头匹张本件台辆架艘枚颗棵朵把种家所间层楼岁年月日天周号点时秒次倍公千厘毫英平尺寸斤克吨升元块美欧角度期届卷册章"
    "段行世米小分]|万人)"
)
_CHINESE = (
    rf"{_ZH_ANY}+分之{_ZH_ANY}+(?:点[{_ZH_DIGIT}]+)?"
    r"|(?!十分(?!钟)|万一|千万(?=[不别要记小注])|一一)"
    rf"(?:{_ZH_ANY}{{2,}}(?:点[{_ZH_DIGIT}]+)?|[{_ZH_DIGIT}十]点[{_ZH_DIGIT}]+|[{_ZH_DIGIT}十百千]{_ZH_COUNTED})"
)
_DIGITS = (
    r"(?P<percent>百分之)?(?P<sign>(?<![^\s(（])[-−]|\bminus\s|\bâm\s|零下)?(?<![\p{Latin}\d.,])(?P<digits>\d(?:\d|[.,](?=\d))*)(?:(?P<ordinal>(?:st|nd|rd|th)\b)"
    rf"|(?:\s+and\s+a\s+half)?(?P<times>(?:[\s-]?(?:{any_of(w for w in (*_TIMES, *_SCALE) if w != 'tá')})(?!\p{{Latin}}))*)"
    rf"(?:(?<=[$€£¥₫]\s?[\d.,]+)\s?(?P<brief>{any_of(_BRIEF)})(?!\p{{Latin}}))?)"
)
# How these begin: a look at one letter spares most places of a text the long patterns.
_AHEAD, _EN_AHEAD = (
    r"(?=[\d−\-百零mâ])",
    rf"\b(?=[{''.join(sorted({w[0] for w in (*_ONES, *_TENS, *_ORDINALS, 'a', 'half')}))}])",
)
# One of these is part of each English number in words: a text without them need not be searched for any.
_EN_SIMPLE = frozenset(
    {*_ONES, *_TENS, *_ORDINALS, "half", "hundred", "dozen", "thousand", "million", "billion", "trillion"}
)
_LETTERS = re.compile("[a-z]+")
_DIGIT = re.compile(r"\d")
_ATOM = regex.compile(any_of([*_ADD, *_TIMES, *_SCALE, "linh", "lẻ", "rưỡi"]))
_HAN = regex.compile(r"\p{Han}")
_POINT = regex.compile(r"\s*(?:\bpoint\b|\bphẩy\b|点)\s*")
_VIETNAMESE_ALONE = regex.compile(
    r"\bngày\b|[ăđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ]", regex.IGNORECASE
)


def is_vietnamese(text: str) -> bool:
    """Tell whether a text has a letter that only Vietnamese has, or the word for "day"."""
    return not text.isascii() and _VIETNAMESE_ALONE.search(text) is not None


@lru_cache(maxsize=1024)
def numbers(text: str) -> tuple[WrittenNumber, ...]:
    """Find the numbers of a `folded` text in order, also years, days and a lone "one", mostly a pronoun."""
    return tuple(_numbers(text))


def _numbers(text: str) -> Iterator[WrittenNumber]:
    comma = is_vietnamese(text)
    english = not _EN_SIMPLE.isdisjoint(_LETTERS.findall(text.lower()))
    chinese = not text.isascii() and _HAN.search(text) is not None
    if not (english or comma or chinese or _DIGIT.search(text)):
        return
    for match in _pattern(english, comma, chinese).finditer(text):
        start, end = match.span()
        if match["digits"]:
            times = spelled(match["times"]) if match["times"] and match["times"].strip(" -") else 1.0
            times *= _BRIEF[match["brief"].lower()] if match["brief"] else 1.0
            half = 0.5 if " half" in match[0].lower() else 0.0
            sign = -1.0 if match["sign"] else 1.0
            unscaled = tuple(sign * (value + half) for value in _readings(match["digits"], comma))
            yield WrittenNumber(
                start,
                end,
                tuple(max(-_LARGEST, min(v * times, _LARGEST)) for v in unscaled),
                unscaled,
                bool(match["ordinal"]),
                match["percent"] is not None,
            )
        else:
            words = match[0].lower()
            above, _, below = words.rpartition("分之")
            value = spelled(below)
            if above and above != "百":
                value /= spelled(above) or 1.0
            ordinal = match["english"] is not None and words.endswith(("th", "st", "nd", "rd"))
            yield WrittenNumber(
                start, end, (value,), (value,), ordinal and not words.endswith("thousand"), above == "百"
            )


@lru_cache
def _pattern(english: bool, vietnamese: bool, chinese: bool) -> Any:
    """Return the pattern of numbers in digits and in words of these languages: compiling it takes a while."""
    # Without English words the group is there and matches nothing.
    words = f"{_EN_AHEAD}{_ENGLISH}" if english else "(?!)"
    others = [_VIETNAMESE] * vietnamese + [_CHINESE] * chinese
    return regex.compile("|".join([_AHEAD + _DIGITS, f"(?P<english>{words})", *others]), regex.IGNORECASE)


def spelled(words: str) -> float:
    """Return the value of a number in words, as `numbers` finds them; 0 where there is none."""
    words, *decimals = _POINT.split(words, maxsplit=1)
    if decimals:
        tail = "".join(str(int(_ADD[atom])) for atom in _ATOM.findall(decimals[0]))
        return float(f"{int(spelled(words))}.{tail}"[:_LONGEST])
    atoms = _ATOM.findall(words)
    if len(atoms) > 1 and all(atom in _ZH_DIGIT for atom in atoms):  # digit by digit, as years are written
        return float("".join(str(int(_ADD[atom])) for atom in atoms)[:_LONGEST])
    total = section = current = 0.0
    last, filled = 1.0, False
    for before, atom in pairwise(["", *atoms]):
        if atom in _ADD:
            filled |= atom in "零〇"
            # "nineteen fourteen"
            current = current * (100 if current >= 10 <= _ADD[atom] else 1) + _ADD[atom]
        elif atom in _TIMES:
            section, current, last = (
                section + (current or before != "không") * _TIMES[atom],
                0.0,
                _TIMES[atom],
            )
        elif atom in _SCALE:
            last = _SCALE[atom]
            group = section + current
            multiplies = 0 < total < last or (total == last and not group)  # a million million
            total = min((total + group) * last if multiplies else total + (group or 1) * last, _LARGEST)
            section = current = 0.0
        else:  # linh, lẻ: a zero; rưỡi: half of the last
            filled = True
            current += last / 2 if atom == "rưỡi" else 0
    short = not filled and last >= 100 and current < 10 and atoms[-1] in _ZH_DIGIT  # 一百二 is 120
    return total + section + current * (last / 10 if short else 1)


def _readings(digits: str, comma: bool) -> tuple[float, ...]:
    """Return what digits with points and commas may mean; ``comma``: decimals more likely follow a comma."""
    separators = [letter for letter in digits if letter in ".,"]
    if not separators:
        return (float(digits[:_LONGEST]),)
    plain = float(regex.sub("[.,]", "", digits)[:_LONGEST])
    head, _, tail = digits.rpartition(separators[-1])
    decimal = float(f"{regex.sub('[.,]', '', head)}.{tail}"[:_LONGEST])
    groups = regex.split("[.,]", digits)
    thousands = len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
    if len(separators) > 1 and len(set(separators)) == 1:
        return (plain,)
    if len(separators) > 1 or not thousands:
        return (decimal,)
    # Of a comma in English or Chinese and a point in Vietnamese nobody expects decimals.
    return (decimal, plain) if (separators[0] == ",") == comma else (plain,)
