"""Whether a passage has a value near the sentence that is like its question, and ideographs of a claim."""

from __future__ import annotations

from functools import lru_cache

import regex

from core.claims.language.self_contained import bare_value, is_bare, value_words
from core.text.folding import folded
from core.text.quantities import counts, dates, numerals, quantities
from core.text.reading import read, unaccented
from core.text.sentences import Span, sentence_spans
from core.text.words import words

_CACHE = 16_384
_MIN_IDEOGRAPHS = 4
_FEW = 0.2  # of the pairs; other subjects share fewer, questions share more with their answers
_NEW = regex.compile(r"\n\s*\n")
_HAN = regex.compile(r"\p{Han}")
_HAN_RUN = regex.compile(r"\p{Han}+")


def check_value(claim: str, sentence: str, passage: str) -> float:
    """Look for the value of a bare claim ("When was it landed? 1866") in a sentence and those next to it.

    NaN for any other claim. 1 where the value's words, numbers and ideographs are all there; numbers may be
    written differently, accents and endings left out. 0 where something is missing, or there is nothing to
    look for ("yes", an echo of the question): likeness to the question says nothing about its answer.
    """
    parts = bare_value(claim)
    if parts is None:
        return float("nan")
    question, value = parts
    return _has(value, value_words(value, question), around(sentence, passage))


def check_mention(claim: str, sentence: str, passage: str) -> float:
    """Look for a bare value without its question anywhere in a passage; NaN for other claims."""
    wanted = value_words(claim, "") if is_bare(claim) else ()
    return _has(claim, wanted, passage) if wanted else float("nan")


def check_ideographs(claim: str, sentence: str, passage: str) -> float:
    """Look for the ideographs of a Chinese claim, two by two: to the model any Chinese texts are alike.

    0 where a passage has next to none of the claim's pairs, NaN otherwise.
    """
    n = len(_HAN.findall(claim))
    pairs, there = set(_ideographs(claim)), folded(passage)
    if n < _MIN_IDEOGRAPHS or 2 * n < len(words(claim)) or not pairs:
        return float("nan")
    return 0.0 if sum(pair in there for pair in pairs) < _FEW * len(pairs) else float("nan")


@lru_cache(maxsize=_CACHE)
def around(sentence: str, passage: str) -> str:
    """Return a sentence of a passage with the one before and the one behind it in the same paragraph."""
    spans = _spans(passage)
    place = next((i for i, (start, end) in enumerate(spans) if passage[start:end] == sentence), None)
    if place is None:
        return sentence
    # Across an empty line begins another subject, and with two passages together the other passage.
    first = place - (place > 0 and not _NEW.search(passage[spans[place - 1][1] : spans[place][0]]))
    more = place + 1 < len(spans) and not _NEW.search(passage[spans[place][1] : spans[place + 1][0]])
    return passage[spans[first][0] : spans[place + more][1]]


def _has(value: str, wanted: tuple[str, ...], text: str) -> float:
    return float(bool(wanted) and _has_numbers(value, text) and _has_words(value, wanted, text))


def _has_numbers(value: str, text: str) -> bool:
    there = frozenset[float]().union(*numerals(text))
    return all(one & there for one in numerals(value)) or _measures_alike(value, text)


def _has_words(value: str, wanted: tuple[str, ...], text: str) -> bool:
    there = frozenset(map(unaccented, words(text)))
    alike = _measures_alike(value, text)
    numbers = {word for token in read(value) if token.is_number for word in words(token.word)}
    missing = [
        word
        for word in wanted
        if word not in numbers and unaccented(word) not in there and not (alike and counts(word))
    ]
    return not missing and all(pair in folded(text) for pair in _ideographs(value))


def _ideographs(text: str) -> list[str]:
    """Return the pairs of ideographs in a text as it is folded, lone ones too, without its numbers."""
    for token in read(text):
        if token.is_number:
            text = text[: token.start] + " " * (token.end - token.start) + text[token.end :]
    runs = _HAN_RUN.findall(folded(text))
    return [run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))]


def _measures_alike(value: str, text: str) -> bool:
    """Tell whether a text has the measured numbers and dates of a value, in other units or another order."""
    ours = [q for q in quantities(value) if q.kind]
    theirs = {(q.kind, round(v, 6)) for q in quantities(text) for v in q.values}
    found = [any((q.kind, round(v, 6)) in theirs for v in q.values) for q in ours]
    found += [date in dates(text) for date in dates(value)]
    return bool(found) and all(found)


@lru_cache(maxsize=_CACHE)
def _spans(passage: str) -> list[Span]:
    return sentence_spans(passage)
