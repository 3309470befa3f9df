"""What a sentence says, word by word: its content, its numbers and names, and what it denies.

Ideographs count in pairs: single ones recur by chance.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

from core.text.folding import folded
from core.text.quantities import located_dates, located_quantities
from core.text.reading import Token, denied, read
from core.text.sentences import sentences

_HAN = regex.compile(r"\p{Han}")

Amount = tuple[Hashable, ...]  # a kind and its value in the base unit; "date", year, month, day


class Content(NamedTuple):
    """What a sentence says: words that carry content, and which of them are numbers, names, denied.

    ``amounts``: its dates and measured numbers, whatever the notation and unit, with the words that say each.
    """

    words: frozenset[str]  # words, numbers, pairs of ideographs
    numbers: frozenset[str]
    names: frozenset[str]  # the last word of each
    atoms: frozenset[str]  # words and single ideographs
    denied: frozenset[str]  # atoms in reach of a negation
    amounts: Mapping[Amount, frozenset[str]]


@lru_cache(maxsize=4096)
def parse_sentences(text: str) -> tuple[Content, ...]:
    """Parse every sentence of a text; a text without any counts as one."""
    return tuple(map(parse, sentences(text))) or (parse(text),)


@lru_cache(maxsize=4096)
def parse_text(text: str) -> Content:
    """Parse a text as if it were one sentence."""
    parts = parse_sentences(text)
    words, numbers, names, atoms, denials = (
        frozenset[str]().union(*column) for column in zip(*(part[:5] for part in parts), strict=True)
    )
    amounts = {amount: said for part in parts for amount, said in part.amounts.items()}
    return Content(words, numbers, names, atoms, denials, amounts)


@lru_cache(maxsize=16384)
def parse(sentence: str) -> Content:
    """Parse one sentence."""
    sentence = folded(sentence)
    tokens = read(sentence)
    content = [token for token in tokens if token.content] or tokens
    pairs = [
        a.stem + b.stem for a, b in pairwise(content) if _is_han(a) and _is_han(b) and a.clause == b.clause
    ]
    paired = set("".join(pairs))
    found = [token.stem for token in content if token.stem not in paired] + pairs
    return Content(
        frozenset(found),
        frozenset(token.stem for token in content if token.is_number),
        _names(sentence, tokens),
        frozenset(token.stem for token in content),
        denied(sentence),
        dict(_amounts(sentence, content)),
    )


def _is_han(token: Token) -> bool:
    return _HAN.match(token.stem) is not None


def _names(sentence: str, tokens: Sequence[Token]) -> frozenset[str]:
    """Last word of every run of capitalised words; a capital at the start of a sentence proves nothing."""
    names, run = set(), 0
    capital = [t.content and not t.is_number and sentence[t.start].isupper() for t in tokens]
    for place, token in enumerate(tokens):
        run = run + 1 if capital[place] else 0
        ends = place + 1 == len(tokens) or not capital[place + 1]
        initial = place == 0 and len(tokens) > 2
        if run and ends and not (run == 1 and initial):
            names.add(token.stem)
    return frozenset(names)


def _amounts(sentence: str, content: Sequence[Token]) -> Iterator[tuple[Amount, frozenset[str]]]:
    said: list[tuple[int, int, Amount]] = [
        (start, end, (found.kind, f"{value:.6g}"))
        for start, end, found in located_quantities(sentence)
        if found.measured
        for value in found.values
    ]
    said += [
        (start, end, ("date", *date))
        for start, end, found in located_dates(sentence)
        for date in found.readings()
    ]
    for start, end, amount in said:
        yield amount, frozenset(token.stem for token in content if start <= token.start < end)
