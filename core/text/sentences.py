"""Where the sentences of a text begin and end: by rules, for English, Vietnamese and Chinese."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from itertools import accumulate

import regex

from core.text.quantities import MONTHS
from core.text.words import word_sets

Span = tuple[int, int]
_WRITTEN = regex.compile(r"(\d{1,9}):(\d{1,9})", regex.ASCII)

# A mark that a passage is cited, behind a statement.
CITATION = r"(?:\[\^?\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*\]|【\d{1,3}[^】]{0,20}】)"
# What comes before a list item, a heading, a quotation or a table row; "> 5" is a statement, though.
BULLET = (
    r"[ \t]*(?:(?:[-*+•◦‣▪●–—·]|#{1,6}|>(?![ \t]*\d[\d.,]*(?:[ \t%]|$))|\|)[ \t]+"
    r"|\(?\d{1,3}[.)][ \t]+|\(?[a-z]\)[ \t]+"
    r"|[(（]?[一二三四五六七八九十]{1,3}[、)）]|\d{1,3}、)"
)

_NEWLINE = regex.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
_ITEM = regex.compile(BULLET)
_HEADING = regex.compile(r"\s*#{1,6}\s")
_ENDED = regex.compile(rf"[.!?…。！？；｡:：][\"'”’»)\]）」』*_]*(?:\s?{CITATION})*\s*$")
# A line of this width may have been broken to fit a page; shorter and longer ones were meant to end.
_WRAPPED = range(60, 121)

_STOP = regex.compile(
    rf"(?P<stop>[.!?…。！？；｡]+)(?P<close>[\"'”’»)\]}}）】」』》*_]*)(?P<cited>(?:[ \t]?{CITATION})*)"
    r"[\"”’»)\]）」』]*"
)
_FULL_WIDTH = regex.compile(r"[。！？；｡]")
_LETTER = regex.compile(r"[\p{L}\p{N}]")
# Small letters after the stop, but not a name like iPhone.
_SMALL = regex.compile(r"[^\p{L}\p{N}]*\p{Ll}(?!\p{Lu})")
_HAN = regex.compile(r"\p{Han}")
_NUMBERED_ONLY = regex.compile(r"[\s\W]*(?:\d{1,3}|\p{L}|[ivxIVX]{1,4})")
_TOKEN = regex.compile(r"[\p{L}\p{M}\p{N}.]+$")
_NEXT = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}]*\.?")
_DOTTED = regex.compile(r"(?:\p{L}{1,2}\.)+\p{L}{1,2}")
# Who speaks, after words in quotation marks.
_SPOKEN = regex.compile(r"\s*[他她它我你们們]{0,3}(?:问|問|说|說|道|答|喊|叫)")

_OPEN = dict(zip("([{（【「『《“«", ")]}）】」』》”»", strict=True))
_CLOSE = {end: begin for begin, end in _OPEN.items()}
_BRACKETS = regex.compile(r"[\[\](){}（）【】「」『』《》“”«»]")
_QUOTES = frozenset('「『“«"')
_LONGEST_ASIDE = 240  # what is longer between brackets is a text of its own, or a bracket never closed

_ABBREVIATIONS = word_sets("abbreviations")


def sentence_spans(text: str) -> list[Span]:
    """Find the sentences of a text, as ranges in order without outer white space; always the same for a text.

    List items, headings and lines meant to end are sentences. Abbreviations and decimals do not end one;
    marks and citations behind the stop belong to it.

    >>> text = "Dr. Lee paid $3.50. [1] It rained. “他走了。”她说。"
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. Lee paid $3.50. [1]', 'It rained.', '“他走了。”她说。']
    """
    result = []
    for first, last in _blocks(text):
        block = text[first:last]
        start = 0
        for end in [*_breaks(block), len(block)]:
            span = trimmed(text, first + start, first + end)
            if span[0] < span[1]:
                result.append(span)
            start = end
    return result


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, without outer white space; see `sentence_spans`.

    >>> sentences("Dr. Lee paid $3.50. It rained. 他走了。")
    ['Dr. Lee paid $3.50.', 'It rained.', '他走了。']
    """
    return [text[start:end] for start, end in sentence_spans(text)]


def trimmed(text: str, start: int, end: int) -> Span:
    """Return a span without the white space at its ends."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return start, max(start, start + len(piece.strip()))


def read_span(written: object) -> Span | None:
    """Return the span that is written as ``start:end``; None for anything else."""
    found = _WRITTEN.fullmatch(written) if isinstance(written, str) else None
    return (int(found[1]), int(found[2])) if found else None


def inside_brackets(text: str) -> list[bool]:
    """Tell for every character whether it is inside brackets or a quotation within a sentence."""
    return _inside(text)[0]


def _blocks(text: str) -> list[Span]:
    """Cut a text where a line ends for good: lines that were only wrapped stay together."""
    lines, start = [], 0
    for match in _NEWLINE.finditer(text):
        lines.append((start, match.start()))
        start = match.end()
    lines.append((start, len(text)))
    blocks: list[Span] = []
    before = ""
    for start, end in lines:
        line = text[start:end]
        if before.strip() and _goes_on(before, line):
            blocks[-1] = (blocks[-1][0], end)
        else:
            blocks.append((start, end))
        before = line
    return blocks


def _goes_on(line: str, following: str) -> bool:
    after = following.lstrip()
    if not after or _ITEM.match(following) or _HEADING.match(line) or _ENDED.search(line[-80:]):
        return False
    if after[0].islower() or line.rstrip()[-1] in ",，、":
        return True
    # An ideograph is as wide as two letters.
    width = len(line) + len(regex.findall(r"\p{Han}", line[: _WRAPPED.stop]))
    # What follows a list item without being set in is no part of it.
    return width in _WRAPPED and (following[0].isspace() or not _ITEM.match(line))


def _breaks(block: str) -> list[int]:
    """Return where, within one block, a sentence ends and another begins."""
    aside, openers = _inside(block)
    breaks, start = [], 0
    for match in _STOP.finditer(block):
        close_at = match.start("close")
        # A straight quotation mark that opens the next sentence does not close this one.
        opened = next((i for i in range(close_at, match.end("close")) if i in openers), None)
        end = match.end() if opened is None else opened
        if end < len(block) and not aside[end - 1] and _is_end(block, start, end, match):
            breaks.append(end)
            start = end
    return breaks


def _is_end(block: str, start: int, end: int, match: regex.Match) -> bool:
    stop, at = match["stop"], match.start()
    after = block[end : end + 80]
    if not _LETTER.search(after):
        return False
    if _FULL_WIDTH.search(stop):
        return not (match["close"] and _SPOKEN.match(after))
    between_han = stop in ".!?" and _HAN.match(block[at - 1 : at]) and _HAN.match(after)
    if not (after[0].isspace() or match["cited"] or between_han):
        return False
    if _SMALL.match(after) or _NUMBERED_ONLY.fullmatch(block[max(start, at - 12) : at]):
        return False
    closed = bool(match["close"].strip("*_"))
    return closed or stop != "." or not _is_abbreviation(block[max(start, at - 30) : at], after)


def _is_abbreviation(before: str, after: str) -> bool:
    """Tell whether the stop after ``before`` belongs to an abbreviation and does not end the sentence."""
    found = _TOKEN.search(before)
    if found is None:
        return False
    token = found[0].casefold().strip(".")
    last = token.rpartition(".")[2]
    following = unicodedata.normalize("NFC", _NEXT.search(after)[0])
    if token == "v.v":  # Vietnamese "and so on": ends a sentence before a capital letter
        return False
    if {token, last} & _ABBREVIATIONS["before_names"]:
        return True
    if token in _ABBREVIATIONS["before_numbers"]:
        return following[0].isdecimal()
    if token.isdecimal():  # an ordinal: "the 4. May"
        return len(token) < 3 and following[0].isupper() and following.strip(".").casefold() in MONTHS
    initial = len(last) == 1 and last.isalpha() and found[0][-1].isupper() and not _HAN.match(last)
    if not (initial or token in _ABBREVIATIONS["anywhere"] or _DOTTED.fullmatch(token)):
        return False
    another = following.endswith(".") and len(following) == 2
    return another or following.rstrip(".").casefold() not in _ABBREVIATIONS["starters"]


def _inside(block: str) -> tuple[list[bool], set[int]]:
    """Mark what is inside brackets and quotations (not whole sentences), and where straight ones open."""
    steps = [0] * (len(block) + 1)
    pairs, openers = _straight_quotes(block)
    for begin, end in [*_bracket_pairs(block), *pairs]:
        whole = block[begin] in _QUOTES and _at_start(block, begin)
        if end - begin <= _LONGEST_ASIDE and not whole:
            steps[begin] += 1
            steps[end] -= 1
    return [depth > 0 for depth in accumulate(steps[:-1])], openers


def _at_start(block: str, place: int) -> bool:
    before = block[max(0, place - 40) : place].rstrip()
    return not before or bool(regex.search(r"[.!?…。！？；][\"'”’»)）」』]*$", before))


def _bracket_pairs(block: str) -> list[Span]:
    stack: list[tuple[str, int]] = []
    open_now: dict[str, int] = defaultdict(int)
    pairs = []
    for match in _BRACKETS.finditer(block):
        mark = match[0]
        if mark in _OPEN:
            stack.append((mark, match.start()))
            open_now[mark] += 1
        elif open_now[_CLOSE[mark]]:
            while True:
                begun, place = stack.pop()
                open_now[begun] -= 1
                if begun == _CLOSE[mark]:
                    break
            pairs.append((place, match.start()))
    return pairs


def _straight_quotes(block: str) -> tuple[list[Span], set[int]]:
    places = [match.start() for match in regex.finditer('"', block)]
    if len(places) % 2:
        return [], set()
    return list(zip(places[::2], places[1::2], strict=True)), set(places[::2])
