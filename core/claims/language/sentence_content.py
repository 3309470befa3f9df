"""What a sentence says, word by word: its content, its numbers and names, and what it denies.

English, Vietnamese and Chinese, without a model. Ideographs count in pairs: single ones recur by chance.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

from core.claims.language.sentences import sentence_spans
from core.text.stop_words import ENGLISH

_TOKEN = regex.compile(
    r"""(?P<numeral>[〇零一二两兩三四五六七八九十百千万萬亿億]+(?=[年月日天个個名位岁歲次米公吨噸元度层層座艘世]))
    | (?P<digits>\d+(?:[.,]\d+)*)
    | (?P<han>\p{Han})
    | (?P<word>(?:(?![\p{Han}\d])[\p{L}\p{M}\p{N}])+)
    | (?P<clause>[,;:，；：、()（）]|\s[–—-]\s)""",
    regex.VERBOSE,
)
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'"})
_CONTRACTED = regex.compile(r"n't\b", regex.IGNORECASE)
_ENDING = regex.compile(r"(?<=..[a-z])(?:ies|ing|ed|es|s|e|(?<=[^aeiou])y)$")
_VIETNAMESE = """là của và các những được trong ở cho với này đó thì mà bị đã đang sẽ cũng như từ tại theo về
    vào ra khi nếu rằng do bởi đến"""
_CHINESE = "的了是在和与與及也都就而着著之于於其"
_STOP = ENGLISH | set(_VIETNAMESE.split()) | set(_CHINESE)
_NEGATIONS = set("not no never none neither nor without nobody nothing không chưa chẳng chả đừng".split())
_NEGATIONS |= set("不没沒未无無非")
# What makes another word of a negation: "not only", "không khí" (air), "非常" (very), "未来" (future).
_NO_NEGATION_BEFORE = {
    "not": {"only", "just", "merely"},
    "không": {"khí", "gian", "quân", "chỉ"},
    "不": set("仅僅但过過同断斷久少管论論"),
    "未": set("来來"),
    "无": set("线锡数"),
    "無": set("線錫數"),
    "非": set("常洲"),
}
_NO_NEGATION_AFTER = {
    "không": {"hàng"},
    "非": set("南北东西東"),
    "没": set("淹沉埋出"),
    "沒": set("淹沉埋出"),
}
_DENIED_HAVING = {"没有", "沒有"}  # one negation of two characters
_SCOPE_AFTER, _SCOPE_BEFORE = 3, 2
_TIMES = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "nghìn": 10**3, "ngàn": 10**3, "triệu": 10**6, "tỷ": 10**9, "tỉ": 10**9,
    "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8,
}  # fmt: skip
_SPELLED = {
    w: i for i, w in enumerate("two three four five six seven eight nine ten eleven twelve".split(), 2)
}
_LONGEST_NUMBER = 40  # characters
_CHINESE_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_CHINESE_TENS = {"十": 10, "百": 100, "千": 1000}


class _Token(NamedTuple):
    key: str  # how it is compared; "#18" for a number
    kind: str  # number, han, word
    clause: int
    capital: bool
    negates: bool
    content: bool


class Content(NamedTuple):
    """What a sentence says: words that carry content, and which of them are numbers, names, denied."""

    words: frozenset[str]  # words, numbers, pairs of ideographs
    numbers: frozenset[str]
    names: frozenset[str]  # the last word of each
    atoms: frozenset[str]  # words and single ideographs
    denied: frozenset[str]  # atoms in reach of a negation


@lru_cache(maxsize=4096)
def parse_sentences(text: str) -> tuple[Content, ...]:
    """Parse every sentence of a text; a text without any counts as one."""
    return tuple(parse(text[start:end]) for start, end in sentence_spans(text)) or (parse(text),)


@lru_cache(maxsize=4096)
def parse_text(text: str) -> Content:
    """Parse a text as if it were one sentence."""
    parts = parse_sentences(text)
    return Content(*(frozenset().union(*sets) for sets in zip(*parts, strict=True)))


@lru_cache(maxsize=16384)
def parse(sentence: str) -> Content:
    """Parse one sentence."""
    tokens = _tokens(sentence)
    content = [t for t in tokens if t.content] or tokens
    pairs = [
        a.key + b.key for a, b in pairwise(content) if a.kind == b.kind == "han" and a.clause == b.clause
    ]
    paired = set("".join(pairs))
    found = [t.key for t in content if t.key not in paired] + pairs
    return Content(
        frozenset(found),
        frozenset(t.key for t in content if t.kind == "number"),
        _names(tokens),
        frozenset(t.key for t in content),
        _denied(tokens),
    )


def _tokens(sentence: str) -> list[_Token]:
    text = unicodedata.normalize("NFKC", sentence.translate(_APOSTROPHES))
    text = _CONTRACTED.sub(" not", regex.sub(r"\bcannot\b", "can not", text))
    matches = list(_TOKEN.finditer(text))
    folded = [unicodedata.normalize("NFC", m.group().casefold()) for m in matches]
    tokens: list[_Token] = []
    clause = 0
    for place, (match, word) in enumerate(zip(matches, folded, strict=True)):
        before = folded[place - 1] if place else ""
        after = folded[place + 1] if place + 1 < len(folded) else ""
        kind = str(match.lastgroup)
        if kind == "clause":
            clause += 1
        elif word in _TIMES and tokens and _can_grow(tokens[-1], before):
            tokens[-1] = tokens[-1]._replace(key=_number(Decimal(tokens[-1].key[1:]) * _TIMES[word]))
        elif kind in ("numeral", "digits") or word in _SPELLED:
            tokens.append(_Token(_number(_value(word, kind)), "number", clause, False, False, True))
        else:
            negates = _negates(word, before, after)
            key = word if kind == "han" or not word.isascii() else _ENDING.sub("", word)
            content = not negates and word not in _STOP and before + word not in _DENIED_HAVING
            tokens.append(_Token(key, kind, clause, match.group()[0].isupper(), negates, content))
    return tokens


def _can_grow(token: _Token, before: str) -> bool:
    """Tell whether "million" belongs to the number before it, within reason."""
    return token.kind == "number" and before != "," and len(token.key) < _LONGEST_NUMBER


def _negates(word: str, before: str, after: str) -> bool:
    if word not in _NEGATIONS or (word == "no" and after[:1].isdigit()):
        return False
    return after not in _NO_NEGATION_BEFORE.get(word, ()) and before not in _NO_NEGATION_AFTER.get(word, ())


def _value(word: str, kind: str) -> Decimal:
    if word in _SPELLED:
        return Decimal(_SPELLED[word])
    if kind == "numeral":
        return Decimal(_chinese_number(word))
    if regex.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", word):
        plain = word.replace(",", "")
    elif regex.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", word):
        plain = word.replace(".", "").replace(",", ".")
    else:  # a list of numbers or an unusual notation: compared by its digits
        plain = (
            regex.sub("[.,]", "", word) if word.count(",") + word.count(".") > 1 else word.replace(",", ".")
        )
    return Decimal(plain[:_LONGEST_NUMBER])


def _number(value: Decimal) -> str:
    return f"#{value.normalize():f}"


def _chinese_number(numeral: str) -> int:
    if not regex.search("[十百千万萬亿億]", numeral):  # digit by digit, as years are written
        return int("".join(str(_CHINESE_DIGITS[c]) for c in numeral[:_LONGEST_NUMBER]))
    total = section = digit = 0
    for c in numeral[:_LONGEST_NUMBER]:
        if c in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[c]
        elif c in _CHINESE_TENS:
            section, digit = section + (digit or 1) * _CHINESE_TENS[c], 0
        else:
            total, section, digit = (total + section + digit or 1) * _TIMES[c], 0, 0
    return total + section + digit


def _names(tokens: Sequence[_Token]) -> frozenset[str]:
    """Last word of every run of capitalised words; a capital at the start of a sentence proves nothing."""
    names, run = set(), 0
    for place, token in enumerate(tokens):
        run = run + 1 if token.capital and token.content else 0
        ends = place + 1 == len(tokens) or not (tokens[place + 1].capital and tokens[place + 1].content)
        initial = place == 0 and len(tokens) > 2
        if run and ends and not (run == 1 and initial):
            names.add(token.key)
    return frozenset(names)


def _denied(tokens: Sequence[_Token]) -> frozenset[str]:
    found: set[str] = set()
    for place, token in enumerate(tokens):
        if token.negates:
            behind = [t.key for t in tokens[place + 1 :] if t.content and t.clause == token.clause]
            ahead = [t.key for t in tokens[:place] if t.content and t.clause == token.clause]
            found.update(behind[:_SCOPE_AFTER] or ahead[-_SCOPE_BEFORE:])
    return frozenset(found)
