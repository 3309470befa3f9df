"""Whether an answer commits itself: refusals, hedges, certainty, in English, Vietnamese and Chinese."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import regex

from core.text.folding import folded, places
from core.text.reading import Token, read
from core.text.sentences import Span
from core.text.words import has_words, pattern

# Texts are folded before matching: patterns need only straight apostrophes and simplified characters.
_PATTERNS = pattern("abstention")
# A text of ASCII that matches holds one of these: most answers do not, and the patterns need not be tried.
_ASCII_SIGN = re.compile(r"no[tn]|n't|know|information|answer|n/a|unable|unsure", re.IGNORECASE)
_GOES_ON = regex.compile(r"\b(?:but|however|nhưng|tuy\s+nhiên)\b|但|不过|然而", regex.IGNORECASE)
# A refusal comes first; a long answer that mentions a limit at its end is still an answer.
_HEAD = 160


def is_abstention(text: str) -> bool:
    """Tell whether an answer is a refusal, or says that the answer is not known; False for an empty one.

    >>> [is_abstention(t) for t in ("I don’t know.", "Không biết", "我不知道。", "Paris", "")]
    [True, True, True, False, False]
    """
    head = folded(text.strip())[:_HEAD]
    if head.isascii() and not _ASCII_SIGN.search(head):
        return False
    return bool(_PATTERNS.search(head))


def claims_nothing(text: str) -> bool:
    """Tell whether an answer only says that the answer is not known, and does not go on with "but …".

    >>> [claims_nothing(t) for t in ("I don't know.", "I'm not sure, but it was Unwin.")]
    [True, False]
    """
    return is_abstention(text) and not _GOES_ON.search(folded(text))


# A baseline is asked about once for every passage left out, and this takes ten times as long as ROUGE-L.
@lru_cache(maxsize=131_072)
def answer_status(text: str | None) -> str:
    """Return the status of an answer: ``answered``, ``abstained`` or ``empty`` (no word in it)."""
    if text is None or not has_words(text):
        return "empty"
    return "abstained" if is_abstention(text) else "answered"


_REACH = 4  # words between a negation and what it denies

_HEDGE = pattern("hedges")
_CERTAIN = pattern("certainties")


class Certainty(NamedTuple):
    """Where a text hedges, and where it says that it is certain; spans of the text as given."""

    hedges: tuple[Span, ...]
    certain: tuple[Span, ...]


def certainty(text: str) -> Certainty:
    """Return where a text hedges and where it claims certainty, with negation in mind.

    >>> certainty("It is definitely Unwin.").certain, certainty("It isn’t definitely Unwin.").hedges
    (((6, 16),), ((9, 19),))
    """
    plain, origin = folded(text), places(text)
    hedges = [match.span() for match in _HEDGE.finditer(plain)]
    certain = [match.span() for match in _CERTAIN.finditer(plain)]
    if not hedges and not certain:
        return Certainty((), ())
    # "Definitely not sure" is not certain, and "not certain" is one hedge.
    hedged = {place for start, end in hedges for place in range(start - 2, end)}
    certain = [span for span in certain if span[1] not in hedged and span[0] not in hedged]
    denying = _denying(text)
    denied = {
        span: denying.get(origin[span[0]], origin[span[0]]) < origin[span[0]] for span in (*hedges, *certain)
    }
    doubts = [span for span in hedges if not denied[span]] + [span for span in certain if denied[span]]
    sure = [span for span in certain if not denied[span]]
    return Certainty(
        tuple(_at(span, origin) for span in sorted(doubts)), tuple(_at(span, origin) for span in sure)
    )


def _at(span: Span, origin: Sequence[int]) -> Span:
    return origin[span[0]], origin[span[1]]


def _denying(text: str) -> dict[int, int]:
    """Return where the negation begins that reaches each word, by where the word begins."""
    found: dict[int, int] = {}
    cue: tuple[int, Token] | None = None
    for i, token in enumerate(read(text)):
        if token.negates:
            cue = (i, token)
        elif cue and token.clause == cue[1].clause and i - cue[0] <= _REACH:
            found[token.start] = cue[1].start
    return found
