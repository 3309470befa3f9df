"""Whether an answer is correct, where reference answers are known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pandas as pd
import regex

from core.text.abstention import answer_status
from core.text.folding import folded
from core.text.numbers import any_of
from core.text.quantities import MONTHS, Date, Quantity, located_dates, located_quantities
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

    "" where it names both and chooses none; None where the question offers none or the answer names none.

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


_MONTH = regex.compile(rf"\b(?:{any_of(MONTHS)})\b")
_MAY_HOLD_A_DAY = regex.compile(r"\d|\p{Han}")
_OR = {"or", "hay", "hoặc", "或"}
_BEFORE = {"a", "an", "the"}
_REWRITTEN = {"not", "can", "will", "shall"}  # read in "n't", "can't", "won't", "shan't"


def is_correct(answer: str | None, references: Sequence[str] | None, question: str = "") -> bool | None:
    """Tell whether an answer says one of the reference answers: word for word, numbers and dates by value.

    None without a reference, and for an empty answer or an abstention, which are neither correct nor
    incorrect. Where the question offers two options, an answer that names both is judged by what it says of
    them.

    A date with a day is compared whole, so "27 July" is not said by "27 July 1858"; "5/11/2018" may be two
    days and is neither. A value that is only one of several offered ("new moon or full moon") is not said.

    >>> is_correct("It was Raymond Unwin.", ["Raymond Unwin"]), is_correct("I don't know", ["Unwin"])
    (True, None)
    >>> is_correct("It has fifteen arches.", ["15 arches"]), is_correct("27/07/1866", ["27 July 1866"])
    (True, True)
    """
    texts = [text for text in references or () if _said(text)]
    if not texts or answer is None or answer_status(answer) != "answered":
        return None
    choice = chosen(question, answer)
    right = [option for option in options(question) if _says(option, texts)]
    return (choice is None or not right or choice in right) and _says(answer, texts)


def correctness(queries: pd.DataFrame) -> pd.Series:
    """Return whether every answer of a run is correct, missing where that is not known.

    What a person or another program said (``queries["correct"]``) goes before `is_correct`.
    """
    columns = (queries[name] for name in ("answer", "reference_answers", "question"))
    found = [
        is_correct_again(answer, tuple(known or ()), question) if isinstance(answer, str) else None
        for answer, known, question in zip(*columns, strict=True)
    ]
    return queries["correct"].reset_index(drop=True).fillna(pd.Series(found, dtype="boolean"))


def labelled(queries: pd.DataFrame) -> pd.Series:
    """Return of which questions of a run a label is known: a judgement, or a reference answer."""
    return queries["correct"].notna() | queries["reference_answers"].notna()


# Several diagnostics ask it of the answers of one run, one after the other; references are then a tuple.
is_correct_again = lru_cache(maxsize=131_072)(is_correct)


def says(text: str, references: Sequence[str]) -> bool:
    """Tell whether a text holds a reference answer, word for word, numbers and dates by value.

    >>> says("It was finished in July 1893, at last.", ["1893"]), says("It was finished.", ["1893"])
    (True, False)
    """
    known = [reference for reference in references if _said(reference)]
    return bool(known) and _says(text, known)


def _says(text: str, references: Sequence[str]) -> bool:
    """Tell whether a text holds a reference, in the same words or the same amount in another unit."""
    spoken = folded(text).casefold()
    references = [known for known in references if all(word in spoken for word in _needed(known))]
    if not references:
        return False
    if _holds(_said(text), [_said(known) for known in references]):
        return True
    amounts = [_said(known, True) for known in references if _said(known, True) != _said(known)]
    return bool(amounts) and _holds(_said(text, True), amounts)


@lru_cache(maxsize=16_384)
def _needed(known: str) -> tuple[str, ...]:
    """Return plain ASCII words that stand in every text that says a reference; with amounts none are sure."""
    said = _said(known)
    if said != _said(known, True):
        return ()
    return tuple(word for word in said if word.isascii() and word.isalpha() and word not in _REWRITTEN)


def _holds(given: tuple[str, ...], targets: Sequence[tuple[str, ...]]) -> bool:
    places = [
        (start, start + len(target))
        for target in targets
        for start in range(len(given) - len(target) + 1)
        if given[start : start + len(target)] == target
    ]
    return any(
        not any(
            # Another alternative; unless that is known to be right as well.
            given[i] in _OR and not any(first >= i if i >= end else last <= i for first, last in places)
            for i in _beside(given, start, end)
        )
        for start, end in places
    )


def _beside(given: tuple[str, ...], start: int, end: int) -> list[int]:
    """Return the places of the words that stand just before and just behind a value."""
    while start and given[start - 1] in _BEFORE:
        start -= 1
    return [i for i in (start - 1, end) if 0 <= i < len(given)]


@lru_cache(maxsize=16_384)
def _said(text: str, measured: bool = False) -> tuple[str, ...]:
    """Return the words of a text, with dates, and amounts with a unit if ``measured``, as one form each."""
    # A small letter is no month elsewhere: "may", "march".
    plain = _MONTH.sub(lambda month: month[0].capitalize(), folded(text))
    dated = located_dates(plain) if _MAY_HOLD_A_DAY.search(plain) else []
    values = [(start, end, _day(date)) for start, end, date in dated if date.day and not date.swapped]
    if measured:
        values += [(start, end, _amount(q)) for start, end, q in located_quantities(plain) if q.measured]
    found: list[str] = []
    last = 0
    for start, end, value in sorted(values):
        found += [*_words(plain[last:start]), *value]
        last = end
    return (*found, *_words(plain[last:]))


def _words(text: str) -> list[str]:
    return [token.stem if token.is_number else token.word for token in read(text)]


def _day(date: Date) -> list[str]:
    # The year stays a number of its own, so that it may be all that was asked for.
    if date.year is None:
        return [f"{date.month}/{date.day}"]
    return [f"{date.month}/{date.day}/", f"#{date.year}"]


def _amount(quantity: Quantity) -> list[str]:
    return [f"{quantity.values[0]:.9g} {quantity.kind}"]
