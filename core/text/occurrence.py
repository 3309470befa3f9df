"""Where the words of an answer come from: the passages that say them, and the part of a passage to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple
from unicodedata import east_asian_width

from core.text.display import count
from core.text.reading import Token, read, stems

_LONGEST = 400  # words of an answer that are looked up
_TOLD = 2  # phrases of an answer that a sentence names
_LISTED = 4  # passages that it lists
_LONG = 4  # words in a row that tell something of a reference that no passage says whole
_SHOWN = 60  # characters of a phrase in it
_WEIGHTS = {"question": 1}  # of a marked word; of an answer's or a reference's: 3


class Phrase(NamedTuple):
    """Words of an answer in a row, and the passages that say them."""

    text: str
    n_words: int
    places: tuple[int, ...]  # of the passages, from 0; none: no passage says it


def phrases(text: str, passages: Sequence[str], asked: str = "") -> list[Phrase]:
    """Cut the first 400 words of a text into the longest phrases that passages say word for word.

    Compared are stems, and numbers by value. No phrase begins or ends with a stop word or a word of
    ``asked``, the question, unless there are no others. Words in a row that no passage says are one phrase
    without a place.

    >>> passages = ["Mary Moss spoke in 1994.", "In 1995 it opened."]
    >>> [(one.text, one.places) for one in phrases("Opened in 1995 by Mary Moss", passages, "What opened?")]
    [('1995', (1,)), ('Mary Moss', (0,))]
    """
    tokens = read(text)[:_LONGEST]
    wanted = telling(text, asked)
    said = _said(passages)
    found: list[tuple[int, int, tuple[int, ...]]] = []
    at = 0
    while at < len(tokens):
        if tokens[at].stem not in wanted:
            at += 1
            continue
        end, places = at + 1, _places(tokens[at : at + 1], said)
        last = end
        while places and last < len(tokens) and (longer := _places(tokens[at : last + 1], said)):
            last += 1
            if tokens[last - 1].stem in wanted:
                end, places = last, longer
        if not places and found and not found[-1][2] and found[-1][1] == at:
            found[-1] = (found[-1][0], end, ())
        else:
            found.append((at, end, places))
        at = end
    return [
        Phrase(text[tokens[start].start : tokens[end - 1].end], end - start, places)
        for start, end, places in found
    ]


def telling(text: str, asked: str = "") -> frozenset[str]:
    """Return the stems of the words that are a text's own: no stop words, and none of the question's."""
    tokens = read(text)[:_LONGEST]
    content = frozenset(one.stem for one in tokens if one.content)
    return content - set(stems(asked)) or content or frozenset(one.stem for one in tokens)


def _said(passages: Sequence[str]) -> list[str]:
    return [f" {' '.join(stems(passage))} " for passage in passages]


def _places(tokens: Sequence[Token], said: Sequence[str]) -> tuple[int, ...]:
    phrase = f" {' '.join(one.stem for one in tokens)} "
    return tuple(place for place, text in enumerate(said) if phrase in text)


def origins(answer: str, references: Sequence[str], passages: Mapping[str, str], asked: str = "") -> str:
    """Say in which passages, by what they are called, an answer's and a reference's words occur; "" for none.

    >>> origins("in 1995", ["1893"], {"2": "It opened in 1893.", "3": "A fire in 1995."}, "When did it open?")
    '“1995” occurs in passage 3; the reference “1893” in passage 2.'
    """
    names, texts = list(passages), list(passages.values())
    if not texts:
        return ""

    def where(places: Sequence[int]) -> str:
        if len(places) > _LISTED:
            return f"in {len(places):,} of {count(len(names), 'passage')}"
        *first, last = [names[place] for place in places] or [""]
        if first:
            return f"in passages {', '.join(first)} and {last}"
        return f"in passage {last}" if last else "in no passage"

    found = {stems(one.text): one for one in phrases(answer, texts, asked)}.values()
    best = sorted(found, key=lambda one: (not _is_named(one), -one.n_words))
    told = [one for i, one in enumerate(best[:_TOLD]) if not i or _is_named(one) or one.n_words > 1]
    parts = [("", one) for one in told]
    own = set(stems(answer))
    if references and not any(set(stems(text)) <= own for text in references):
        parts.append(("the reference ", _best(references, texts, asked)))
    said = "; ".join(
        f"{what}“{_cut(one.text)}” {'' if i else 'occurs '}{where(one.places)}"
        for i, (what, one) in enumerate(parts)
    )
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _is_named(phrase: Phrase) -> bool:
    """Tell whether a phrase has a number or a capital, as what a question asks for mostly has."""
    return any(letter.isupper() or letter.isdigit() for letter in phrase.text)


def _best(references: Sequence[str], texts: Sequence[str], asked: str) -> Phrase:
    """Return the first reference that a passage says whole; else, of a long one, what is said of it."""
    said = _said(texts)
    for text in references:
        if places := _places(read(text), said):
            return Phrase(text, 0, places)
    parts = phrases(references[0], texts, asked)
    longest = max(parts, key=lambda one: (bool(one.places), one.n_words))
    return longest if longest.places and longest.n_words >= _LONG else Phrase(references[0], 0, ())


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1].rstrip() + "…"


def marked(text: str, wanted: Mapping[str, Collection[str]]) -> list[tuple[str, str]]:
    """Cut a text into pieces ``(kind, piece)``: words with the stems of the first such kind, or between.

    >>> marked("Opened in 1893.", {"answer": telling("1995"), "reference": telling("1893")})
    [('', 'Opened in '), ('reference', '1893'), ('', '.')]
    """
    pieces, last = [], 0
    for token, kind in _kinds(text, wanted):
        pieces += [("", text[last : token.start]), (kind, text[token.start : token.end])]
        last = token.end
    pieces.append(("", text[last:]))
    return _joined(pieces)


def snippet(text: str, wanted: Mapping[str, Collection[str]], length: int = 150) -> list[tuple[str, str]]:
    """Return the part of a text, `marked`, about ``length`` letters wide, with most of the words that matter.

    Each word counts once; those of the question less, since most passages have them.

    >>> snippet("a " * 200 + "opened in 1893 by her", {"reference": {"#1893"}}, 20)
    [('', '… in '), ('reference', '1893'), ('', ' by her')]
    """
    wide = sum(east_asian_width(letter) in "WF" for letter in text[:length]) / max(len(text[:length]), 1)
    length -= round(wide * length / 2)
    if len(text) <= length:
        return marked(text, wanted)
    found = _kinds(text, wanted)
    best, begin, end = 0, 0, 0
    inside: Counter[str] = Counter()
    value = left = 0
    for right, (token, kind) in enumerate(found):
        inside[token.stem] += 1
        value += _WEIGHTS.get(kind, 3) * (inside[token.stem] == 1)
        while token.end - found[left][0].start > length and left < right:
            gone, of = found[left]
            inside[gone.stem] -= 1
            value -= _WEIGHTS.get(of, 3) * (inside[gone.stem] == 0)
            left += 1
        if value > best:
            best, begin, end = value, found[left][0].start, token.end
    spare = max(length - (end - begin), 0) // 2
    begin, end = max(min(begin - spare, len(text) - length), 0), min(max(end + spare, length), len(text))
    # No word is cut where there is a blank to cut at.
    blank = text.find(" ", begin, begin + spare) + 1 if begin else 0
    begin = blank or begin
    last = text.rfind(" ", max(end - spare, begin + 1), end) if end < len(text) else -1
    end = last if last > begin else end
    shown = marked(" ".join(text[begin:end].split()), wanted)
    return _joined([("", "… " * (begin > 0)), *shown, ("", " …" * (end < len(text)))])


def _joined(pieces: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    runs = groupby((piece for piece in pieces if piece[1]), key=lambda piece: piece[0])
    return [(kind, "".join(text for _, text in run)) for kind, run in runs]


def _kinds(text: str, wanted: Mapping[str, Collection[str]]) -> list[tuple[Token, str]]:
    found = (
        (token, next((kind for kind, own in wanted.items() if token.stem in own), "")) for token in read(text)
    )
    return [(token, kind) for token, kind in found if kind]
