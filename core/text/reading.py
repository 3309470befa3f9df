"""What a text says word by word: stems, numbers by value, words of content, and what is denied.

The one reading of English, Vietnamese and Chinese that claims, checks and diagnostics share, without a model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import regex

from core.text.folding import folded, places
from core.text.numbers import WrittenNumber, numbers
from core.text.words import STOP_WORDS

_CACHE = 16_384

_WORD = regex.compile(r"n't\b|\p{Han}|(?:(?!\p{Han}|n't\b)[\p{L}\p{N}\p{M}])+", regex.IGNORECASE)
# The same for texts of ASCII, for which the library's own expressions take half the time.
_ASCII_WORD = re.compile(r"n't\b|(?:(?!n't\b)[a-z0-9])+", re.IGNORECASE)
_ASCII_PLAIN = re.compile("[A-Za-z0-9]+")
_FULL = {"ca": "can", "wo": "will", "sha": "shall"}  # of "can't", "won't", "shan't"
_CLAUSE = regex.compile(r"[,;:.!?，；：、。！？()（）]|\s[–—-]\s")
# With what makes another word of it: "not only", "không khí" (air), 非常 (very), 未来 (future).
_CUES = regex.compile(
    r"\b(?:not(?!\s+(?:only|just|merely|least)\b)|never|cannot|neither|nor|no(?!-|\s+(?:doubt|matter|\d))|none|nobody"
    r"|nothing|nowhere|without|lack(?:s|ed|ing)?|fail(?:s|ed|ing)?\s+to|unable)\b|n't\b"
    r"|(?<!\bhàng\s)\bkhông(?!\s+(?:chỉ|khí|gian|quân|trung|lực|những|trăm)\b|\s*[?？])(?:\s+phải\b)?"
    r"|\b(?:chưa|chẳng|chả|đừng|khong(?!\s+(?:khi|gian|quan|chi)\b))\b"
    r"|(?<![淹沉埋出])没有?|未(?![来必])|无(?![论线限数锡])|不(?![仅但只同断少过管论久])|(?<![南北东西])并?非(?![常洲])",
    regex.IGNORECASE,
)
# A text of ASCII that denies something holds one of these.
_ASCII_CUE = re.compile("no|ne[iv]|n't|without|lack|fail|unable|khong", re.IGNORECASE)
_BETWEEN_DOUBLE = regex.compile(r"\s*[是得能]?\s*")
_BEHIND, _AHEAD = 3, 2  # words of content that a negation is about


class Token(NamedTuple):
    """A word, ideograph or number at ``text[start:end]``."""

    word: str  # folded, in small letters
    stem: str  # how it is compared: without its ending; "#15" for a number, however written
    start: int
    end: int
    clause: int  # counted from 0: tokens between the same punctuation marks
    is_number: bool
    negates: bool  # it is a negation, or part of one
    content: bool  # it says something of the subject: neither a stop word nor a negation


@lru_cache(maxsize=1024)
def read(text: str) -> tuple[Token, ...]:
    """Read a text token by token; a number in several words is one token.

    >>> [(t.stem, t.negates) for t in read("Fifteen arches didn't fall")]
    [('#15', False), ('arch', False), ('did', False), ('not', True), ('fall', False)]
    """
    plain, cues = folded(text), negations(text)
    figures = _figures(plain)
    if _is_plain(plain, cues, figures):
        return _read_plain(plain)
    origin = places(text)
    found = [(n.start, n.end, f"#{n.values[0]:.15g}", True) for n in figures]
    taken = {i for start, end, _, _ in found for i in range(start, end)}
    words = _words(plain)
    found += [(*m.span(), m[0].casefold(), False) for m in words if m.start() not in taken]
    tokens: list[Token] = []
    last, clause, cue = 0, 0, 0
    for start, end, word, is_number in sorted(found):
        # Most words have one blank between them.
        clause += bool(tokens and plain[last:start] != " " and _CLAUSE.search(plain, last, start))
        while cue < len(cues) and cues[cue][1] <= start:
            cue += 1
        negates = cue < len(cues) and cues[cue][0] < end
        if word == "n't" and tokens:
            word = "not"
            tokens[-1] = _as(tokens[-1], _FULL.get(tokens[-1].word, tokens[-1].word))
        content = not negates and word not in STOP_WORDS
        key = word if is_number else stem(word)
        shown = plain[start:end].casefold() if is_number else word
        tokens.append(Token(shown, key, origin[start], origin[end], clause, is_number, negates, content))
        last = end
    return tuple(tokens)


def _figures(plain: str) -> list[WrittenNumber]:
    # A lone "one" is mostly a pronoun.
    return [n for n in numbers(plain) if n.values != (1.0,) or plain[n.start].isdecimal()]


def _is_plain(plain: str, cues: Sequence[Any], figures: Sequence[Any]) -> bool:
    """Whether a folded text is of ASCII, and neither a number nor a negation was found in it."""
    return not figures and not cues and plain.isascii() and "n't" not in plain.lower()


def _read_plain(plain: str) -> tuple[Token, ...]:
    """Read a text of plain ASCII in which no number and no negation was found, as most answers are."""
    tokens: list[Token] = []
    last = clause = 0
    for match in _ASCII_PLAIN.finditer(plain):
        start, end = match.span()
        clause += bool(tokens and plain[last:start] != " " and _CLAUSE.search(plain, last, start))
        word = match[0].lower()
        tokens.append(Token(word, stem(word), start, end, clause, False, False, word not in STOP_WORDS))
        last = end
    return tuple(tokens)


def _words(plain: str) -> Iterable[Any]:
    if not plain.isascii():
        return _WORD.finditer(plain)
    return (_ASCII_WORD if "n't" in plain.lower() else _ASCII_PLAIN).finditer(plain)


@lru_cache(maxsize=262_144)
def stem(word: str) -> str:
    """Return a case-folded word without its English ending (Snowball); words of other languages as they are.

    >>> [stem(word) for word in ("carried", "carries", "carry", "cities", "không")]
    ['carri', 'carri', 'carri', 'citi', 'không']
    """
    if word == "cannot":
        return "not"
    return str(_stemmer().stemWord(word)) if word.isascii() else word


@lru_cache(maxsize=_CACHE)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text in order, numbers by their value.

    >>> stems("He carried fifteen boxes") == stems("he carries 15 box")
    True
    """
    return tuple(token.stem for token in read(text))


@lru_cache(maxsize=_CACHE)
def content_stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words of content in order; of all words where none is one."""
    found = read(text)
    return tuple(token.stem for token in found if token.content) or tuple(token.stem for token in found)


class Stems(NamedTuple):
    """The stems of a text, each once: of words of content, of all words, of numbers; whether it denies."""

    content: frozenset[str]
    all: frozenset[str]
    numbers: frozenset[str]
    denies: bool


@lru_cache(maxsize=_CACHE)
def known_stems(text: str) -> Stems:
    """Return what `read` finds in a text, without the places of the words.

    >>> found = known_stems("Fifteen arches did not fall")
    >>> sorted(found.content), sorted(found.numbers), found.denies
    (['#15', 'arch', 'fall'], ['#15'], True)
    """
    plain = folded(text)
    if _is_plain(plain, negations(text), _figures(plain)):  # as most answers are
        words = {*_ASCII_PLAIN.findall(plain.lower())}
        stems = frozenset(map(stem, words - STOP_WORDS))
        return Stems(stems, stems.union(map(stem, words & STOP_WORDS)), frozenset(), False)
    found = read(text)
    return Stems(
        frozenset(token.stem for token in found if token.content),
        frozenset(token.stem for token in found),
        frozenset(token.stem for token in found if token.is_number),
        any(token.negates for token in found),
    )


def content_words(text: str) -> tuple[str, ...]:
    """Return the words of content of a text, neither stop words nor negations; all where there are none.

    >>> content_words("The mill was not built by the river.")
    ('mill', 'built', 'river')
    """
    found = read(text)
    return tuple(token.word for token in found if token.content) or tuple(token.word for token in found)


def negations(text: str) -> tuple[tuple[int, int], ...]:
    """Return where the folded form of a text denies something; two negations in a row cancel each other.

    >>> [len(negations(text)) for text in ("It isn't old.", "It is not only old.", "not without pain")]
    [1, 0, 0]
    """
    plain = folded(text)
    if plain.isascii() and not _ASCII_CUE.search(plain):
        return ()
    found: list[tuple[int, int]] = []
    for match in _CUES.finditer(plain):
        if found and _BETWEEN_DOUBLE.fullmatch(plain, found[-1][1], match.start()):
            found.pop()
        else:
            found.append(match.span())
    return tuple(found)


@lru_cache(maxsize=_CACHE)
def denied(text: str) -> frozenset[str]:
    """Return the stems of content behind each negation in its clause; of those ahead where there are none.

    >>> sorted(denied("The bridge wasn't destroyed by the flood, but it is old."))
    ['destroy', 'flood']
    """
    found = read(text)
    about: set[str] = set()
    for place, token in enumerate(found):
        if token.negates:
            behind = [t.stem for t in found[place + 1 :] if t.content and t.clause == token.clause]
            ahead = [t.stem for t in found[:place] if t.content and t.clause == token.clause]
            about.update(behind[:_BEHIND] or ahead[-_AHEAD:])
    return frozenset(about)


def unaccented(word: str) -> str:
    """Return the stem of a word without accents, as answers are often typed.

    >>> unaccented("nội"), unaccented("gjøa")
    ('noi', 'gjoa')
    """
    letters = unicodedata.normalize("NFD", stem(word)).replace("đ", "d").replace("ø", "o")
    return "".join(c for c in letters if not unicodedata.combining(c))


def _as(token: Token, word: str) -> Token:
    return token._replace(word=word, stem=stem(word), content=token.content and word not in STOP_WORDS)


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    from Stemmer import Stemmer

    return Stemmer("english")
