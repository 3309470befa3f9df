"""How sure a text says it is: hedges and words of certainty, in English, Vietnamese and Chinese.

A negation turns them round: "not definitely" is a hedge, "not possibly" is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import regex

from core.text.folding import folded, places
from core.text.reading import Token, read
from core.text.sentences import Span

_REACH = 4  # words between a negation and what it denies

# Texts are folded before matching: straight apostrophes and simplified characters.
_HEDGES = r"""
\b(?:maybe|perhaps|possibly|probably|presumably|apparently|likely|unlikely|unclear|uncertain|unsure)\b
| \b(?-i:may)\b(?!\s+\d) | (?<!\b(?:the|its|of)\s)\bmight\b
| \bcould\s+(?:(?!not\b)\w+\s+)?(?:be|have)\b | \b(?:seem|appear)(?:s|ed)?\b(?=\s+(?:to|that|like|as)\b)
| \bi\s+(?:would\s+)?(?:think|believe|guess|suppose|assume|suspect)\b
| \b(?:as\s+far\s+as\s+i\s+know|to\s+(?:the\s+best\s+of\s+)?my\s+knowledge)\b
| \b(?:general|background|training)\s+(?:knowledge|data)\b
| \bnot\s+(?:\w+\s+)?(?:sure|certain|clear|known|necessarily)\b
| \bcó\s+lẽ\b | \bcó\s+thể\s+(?:là|đã|do)\b | (?:^|[.,;:!?]\s*|\bnhưng\s+)có\s+thể\b
| \b(?:tôi|mình)\s+(?:nghĩ|cho\s+rằng|đoán)\b | \btheo\s+tôi\b | \b(?:dường|hình)\s+như\b | \bcó\s+vẻ\b
| \bkiến\s+thức\s+(?:chung|nền)\b | \b(?:không|chưa)\s+rõ\b | \bchưa\s+chắc\b(?!\s+chắn)
| (?<![不尽])可能(?!性为零) | 也许|或许|大概|似乎|好像|恐怕|据我所知|未必|不确定|不清楚
| 我(?:个人)?(?:认为|觉得|想|猜|相信) | 应该[是由] | (?:一般|通用)知识|常识|训练数据
"""
_CERTAINTIES = r"""
\b(?:definitely|certainly|undoubtedly|unquestionably|indisputably|obviously|guaranteed)\b
| \b(?:without|beyond)\s+(?:a|any|all)?\s*(?:\w+\s+(?:of\s+a\s+)?)?doubt\b | \bno\s+doubt\b
| \bfor\s+(?:sure|certain)\b | \bi\s+(?:guarantee|promise|swear)\b
| \babsolutely\b(?:\s+(?:sure|certain|right|correct|confident)\b)?
| (?:\b(?:completely|totally|entirely|quite)|100\s?%)\s+(?:sure|certain|correct|confident)\b
| (?<=(?:\b(?:is|are|am|was|be)(?:n't)?|'[ms]|'re)\s+(?:not\s+)?)
  (?:sure|certain)(?=\s+(?:that|it|of|about)\b|\W*$)
| \bchắc\s+chắn(?:\s+100\s?%)? | \bkhông\s+(?:còn\s+)?nghi\s+ngờ\s+gì
| \b(?:nhất\s+định|tuyệt\s+đối|đương\s+nhiên|hiển\s+nhiên)\b | \brõ\s+ràng\s+là\b
| 肯定|绝对(?!值|温|误|湿)|一定(?!程度|[的量数])|必定|毫无疑问|毋庸置疑|无疑|百分之百
"""
_FLAGS = regex.VERBOSE | regex.IGNORECASE
_HEDGE = regex.compile(_HEDGES, _FLAGS)
_CERTAIN = regex.compile(_CERTAINTIES, _FLAGS)


class Certainty(NamedTuple):
    """Where a text hedges, and where it says that it is certain; spans of the text as given."""

    hedges: tuple[Span, ...]
    certain: tuple[Span, ...]


def certainty(text: str) -> Certainty:
    """Return where a text hedges and where it claims certainty, with negation in mind.

    Examples
    --------
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
