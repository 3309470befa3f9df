"""Plain text from a page that comes as tokens, some of them HTML tags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from core.sources.question import gold_spans

# After these tags a new line begins: otherwise a heading would run into the sentence below it.
_BLOCKS = frozenset("p br div li ul ol dl dt dd tr table caption h1 h2 h3 h4 h5 h6".split())
_TAG = re.compile(r"</?\s*([a-zA-Z][a-zA-Z0-9]*)")
_OPENING = frozenset("( [ { $ £ €".split())
_CLOSING = frozenset(", . ; : ? ! ) ] } % 's 'S ’s n't 'm 're 've 'll 'd".split())
_QUOTES = {"``": '"', "''": '"'}
_WINDOWS = (6, 12, 24, 48, 96)  # tokens on either side of an answer


@dataclass(frozen=True, slots=True)
class PlainPage:
    """The text of a page and the places of its tokens.

    ``spans[i]`` is the character span of token i of the page, None for a tag or an empty token.
    """

    text: str
    spans: tuple[tuple[int, int] | None, ...]

    def piece(self, first: int, last: int) -> str:
        """Return the text of the tokens ``first`` to ``last - 1`` on one line; "" where all are tags."""
        held = [span for span in self.spans[first:last] if span is not None]
        return " ".join(self.text[held[0][0] : held[-1][1]].split()) if held else ""

    def fragment(self, first: int, last: int) -> str:
        """Return a stretch of text around these tokens, wide enough to occur in the page only once.

        Six tokens on either side, then more, up to 96; what occurs twice even then is returned as it is.
        """
        places = [i for i, span in enumerate(self.spans) if span is not None]
        inside = [n for n, i in enumerate(places) if first <= i < last]
        found = ""
        for width in _WINDOWS if inside else ():
            low, high = max(0, inside[0] - width), min(len(places) - 1, inside[-1] + width)
            found = self.piece(places[low], places[high] + 1)
            if len(gold_spans(self.text, [found])) == 1:
                break
        return found


def plain_page(tokens: Iterable[tuple[str, bool]]) -> PlainPage:
    r"""Join the tokens that are not HTML tags; each comes with whether it is one.

    Words are separated by one space, none before a closing or after an opening mark; a dropped block tag
    (paragraph, heading, list item, table row …) leaves a line break.

    Examples
    --------
    >>> plain_page([("Utah", False), ("<P>", True), ("A", False), ("state", False), (".", False)]).text
    'Utah\nA state.'
    """
    parts: list[str] = []
    spans: list[tuple[int, int] | None] = []
    length, gap, glued = 0, "", True
    for token, is_html in tokens:
        word = "" if is_html else " ".join(token.split())
        if not word:
            name = _TAG.match(token) if is_html else None
            gap = "\n" if name and name[1].lower() in _BLOCKS else gap
            spans.append(None)
            continue
        before = gap or ("" if glued or word in _CLOSING or word == "''" else " ")
        before = before if length else ""
        shown = _QUOTES.get(word, word)
        parts += [before, shown]
        start = length + len(before)
        length = start + len(shown)
        spans.append((start, length))
        gap, glued = "", word in _OPENING or word == "``"
    return PlainPage("".join(parts), tuple(spans))
