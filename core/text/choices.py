"""Which of two things an answer chooses, where its question offers two: "Suez or Panama?"."""

from __future__ import annotations

from functools import lru_cache

import regex

from core.text.folding import folded
from core.text.reading import Token, read

_OPTION = r"[^,:;，：；?？]+?"
_CHOICES = (
    regex.compile(
        rf"[,:，：]\s*({_OPTION})\s*(?:\b(?:or|hay|hoặc)\b|还是|或者?)\s*({_OPTION})\s*[?？]\s*$",
        regex.IGNORECASE,
    ),
    regex.compile(
        rf"^\s*(?:of\s|between\s|giữa\s)?({_OPTION})\s*(?:\b(?:and|và)\b|[和与跟])\s*({_OPTION})\s*[,，]\s*"
        r"(?=which\b|who\b|.*\bnào\b|.*[哪谁])",
        regex.IGNORECASE,
    ),
)
# Toward the start of a scale, and toward its end: what comes first, or is less; what comes later, or is more.
_ENDS = (
    "first earlier earliest before sooner older oldest lower lowest less least fewer fewest smaller smallest "
    "shorter shortest lighter cheaper trước sớm thấp ít nhỏ ngắn 先 早 前 低 少 小 短",
    "last later latest after newer newest younger higher highest more most greater greatest larger largest "
    "bigger longer longest heavier dearer sau muộn cao nhiều lớn dài 后 晚 高 多 大 长",
)
_END = {word: end for end, words in enumerate(_ENDS) for word in words.split()}
_REJECTS = {"rather", "instead"}
_NEAR = 3  # words between a negation and what it rejects


def chosen(question: str, answer: str) -> str | None:
    """Return the option of a question ("…, A or B?", "A and B, which …?") that an answer chooses, as asked.

    The answer may name both: what it says of them counts, "A opened before B", not which words it holds. ""
    where it names both and chooses none; None where the question offers no two options, or the answer names
    neither.

    >>> chosen("Which is older, the mill or the dam?", "The dam was built after the mill.")
    'the mill'
    """
    offered = options(question)
    if not offered:
        return None
    words = [{token.stem for token in read(option)} for option in offered]
    marks = (words[0] - words[1], words[1] - words[0])
    tokens = read(answer)
    said = {token.stem for token in tokens}
    # A surname or half a title is enough to name one.
    named = [3 * len(mark & said) >= len(mark) > 0 for mark in marks]
    if not any(named):
        return None
    if not all(named):
        return offered[named.index(True)]
    # For each word, the option that it names.
    places = {
        i: 0 if token.stem in marks[0] else 1
        for i, token in enumerate(tokens)
        if token.stem in marks[0] | marks[1]
    }
    rejected = {
        _rejected(tokens, i, places)
        for i, t in enumerate(tokens)
        if i not in places and (t.negates or t.word in _REJECTS)
    }
    if len(left := {0, 1} - rejected) == 1:
        return offered[left.pop()]
    asked = next(
        (_END[t.word] for t in read(question) if t.word in _END and t.stem not in words[0] | words[1]), None
    )
    told = next((i for i, t in enumerate(tokens) if t.word in _END and i not in places), None)
    if asked is None or told is None:
        return ""
    than = next((i for i, t in enumerate(tokens) if t.word == "比" and i < told), told)
    subject = places[max((i for i in places if i < than), default=min(places))]
    return offered[subject if _END[tokens[told].word] == asked else 1 - subject]


@lru_cache(maxsize=1024)
def options(question: str) -> tuple[str, ...]:
    """Return the two things that a question lets choose between, as it words them; () where it does not."""
    match = next((found for choice in _CHOICES if (found := choice.search(folded(question)))), None)
    return (match[1], match[2]) if match else ()


def _rejected(tokens: tuple[Token, ...], at: int, places: dict[int, int]) -> int | None:
    """Return the option that a negation is about: the one close behind it, else the one ahead of it."""
    clause = [i for i in places if tokens[i].clause == tokens[at].clause]
    behind = [i for i in clause if at < i <= at + _NEAR]
    ahead = [i for i in clause if i < at]
    return places[behind[0]] if behind else places[ahead[-1]] if ahead else None
