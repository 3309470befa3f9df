"""What a text says in words: without code, citations and the numbers of its list items."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from core.text.citations import citations
from core.text.sentences import BULLET, Span

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
