"""What a comparison of words misses: numbers, dates, names, negation, opposites, the value asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise, product

import regex

from core.claims.self_contained import bare_value, counted, is_bare, value_words
from core.text.folding import folded
from core.text.quantities import Date, Quantity, counts, dates, numerals, quantities, same_values
from core.text.reading import content_stems, denied, read, stem, stems, unaccented
from core.text.sentences import Span, sentence_spans
from core.text.words import lines_of, words

_CACHE = 16_384
_MIN_IDEOGRAPHS = 4
_FEW = 0.2  # of the pairs; other subjects share fewer, questions share more with their answers
_NEW = regex.compile(r"\n\s*\n")
_HAN = regex.compile(r"\p{Han}")
_HAN_RUN = regex.compile(r"\p{Han}+")


def check_value(claim: str, sentence: str, passage: str) -> float:
    """Look for the value of a bare claim ("When was it landed? 1866") in a sentence and those next to it.

    NaN for any other claim. 1 where its words, numbers (written in any way) and ideographs are all there,
    accents and endings left out; 0 where something is missing, or there is nothing to look for ("yes").
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
    """Return 0 where a passage has next to none of a Chinese claim's pairs of ideographs, else NaN."""
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


AGREES, CONTRADICTS, SILENT = 1.0, 0.0, math.nan
_EXACT, _MEASURED, _ROUGH = 1e-9, 0.02, 0.05  # how far numbers may lie apart and still be the same
_ALIKE = 0.5  # share of a claim's other words that a sentence must have to be about the same thing
_SAME = 0.7  # the same for a negation, which many sentences have somewhere
_VERBATIM = 4  # words in a row that are a quotation; twice as many ideographs

_IDEOGRAPH = regex.compile(r"\p{Han}")
_NAME = r"\p{Lu}[\p{L}\p{M}\p{N}]*(?:['’]\p{L}+)?"
_NAMES = regex.compile(rf"{_NAME}(?:[\s-](?:(?:of|de|da|van|von|the|al)\s)?{_NAME})*")
_NOT_NAMES = frozenset(
    "i monday tuesday wednesday thursday friday saturday sunday january february march april may june july "
    "august september october november december the a an".split()
)


def check_numbers(claim: str, sentence: str, passage: str) -> float:
    """Compare the numbers of a claim with those of a passage, in any unit of a dimension (12 km, 7.5 miles).

    One contradicts where the passage has it nowhere and a sentence near counts the same thing differently.
    """
    there = (*quantities(passage), *_years_as_numbers(passage))
    near = quantities(around(sentence, passage))
    return _together(_compare_number(number, near, there) for number in quantities(counted(claim)))


def check_dates(claim: str, sentence: str, passage: str) -> float:
    """Compare the dates and years of a claim with those of a passage.

    They contradict where none could be the claim's, and one in a sentence near says as much and differs.
    """
    near, there = dates(around(sentence, passage)), dates(passage)
    bare = {value for number in quantities(passage) if not number.loose for value in number.values}
    return _together(_compare_date(date, near, there, bare) for date in dates(claim))


def check_names(claim: str, sentence: str, passage: str) -> float:
    """Look for the names of a claim: capitalised words, not at the start of a sentence; none in CJK text.

    A name agrees where the passage has its last word. It contradicts where the passage has no word of it,
    while sentences near have most other words of the claim and another name.
    """
    if bare_value(claim):
        return SILENT
    near, there, ours = around(sentence, passage), set(words(passage)), set(words(claim))
    found = {name: words(name) for name in names(claim)}
    gone = frozenset(stem(word) for parts in found.values() for word in parts if word not in there)
    others = any(not ours & set(words(name)) for name in names(near))
    rival = others and _share(claim, near, leave_out=gone) >= _ALIKE

    def compare(parts: list[str]) -> float:
        if parts[-1] in there:
            return AGREES
        return CONTRADICTS if rival and not there & set(parts) else SILENT

    return _together(map(compare, found.values()))


def check_negation(claim: str, sentence: str, passage: str) -> float:
    """Tell whether claim and sentence both deny the same thing, or only one does.

    Compared only where the sentence has most of the claim's words, and the denied words are in both.
    """
    ours, theirs = denied(claim), denied(sentence)
    if not (ours or theirs) or _share(claim, sentence) < _SAME:
        return SILENT
    if ours and theirs:
        return AGREES if ours & theirs else SILENT
    other = set(stems(sentence if ours else claim))
    return CONTRADICTS if (ours or theirs) & other else SILENT


def check_opposites(claim: str, sentence: str, passage: str) -> float:
    """Tell whether the sentence says the opposite of a word of the claim, and not that word too.

    Only where it has most of the claim's other words, in the same order ("A is higher than B" and "B is lower
    than A" agree). A negation on one side makes it silent: "not higher" is not "lower".
    """
    if bool(denied(claim)) != bool(denied(sentence)):
        return SILENT
    ours, theirs = _with_bigrams(claim), _with_bigrams(sentence)
    found = []
    opposites = _opposites()
    for word in ours & opposites.keys():
        if word in theirs:
            found.append(AGREES)
        elif opposites[word] & theirs and not opposites[word] & ours:
            alike = _share(claim, sentence, leave_out=frozenset({word, *word}))
            found.append(CONTRADICTS if alike >= _ALIKE and _same_order(claim, sentence) else SILENT)
    return _together(found)


def check_verbatim(claim: str, sentence: str, passage: str) -> float:
    """Agree where the passage has all words of the claim in a row; a few words in a row mean nothing."""
    n = len(words(claim))
    if n < _VERBATIM or (n < 2 * _VERBATIM and len(_IDEOGRAPH.findall(claim)) > n / 2):
        return SILENT
    return AGREES if _spaced(claim) in _spaced(passage) else SILENT


Check = Callable[[str, str, str], float]
CHECKS: Mapping[str, Check] = {
    "numbers": check_numbers,
    "dates": check_dates,
    "names": check_names,
    "negation": check_negation,
    "opposites": check_opposites,
    "value": check_value,
    "mention": check_mention,
    "ideographs": check_ideographs,
    "verbatim": check_verbatim,
}


@lru_cache(maxsize=_CACHE)
def names(text: str) -> tuple[str, ...]:
    """Return the names of a text: runs of capitalised words that do not merely begin a sentence."""
    found = []
    for match in _NAMES.finditer(text):
        name = regex.sub(r"['’]s$", "", match.group())
        before = text[: match.start()].rstrip(" \"'“‘([")
        if not before or before[-1] in ".!?:;\n•*-":
            # The first word owes its capital to its place; an acronym or a second capital does not.
            first, _, rest = name.partition(" ")
            acronym = len(first) > 1 and first.isupper()
            name = name if acronym else rest
            name = name if name[:1].isupper() else ""
        if name and words(name) and not set(words(name)) <= _NOT_NAMES:
            found.append(name)
    return tuple(found)


@lru_cache(maxsize=_CACHE)
def _spaced(text: str) -> str:
    return f" {' '.join(words(text))} "


@lru_cache(maxsize=1)
def _opposites() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in lines_of("opposites"):
        a, b = map(stem, pair.split("/"))
        table.setdefault(a, set()).add(b)
        table.setdefault(b, set()).add(a)
    return {word: frozenset(found) for word, found in table.items()}


@lru_cache(maxsize=_CACHE)
def _with_bigrams(text: str) -> frozenset[str]:
    # A Chinese word of two ideographs is two words in a row.
    found = stems(text)
    pairs = {a + b for a, b in pairwise(found) if not (a + b).isascii()}
    return frozenset({*found, *pairs})


def _share(claim: str, sentence: str, leave_out: frozenset[str] = frozenset()) -> float:
    """Return the share of the claim's content words that the sentence has."""
    ours = set(content_stems(claim)) - leave_out
    return len(ours & set(stems(sentence))) / len(ours) if ours else 0.0


def _same_order(claim: str, sentence: str) -> bool:
    ours, theirs = content_stems(claim), stems(sentence)
    places = [theirs.index(word) for word in dict.fromkeys(ours) if word in theirs]
    return places == sorted(places)


def _together(results: Iterable[float]) -> float:
    """One contradiction is enough; else one agreement is."""
    found = [result for result in results if not math.isnan(result)]
    return min(found) if found else SILENT


def _years_as_numbers(text: str) -> list[Quantity]:
    return [Quantity((float(date.year),), "", False) for date in dates(text) if date.year is not None]


def _compare_number(number: Quantity, here: Iterable[Quantity], around: Iterable[Quantity]) -> float:
    if any(_agree(number, other) for other in around):
        return AGREES
    if number.loose or not number.kind:
        return SILENT
    rivals = [other for other in here if other.kind == number.kind and not other.loose]
    return CONTRADICTS if rivals else SILENT


def _agree(a: Quantity, b: Quantity) -> bool:
    # What a bare number counts is not known, and two nouns may mean the same ("people", "inhabitants").
    if a.kind != b.kind and (a.measured or b.measured):
        return False
    precise = not a.measured or a.kind == "percent"
    most = _ROUGH if a.loose or b.loose else _EXACT if precise else _MEASURED
    return same_values(a, b, most)


def _compare_date(date: Date, here: Iterable[Date], around: Iterable[Date], bare: set[float]) -> float:
    could_be = [other for other in around if _compatible(date, other)]
    is_bare_year = date == Date(date.year) and date.year is not None and float(date.year) in bare
    certain = [other for other in could_be if other == date or not (other.swapped or date.swapped)]
    if is_bare_year or any(_says(other) >= _says(date) for other in certain):
        return AGREES
    rivals = [other for other in here if _says(other) & _says(date)]
    return CONTRADICTS if rivals and not could_be else SILENT


def _compatible(a: Date, b: Date) -> bool:
    """Tell whether two dates may be the same day, month or year."""
    for one, other in product(a.readings(), b.readings()):
        both = [(x, y) for x, y in zip(one[:3], other[:3], strict=True) if x is not None and y is not None]
        if both and all(x == y for x, y in both):
            return True
    return False


def _says(date: Date) -> frozenset[str]:
    return frozenset(name for name in ("year", "month", "day") if getattr(date, name) is not None)
