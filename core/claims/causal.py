"""Leave-one-out effects on claims: what the answer still says when a passage is left out.

A lexical decision without a model, for English, Vietnamese and Chinese. It compares the answers with each
other and never with the passages, so it is independent of textual support. Known limits: a claim in wholly
other words reads as gone, and two things that change places in a sentence read as kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import regex

from core.claims.types import Floats, Labels
from core.text.abstention import answer_status
from core.text.folding import folded
from core.text.quantities import located_dates, located_quantities
from core.text.reading import Token, denied, read
from core.text.sentences import sentences
from core.text.words import words

_HAN = regex.compile(r"\p{Han}")

Amount = tuple[Hashable, ...]  # a kind and its value in the base unit; "date", year, month, day


class Content(NamedTuple):
    """What a sentence says: words of content, of them numbers, names, denied; amounts in any unit."""

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


KEPT, CHANGED, GONE, UNKNOWN = "kept", "changed", "gone", "unknown"
CAUSAL_LABELS = (KEPT, CHANGED, GONE, UNKNOWN)
_KEPT_SHARE = 0.8  # of the claim's words that the baseline says
_NEARLY_KEPT_SHARE = 0.75
_FRAME_SHARE = 0.5  # of the words around a number or name that was exchanged
_BARE = 3  # words of a bare value at most: any other answer replaces it


def causal_labels(
    claims: Sequence[str], ablated_answers: Sequence[str | None], baseline: str | None, question: str = ""
) -> Labels:
    """Return the effect of leaving each passage out on every claim of an answer.

    ``ablated_answers`` are those without each passage, ``baseline`` is that with all; None where one is
    missing. Words of the question say nothing in an answer ("Baikal" still says "Lake Baikal" when the
    question asks for a lake).

    Returns
    -------
    ndarray of str, shape (n_claims, n_passages)
        *kept*: still said. *changed*: the same is said with another number or name, or is denied (or no
        longer denied); also a bare answer, such as a name, replaced by another. *gone*: no longer
        said, also where the ablated answer is empty or an abstention. *unknown*: the ablated answer is
        missing; the baseline is empty or an abstention; or the claim has no content word of the baseline.

    Notes
    -----
    A claim is kept when the sentence of the ablated answer that has most of it still has 80 % of those of its
    content words that the baseline says beyond the question, and all of their numbers (75 % where 80 % hold
    with the question's words counted).

    Examples
    --------
    >>> causal_labels(["Unwin built it in 1903."], ["Built in 1904 by Unwin.", "Unknown.", None],
    ...               "Unwin built it in 1903.").tolist()
    [['changed', 'gone', 'unknown']]
    """
    base = baseline if isinstance(baseline, str) and answer_status(baseline) == "answered" else None
    asked = parse_text(question)
    labels = np.full((len(claims), len(ablated_answers)), UNKNOWN, dtype=object)
    for i, claim in enumerate(claims):
        # Most ablated answers are the baseline, or one of a few others.
        known = {} if base is None else {base: KEPT}
        for j, ablated in enumerate(ablated_answers):
            if base is not None and isinstance(ablated, str):
                if ablated not in known:
                    known[ablated] = _label(claim, ablated, base, asked)
                labels[i, j] = known[ablated]
    return labels


def removal_matrix(labels: Labels) -> Floats:
    """Return 1 where a claim is changed or gone, 0 where it is kept, NaN where that is unknown."""
    return np.where(labels == UNKNOWN, np.nan, labels != KEPT)


def _label(claim: str, ablated: str, baseline: str, asked: Content) -> str:
    stated, base = parse(claim), parse_text(baseline)
    origin = max(parse_sentences(baseline), key=lambda s: len(s.words & stated.words))
    said = stated.words & origin.words
    now_words, status = _heard(ablated)
    if now_words == _heard(baseline)[0]:
        return KEPT
    if status != "answered":
        return GONE
    if not said:
        return UNKNOWN
    wanted = said - asked.words or said
    heard = [_in_the_words_of(stated, sentence) for sentence in parse_sentences(ablated)]
    now = max(heard, key=lambda s: (len(s.words & wanted), len(s.words & said)))
    lost_numbers = wanted & stated.numbers - now.numbers
    if _exchanged(wanted, stated, now, lost_numbers, base, parse_text(ablated), asked):
        return CHANGED
    if not lost_numbers and _still_said(wanted, said, now):
        return CHANGED if _denial_flipped(stated, origin, now) else KEPT
    bare = len(base.words - asked.words) <= _BARE
    other = not wanted & now.words or parse_text(ablated).words - base.words - asked.words
    return CHANGED if bare and other else GONE


def _in_the_words_of(stated: Content, now: Content) -> Content:
    """Return what is said now with the claim's words for its dates and measures: 10 km, 10,000 metres."""
    kinds = {kind for kind, *_ in stated.amounts}
    said = {amount: words for amount, words in now.amounts.items() if amount[0] in kinds}
    again = frozenset[str]().union(
        *(stated.amounts[amount] for amount in said.keys() & stated.amounts.keys())
    )
    other = frozenset[str]().union(*(said[amount] for amount in said.keys() - stated.amounts.keys()))
    clash = other & stated.numbers - again
    numbers = now.numbers - clash | again & stated.numbers | {f"another {number}" for number in clash}
    return now._replace(words=now.words - clash | again, numbers=numbers)


@lru_cache(maxsize=4096)
def _heard(answer: str) -> tuple[list[str], str]:
    """Return words and status of an answer, which every claim needs."""
    return words(answer), answer_status(answer)


def _still_said(wanted: frozenset[str], said: frozenset[str], now: Content) -> bool:
    share = len(wanted & now.words) / len(wanted)
    # Of few words beside the question's one may go when the rest of the sentence is there.
    return share >= _KEPT_SHARE or (
        share >= _NEARLY_KEPT_SHARE and len(said & now.words) >= _KEPT_SHARE * len(said)
    )


def _exchanged(
    wanted: frozenset[str],
    stated: Content,
    now: Content,
    lost_numbers: frozenset[str],
    base: Content,
    ablated: Content,
    asked: Content,
) -> bool:
    """Tell whether another number or name replaced one of the claim within the same words."""
    new_numbers = now.numbers - base.numbers - asked.numbers
    lost_names = wanted & stated.names - ablated.words
    new_names = now.names - base.words - stated.words - asked.words
    frame = wanted - stated.numbers - stated.names
    same_frame = len(frame & now.words) >= _FRAME_SHARE * len(frame)
    return same_frame and bool((lost_numbers and new_numbers) or (lost_names and new_names))


def _denial_flipped(stated: Content, origin: Content, now: Content) -> bool:
    shared = stated.atoms & origin.atoms & now.atoms
    before, after = origin.denied & shared, now.denied & shared
    return bool(before or after) and not before & after
