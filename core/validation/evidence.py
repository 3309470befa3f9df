"""How much of what an answer says is in the words of its best passage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import regex

from core.text.reading import read

_HAN = regex.compile(r"\p{Han}")
# These answer a question and show nothing by themselves.
_POLAR = frozenset("yes true false right có đúng sai phải vâng ạ 对 否 错".split())


def overlap(answer: str, passages: Sequence[str]) -> float | None:
    """Return the share of the answer's words of content that one passage has: the largest of the passages.

    Stems in English, syllables in Vietnamese, pairs of ideographs in Chinese (single ones occur in any text),
    numbers by value. Each word counts once.

    Returns
    -------
    float or None
        In [0, 1], higher = more of the answer is in the passage. None without a passage or a word of content.

    Examples
    --------
    >>> overlap("Unwin built the bridge.", ["Bridges were designed by Unwin.", "Coffee"])
    0.6666666666666666
    """
    said = set(_units(answer)) - _POLAR
    if not said or not passages:
        return None
    return max(len(said & _known(passage)) for passage in passages) / len(said)


@lru_cache(maxsize=4096)
def _known(passage: str) -> frozenset[str]:
    return frozenset(_units(passage))


def _units(text: str) -> Iterable[str]:
    """Return the stems of the words of content, ideographs as pairs of neighbours or alone."""
    tokens = [token for token in read(text) if token.content]
    joined = False  # with the ideograph before it
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        han = not token.stem.isascii() and _HAN.fullmatch(token.stem)
        if han and after is not None and after.start == token.end and _HAN.fullmatch(after.stem):
            yield token.stem + after.stem
            joined = True
            continue
        if not (han and joined):
            yield token.stem
        joined = False
