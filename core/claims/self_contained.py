"""Bare values ("1866", "Henry Darcy", "木活字") made into claims that say what they are the answer to."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import regex

from core.claims.types import Claim
from core.text.numbers import is_vietnamese
from core.text.quantities import counts
from core.text.sentences import sentence_spans
from core.text.words import ENGLISH, has_words, word_sets, words

_CACHE = 16_384
_MOST_WORDS = 8
_MOST_STOPPED = 5  # words or ideographs of a value that ends in a full stop, as sentences do
_MOST_CONTENT = 4  # words of weight that are not the question's
_MOST_SYLLABLES = 6  # the same in Vietnamese, where a word has one or two
_MOST_IDEOGRAPHS = 10  # words of a Chinese value; "1866年7月27日" has six

_GRAMMAR = word_sets("grammar")
_PRONOUNS, _ADVERBS, _VERBS = (_GRAMMAR[name] for name in ("subjects", "adverbs", "verbs"))
# Proper names and titles have capitals: "Northern Lights over Norway".
_PAST = regex.compile(r"\p{Ll}{2,}ed")
_PRESENT = regex.compile(r"\p{Ll}{2,}[^su\P{Ll}]s")
_CJK_VERB = regex.compile(
    r"(?<=\S)(?:[由是為为在有被了於于让讓把使將将会會能叫用]|[长長高宽寬深重达達](?=[约約达達]?\d)|[建造出产產]成)"
)
_DOTS = regex.compile(r"(?<=\d)[.,](?=\d)|(?<=\b\p{Lu})\.")  # of numbers and initials
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")
_HAN = regex.compile(r"\p{Han}")
_MARK = regex.compile(r"[?？]")
_LAST_MARK = regex.compile(r"[?？](?=[^?？]*$)")
_CHOICE = regex.compile(r"\b(?:or|hay|hoặc|between|versus|vs)\b|还是|還是|或", regex.IGNORECASE)
_HOW_MANY = regex.compile(r"\b(?:how many|bao nhiêu)\s+(\p{Latin}+)", regex.IGNORECASE)
_NUMBER_ALONE = regex.compile(r"\s*\d[\d.,]*\s*")
# Words that are no value to look for.
_EMPTY = ENGLISH | frozenset("yes true false có không đúng sai phải vâng là 是 不 对 對 否 的".split())


def self_contained(claim: Claim, question: str) -> Claim:
    """Put the question in front of a claim that is a bare value; return any other claim as it is.

    In English, Vietnamese or Chinese; not where the claim is not relevant or the question has no word.

    >>> self_contained(Claim("1866", ((0, 4),)), "When was the cable landed?").text
    'When was the cable landed? 1866'
    >>> self_contained(Claim("The cable was landed in 1866."), "When was the cable landed?").text
    'The cable was landed in 1866.'
    """
    if not claim.relevant or not has_words(question) or bare_value(claim.text):
        return claim
    if not is_bare(claim.text, question):
        return claim
    return replace(claim, text=f"{_as_question(question)} {claim.text}")


@lru_cache(maxsize=_CACHE)
def bare_value(text: str) -> tuple[str, str] | None:
    """Split a claim that `self_contained` made into question and value; None for any other text.

    >>> bare_value("When was the cable landed? 1866")
    ('When was the cable landed?', '1866')
    """
    mark = _LAST_MARK.search(text)
    if mark is None:
        return None
    question, value = text[: mark.end()].strip(), text[mark.end() :].strip()
    return (question, value) if has_words(question) and is_bare(value, question) else None


@lru_cache(maxsize=_CACHE)
def is_bare(text: str, question: str = "") -> bool:
    """Tell whether a text is a name, number or phrase rather than a sentence; in doubt it is a sentence.

    >>> [is_bare(text) for text in ("18 days", "The Suez Canal opened first.", "木活字", "năm 1994")]
    [True, False, True, True]
    """
    text = _DOTS.sub("", text.strip())
    found = words(text)
    if not 0 < len(found) <= _MOST_IDEOGRAPHS or len(sentence_spans(text)) > 1:
        return False
    # A question mark would be misread as the end of the question put in front.
    if text[-1] in ":：" or _MARK.search(text):
        return False
    stopped = text[-1] in ".。"
    if _HAN.search(text):
        most = _MOST_STOPPED if stopped else _MOST_IDEOGRAPHS
        return len(found) <= most and not _CJK_VERB.search(text)
    content = len({word for word in found if word not in ENGLISH} - set(words(question)))
    return (
        len(found) <= (_MOST_STOPPED if stopped else _MOST_WORDS)
        and content <= (_MOST_SYLLABLES if is_vietnamese(text) else _MOST_CONTENT)
        and not _has_verb(text)
    )


def value_words(value: str, question: str) -> tuple[str, ...]:
    """Return the words of a value that the question has not said; none for "yes" or an echo of the question.

    All words of weight where the question has them all and gives a choice ("the Suez or the Panama Canal?").
    """
    content = tuple(word for word in words(value) if word not in _EMPTY)
    asked = words(question)
    new = tuple(word for word in content if word not in asked)
    return new or (content if _CHOICE.search(question) else ())


def counted(claim: str) -> str:
    """Return what a claim counts: of "How many hours does it run? 2" the words "2 hours"; else the claim."""
    parts = bare_value(claim)
    asked = parts and _HOW_MANY.search(parts[0])
    if not parts or not asked or not _NUMBER_ALONE.fullmatch(parts[1]):
        return claim
    return f"{parts[1].strip(' .。')} {asked[1]}"


def _as_question(question: str) -> str:
    question = question.strip()
    if question[-1] in "?？":
        return question
    return question.rstrip(" .:!。：！") + ("？" if _HAN.search(question) else "?")


def _has_verb(text: str) -> bool:
    found = _WORD.findall(text)
    # "He studied law." A pronoun is a subject or an object, and either has a verb.
    subject = any(word.casefold() in _PRONOUNS and not word.isupper() for word in found) and len(found) > 1
    return subject or any(_is_verb(found, i, text[-1] == ".") for i in range(1, len(found)))


def _is_verb(found: list[str], i: int, stopped: bool) -> bool:
    """Tell whether a word looks like a verb with a subject before it, from its ending and its neighbours."""
    word, before, behind = found[i], found[i - 1], found[i + 1 :]
    if before.casefold() in ENGLISH - _VERBS - _ADVERBS:
        return False
    if word in _VERBS:
        return True
    named = before[0].isupper()
    # "landed in", "opened first"; an adjective has its noun behind it ("pulverised coal").
    free = not behind or behind[0].casefold() in ENGLISH | _ADVERBS
    if _PAST.fullmatch(word):
        return free or named
    plural = counts(before.casefold()) or not behind  # "18 days in May", "coffee beans"
    return bool(_PRESENT.fullmatch(word)) and not plural and (free or (named and stopped))
