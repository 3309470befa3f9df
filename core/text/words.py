"""Words in any script, those that say nothing of a subject, and passages of an exact number of words."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import regex

# An ideograph is a word of its own; elsewhere a word is a run of letters, digits and their marks.
# Apostrophes and hyphens split, as rouge_score's tokeniser does.
_WORD = regex.compile(r"\p{Han}|(?:(?!\p{Han})[\p{L}\p{N}\p{M}])+")

# The same for texts of ASCII: the library's own expression takes a tenth of the time.
_ASCII_WORD = re.compile("[A-Za-z0-9]+")


class Passage(NamedTuple):
    """A window of a text: ``text[start:end]``."""

    text: str
    start: int
    end: int


def lines_of(table: str) -> list[str]:
    """Return the lines of ``tables/<table>.txt``; # begins a comment."""
    text = files(__package__).joinpath("tables", f"{table}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and line[0] != "#"]


def word_sets(table: str) -> dict[str, frozenset[str]]:
    """Return the sets of words of a table, by the names in front of its lines."""
    found: dict[str, frozenset[str]] = {}
    for name, listed in (line.split(": ") for line in lines_of(table)):
        found[name] = found.get(name, frozenset()) | frozenset(listed.split())
    return found


_STOP = word_sets("stop_words")
ENGLISH, VIETNAMESE, CHINESE = (_STOP[name] for name in ("english", "vietnamese", "chinese"))
STOP_WORDS = ENGLISH | VIETNAMESE | CHINESE


def pattern(table: str) -> Any:
    """Compile a table of alternatives, one a line; a blank at its beginning continues the line before."""
    lines = lines_of(table)
    joined = "\n".join(line if line[0] == " " or not i else f"|{line}" for i, line in enumerate(lines))
    return regex.compile(joined, regex.VERBOSE | regex.IGNORECASE | regex.DOTALL)


def words(text: str) -> list[str]:
    """Split a text into words: Unicode-aware, NFC, case-folded, one word per CJK ideograph.

    >>> words("The Río Grande’s 2 banks")
    ['the', 'río', 'grande', 's', '2', 'banks']
    >>> words("大运河 is 1,794 km")
    ['大', '运', '河', 'is', '1', '794', 'km']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return [unicodedata.normalize("NFC", match.group().casefold()) for match in _WORD.finditer(text)]


@lru_cache(maxsize=16_384)
def known_words(text: str) -> tuple[str, ...]:
    """Return `words`, once for each of the latest texts."""
    return tuple(words(text))


def has_words(text: str) -> bool:
    """Tell whether a text has at least one word."""
    return (_ASCII_WORD if text.isascii() else _WORD).search(text) is not None


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the character span of every word of ``words(text)``, in the same order."""
    return [match.span() for match in _WORD.finditer(text)]


def passages(text: str, size: int = 100) -> list[Passage]:
    """Cut a text into consecutive windows of exactly ``size`` words, at least 1; the last may be shorter.

    Each runs to the first word of the next, without outer white space. ValueError for a size below 1.

    >>> [p.text for p in passages("One two, three. Four", size=3)]
    ['One two, three.', 'Four']
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}.")
    spans = word_spans(text)
    windows = []
    for first in range(0, len(spans), size):
        # Anything before the very first word (an opening quote, say) belongs to it.
        start = spans[first][0] if first else 0
        end = spans[first + size][0] if first + size < len(spans) else len(text)
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        end = start + len(piece.strip())
        windows.append(Passage(text[start:end], start, end))
    return windows
