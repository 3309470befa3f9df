"""Words cut to the part that does not change with number and tense."""

from __future__ import annotations

from functools import lru_cache

from core.text.stop_words import ENGLISH
from core.text.words import words

_CACHE = 16_384
_ENDINGS = ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "ly", "s")


def light_stem(word: str) -> str:
    """Return an English word without its commonest endings; other words as they are.

    >>> [light_stem(w) for w in ("passengers", "carried", "cities", "gas", "running")]
    ['passenger', 'carr', 'cit', 'gas', 'runn']
    """
    if word.isascii():
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith("ss"):
                return word[: -len(ending)]
    return word[:-1] if word.isascii() and len(word) > 4 and word[-1] in "ey" else word


@lru_cache(maxsize=_CACHE)
def stems(text: str) -> tuple[str, ...]:
    """Return the stemmed words of a text, in order."""
    return tuple(light_stem(word) for word in words(text))


@lru_cache(maxsize=_CACHE)
def content_stems(text: str) -> tuple[str, ...]:
    """Return the stemmed words of a text without English stop words; all words where no other is left."""
    found = words(text)
    return tuple(light_stem(word) for word in [w for w in found if w not in ENGLISH] or found)
