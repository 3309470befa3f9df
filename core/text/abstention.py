"""Whether an answer commits itself: refusals, hedges, words of certainty, in English, Vietnamese and Chinese."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import regex

from core.text.folding import folded, places
from core.text.reading import Token, read
from core.text.sentences import Span
from core.text.words import has_words

# Each pattern describes the model's own lack of knowledge, not somebody else's in a story: the
# speaker is "I", "the passages", or nobody. Texts are folded before matching: the patterns need only straight
# apostrophes and simplified characters.
_ENGLISH = r"""
\bi\s+(?:really\s+|simply\s+|just\s+)?(?:do\s+not|don't|dont)\s+(?:actually\s+)?(?:know|have\s+(?:\w+\s+){0,2}information)
| ^\W*(?:sorry\W+)?(?:unknown|not\s+(?:known|stated|specified|given|mentioned|provided|answerable|enough\s+information)|unanswerable|no\s+answer|n/a|none\s+given)\W*$
| \bi(?:'m|\s+am)\s+(?:not\s+(?:sure|certain|able\s+to)|unable\s+to|unsure)
| \bi\s+(?:cannot|can\s*not|can't|could\s+not|couldn't)\s+(?:\w+\s+)?(?:answer|find|determine|say|tell|provide|help)
| \b(?:cannot|can\s*not|can't|could\s+not|couldn't)\s+be\s+(?:answered|determined|found|established)\b
| \b(?:passages?|documents?|contexts?|texts?|sources?|articles?)\b[^.!?]{0,40}\b(?:do|does|did)(?:\s+not|n't)\s+(?:\w+\s+)?(?:contain|mention|say|state|provide|give|include|specify|answer|have)
| \b(?:no|insufficient|not\s+enough)\s+(?:relevant\s+)?information\b
| \b(?:is|are|was|were)\s+not\s+(?:mentioned|stated|specified|given|provided|found|contained)\s+in\s+(?:the|any|these)\s+(?:passages?|documents?|contexts?|texts?)
"""
_VIETNAMESE = r"""
(?:tôi|mình|chúng\s+tôi|em)\s+(?:thực\s+sự\s+)?(?:không|chưa)\s+(?:biết|rõ|chắc)
| ^\W*(?:không|chưa)\s+(?:biết|rõ|có\s+thông\s+tin|xác\s+định)\b
| không\s+(?:có\s+)?đủ\s+(?:thông\s+tin|dữ\s+liệu)
| không\s+thể\s+(?:trả\s+lời|xác\s+định|tìm\s+thấy)
| không\s+(?:được\s+)?(?:đề\s+cập|nhắc\s+đến|nêu)
| (?:đoạn\s+văn|tài\s+liệu|văn\s+bản)[^.!?]{0,30}không\s+(?:có|chứa|cung\s+cấp|nói)
"""
_CHINESE = r"""
(?:^\W*|我们?|本人)(?:并|也|真的|还)?不(?:太)?(?:知道|清楚|确定)
| (?:^\W*|我们?|因此|所以|，)(?:无法|不能)(?:回答|确定|判断|得知|找到|提供)
| (?:文中|文章|段落|上下文|资料|文本|信息|内容)[^。！？]{0,12}(?:没有|未|并未)[^。！？]{0,6}(?:提及|提到|说明|提供|给出|包含|答案)
| 没有(?:足够|相关)(?:的)?(?:信息|资料|资讯)
| (?:信息|资讯|资料)不足
| ^\W*(?:未知|不详|未提及|没有答案)\W*$
"""
_PATTERNS = regex.compile("|".join((_ENGLISH, _VIETNAMESE, _CHINESE)), regex.VERBOSE | regex.IGNORECASE)
# A text of ASCII that matches holds one of these: most answers do not, and the patterns need not be tried.
_ASCII_SIGN = re.compile(r"no[tn]|n't|know|information|answer|n/a|unable|unsure", re.IGNORECASE)
_GOES_ON = regex.compile(r"\b(?:but|however|nhưng|tuy\s+nhiên)\b|但|不过|然而", regex.IGNORECASE)
# A refusal comes first; a long answer that mentions a limit at its end is still an answer.
_HEAD = 160


def is_abstention(text: str) -> bool:
    """Tell whether an answer is a refusal to answer, or says that the answer is not known.

    English, Vietnamese or Chinese, in any Unicode form. False for an empty answer, which has a status of its
    own.

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
