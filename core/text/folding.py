"""One form for texts that read the same: composed accents, straight apostrophes, simplified characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import regex

_CACHE = 16_384
_HAN = regex.compile(r"\p{Han}")
_CLUSTER = regex.compile(r"\X")
_WIDE = [chr(code) for code in range(0xFF01, 0xFF5F)]
_MARKS = str.maketrans(
    dict.fromkeys("’‘ʼ`＇", "'")
    | {wide: chr(ord(wide) - 0xFEE0) for wide in _WIDE if wide.isalnum() or wide in "％＄．／"}
    | {"￥": "¥", "￡": "£"}
)


def folded(text: str) -> str:
    """Return a text as the rest of this package reads it, capitals kept.

    >>> folded("臺灣的１５％ isn’t")
    "台湾的15% isn't"
    """
    return text.replace("`", "'") if text.isascii() else _folded(text)


@lru_cache(maxsize=_CACHE)
def _folded(text: str) -> str:
    text = unicodedata.normalize("NFC", text).translate(_MARKS)
    return text.translate(_simplified()) if _HAN.search(text) else text


def places(text: str) -> Sequence[int]:
    """Return where in a text each character of its `folded` form comes from, and the end of the text."""
    if unicodedata.is_normalized("NFC", text):
        return range(len(text) + 1)
    found: list[int] = []
    for match in _CLUSTER.finditer(text):
        found += [match.start()] * len(unicodedata.normalize("NFC", match[0]))
    return [*found, len(text)]


@lru_cache(maxsize=1)
def _simplified() -> dict[int, str]:
    """Return the simplified character of every traditional one that has another form."""
    from opencc import OpenCC

    # Characters alone, each on a line: phrases would change the length.
    given = "\n".join(map(chr, range(0x3400, 0xA000)))
    pairs = zip(given, OpenCC("t2s").convert(given), strict=True)
    return {ord(a): b for a, b in pairs if a != b}
