"""Word-by-word comparison of two answers."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

from core.text.words import word_spans, words

Operation = Literal["same", "removed", "added"]

# Comparing word by word takes quadratic time in the worst case; answers are far shorter than this.
MAX_WORDS = 4_000


def word_diff(before: str, after: str) -> list[tuple[Operation, str]]:
    """Compare two texts word by word, in any script: pieces ``(operation, text)`` in reading order.

    Joined, the same and removed ones are ``before``, the same and added ones ``after``. Texts of more than
    4,000 words are one removed and one added piece.

    >>> word_diff("in 1903 by Unwin", "in 1904 by Unwin")
    [('same', 'in '), ('removed', '1903'), ('added', '1904'), ('same', ' by Unwin')]
    """
    a, b = _tokens(before), _tokens(after)
    if before != after and max(len(a), len(b)) > 2 * MAX_WORDS:
        return _pieces([("removed", before), ("added", after)])
    opcodes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    result: list[tuple[Operation, str]] = []
    removed = added = ""
    for place, (tag, a1, a2, b1, b2) in enumerate(opcodes):
        before_part, after_part = "".join(a[a1:a2]), "".join(b[b1:b2])
        inside = 0 < place < len(opcodes) - 1
        # A space or comma shared between two changed words does not make the change easier to read.
        if tag == "equal" and not (inside and not words(before_part)):
            result += [("removed", removed), ("added", added), ("same", before_part)]
            removed = added = ""
        else:
            removed, added = removed + before_part, added + after_part
    return _pieces([*result, ("removed", removed), ("added", added)])


def shorten_same(pieces: Sequence[tuple[Operation, str]], keep: int = 8) -> list[tuple[Operation, str]]:
    """Cut the middle out of what did not change in a `word_diff`, but for ``keep`` words next to a change.

    >>> shorten_same([("same", "As far as is known it opened in "), ("added", "1914")], keep=2)
    [('same', '… opened in '), ('added', '1914')]
    """
    last = len(pieces) - 1
    return [
        (operation, _cut(text, keep, place > 0, place < last) if operation == "same" else text)
        for place, (operation, text) in enumerate(pieces)
    ]


def _cut(text: str, keep: int, head: bool, tail: bool) -> str:
    """Keep the first words of a text, its last, or both, where that leaves out more than a few."""
    spans = word_spans(text)
    if not (head or tail) or len(spans) <= keep * (head + tail) + 3:
        return text
    start = text[: spans[keep - 1][1]] + " " if head else ""
    end = " " + text[spans[-keep][0] :] if tail else ""
    return f"{start}…{end}"


def _tokens(text: str) -> list[str]:
    """Words and the text between them, alternating; joined they are the text."""
    tokens, last = [], 0
    for start, end in word_spans(text):
        tokens += [text[last:start], text[start:end]]
        last = end
    tokens.append(text[last:])
    return [token for token in tokens if token]


def _pieces(pieces: list[tuple[Operation, str]]) -> list[tuple[Operation, str]]:
    return [piece for piece in pieces if piece[1]]
