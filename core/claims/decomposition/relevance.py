"""Tell statements about the world from refusals, greetings, questions and talk about the answer itself."""

from __future__ import annotations

import regex

from core.text.abstention import is_abstention
from core.text.folding import folded
from core.text.words import ENGLISH, pattern, words

_META = pattern("no_statement")
_QUESTION = regex.compile(r"[?？][?!？！*_)）\s]*$")
_ANNOUNCES = regex.compile(r"[:：][*_\s]*$")
_FRONT = regex.compile(r"^[\s*_#>\"'“”‘’(\[（「『-]+")
# What is left of a sentence that was cut off; "no", "both" and "one" may be answers.
_LOOSE = frozenset(
    "a an and are as at but by for he in is it its of on or she so that the they this to was were which "
    "with".split()
)
_HEAD = 400  # longer texts say more than "I hope this helps"


def is_relevant(text: str) -> bool:
    """Tell whether a claim or sentence states something that evidence could support.

    Not so: refusals, greetings, questions, talk about the answer, the model or the passages as such, what
    only announces what comes next (it ends with a colon), loose little words ("The"), and text without a
    word.

    >>> [is_relevant(t) for t in ("Paris", "I hope this helps!", "以下是答案：", "Bạn muốn hỏi gì?")]
    [True, False, False, False]
    """
    found = words(text)
    # A letter by itself is an answer to choose from.
    is_loose = _LOOSE.issuperset(found) and found != ["a"]
    is_question = _QUESTION.search(text) and not _is_title(text)
    if is_loose or is_question or is_abstention(text) or _ANNOUNCES.search(text):
        return False
    head = _FRONT.sub("", folded(text)).strip()
    return len(head) > _HEAD or not _META.match(head)


def _is_title(text: str) -> bool:
    """Tell whether a question is a name, as of a film: every word of weight has a capital letter."""
    found = regex.findall(r"[\p{L}\p{M}]+", text)
    heavy = [word for word in found if len(word) > 3 and word.casefold() not in ENGLISH]
    return len(words(text)) >= 3 and len(heavy) >= 2 and all(word[0].isupper() for word in heavy)
