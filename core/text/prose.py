"""Where a text cites its sources, and what it says without code, citations and numbers of list items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import regex

from core.text.numbers import any_of
from core.text.quantities import MONTHS
from core.text.sentences import BULLET, CITATION, Span

# How a passage is named where it is cited.
NAMED = (
    r"[\[(（【](?:passages?|documents?|docs?|sources?|refs?|đoạn(?:\s+văn)?|tài\s+liệu|nguồn"
    r"|段落|资料|資料|文档|文檔|文件|来源|來源)"
    r"\s*[:：]?\s*\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*[\])）】]"
)
_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"
_NAME = r"\p{Lu}[\p{L}.'’-]{0,40}"
_AND = r"(?:,\s*|\s+(?:and|và)\s+|\s*&\s*|\s+)"
_AUTHOR = (
    rf"[(（](?!(?i:{any_of(MONTHS)})\b)(?:{_NAME}(?:{_AND}{_NAME}){{0,5}}(?:\s+et\s+al\.?)?[,，]?\s*"
    rf"|\p{{Han}}{{1,4}}等?[,，]\s*){_YEAR}年?(?:[,:]\s*(?:pp?\.\s*)?\d[\d–-]*)?[)）]"
)
_ADDRESS = r"https?://[^\s<>\"”]*[^\s<>\"”.,;:!?)\]）】。，]"
# A raised number behind a stop, an ideograph or a whole word; behind "km" it is part of a unit.
_RAISED = r"(?<=[.,;:!?。，！？\"”')\]]|\p{Han}|\p{L}{4})[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}"
_STYLES = regex.compile(
    rf"(?P<address>{_ADDRESS})|(?P<numbered>{CITATION}|(?i:{NAMED})|{_RAISED})|(?P<author>{_AUTHOR})"
)
_NUMBER = regex.compile(r"\d+")
_RANGE = regex.compile(r"(\d+)\s?[–-]\s?(\d+)")
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_BEHIND = regex.compile(r"[†:：]\D.*")  # 【2†lines 5-9】


class Citation(NamedTuple):
    """A citation at ``text[start:end]``; ``numbers`` are the passages meant, () for names and addresses."""

    span: Span
    numbers: tuple[int, ...]


def citations(text: str) -> tuple[Citation, ...]:
    """Return the citations of a text in order: [1], [^1], 【1】, (passage 1), ¹, (Smith 2020), addresses.

    >>> [found.numbers for found in citations("Built in 1866 [1, 3]. Rebuilt (Lee 1902).")]
    [(1, 3), ()]
    """
    return tuple(
        Citation(match.span(), _numbers(match[0]) if match["numbered"] else ())
        for match in _STYLES.finditer(text)
    )


def _numbers(mark: str) -> tuple[int, ...]:
    mark = mark.translate(_LOWERED)
    if mark.startswith("【"):
        mark = _BEHIND.sub("", mark)
    found = {int(number) for number in _NUMBER.findall(mark)}
    for first, last in _RANGE.findall(mark):
        found.update(range(int(first), int(last) + 1))
    return tuple(sorted(found))


# A block of code that is never closed goes to the end, as Markdown reads it.
_CODE = regex.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*\n(?:.*?^[ \t]*(?P=fence)[ \t]*$|.*\Z)"
    r"|(?<!`)(?P<ticks>`{1,2}+)(?!`)[^`\n]++(?P=ticks)",
    regex.DOTALL | regex.MULTILINE,
)
_ITEM = regex.compile(rf"^(?:{BULLET})+", regex.MULTILINE)


def without_code(text: str) -> str:
    """Return a text with blanks in place of code in Markdown, so that places in it stay the same.

    >>> without_code("It has `a[1]` arches.")
    'It has        arches.'
    """
    return blanked(text, (match.span() for match in _CODE.finditer(text)))


def prose(text: str) -> str:
    """Return a text with blanks in place of code, citations, addresses and the numbers of list items.

    >>> prose("1. Built in 1866 [2].")
    '   Built in 1866    .'
    """
    text = without_code(text)
    text = blanked(text, (cited.span for cited in citations(text)))
    return blanked(text, (match.span() for match in _ITEM.finditer(text)))


def blanked(text: str, spans: Iterable[Span]) -> str:
    """Return a text with a blank for each character of some spans; its lines stay."""
    letters = list(text)
    for start, end in spans:
        letters[start:end] = ["\n" if letter == "\n" else " " for letter in letters[start:end]]
    return "".join(letters)
