"""Find where an answer says what a model's claim says, and which words were added or left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from core.claims.decomposition.split import without_citations
from core.text.reading import Token, read
from core.text.sentences import Span

# Stop words for a search, but a claim without its "may", "most" or negation is another claim.
_WEIGHTY = frozenset(
    "only all any before after above below under over until few most some more every may might could".split()
)
# Words that refer to something named elsewhere.
_PRONOUNS = frozenset(
    """
    he she it they we him them his hers its their theirs this that these those there who which such
    former latter
    ông bà nó họ anh chị cô chúng đây đó này ấy
    他 她 它 们 这 那 其 该 此
    """.split()
)


class Sentence(NamedTuple):
    """A sentence of an answer: its tokens in order, the place of each in the answer, the stems of weight."""

    tokens: tuple[Token, ...]
    spans: tuple[Span, ...]
    content: frozenset[str]


def read_sentence(answer: str, span: Span) -> Sentence:
    """Read the words of ``answer[span]``; citations have none."""
    start, end = span
    text = without_citations(answer[start:end])
    tokens = read(text)
    places = tuple((start + token.start, start + token.end) for token in tokens)
    return Sentence(tokens, places, _stems(_weighty(text)))


def weighty_words(text: str) -> tuple[str, ...]:
    """Return the words that carry what a text says, each once, in order; all of them where none does."""
    return tuple(dict.fromkeys(token.word for token in _weighty(text)))


def best_sentence(claim: str, stated: int, sentences: Sequence[Sentence]) -> int | None:
    """Return the sentence that a claim comes from; None where none shares a word of weight with it.

    The one that the model names where they share such a word; else the one that shares most, of equals the
    first.
    """
    wanted = _stems(_weighty(claim))
    shared = [len(wanted & sentence.content) for sentence in sentences]
    if 0 <= stated < len(sentences) and shared[stated]:
        return stated
    best = max(range(len(sentences)), key=lambda i: (shared[i], -i), default=None)
    return best if best is not None and shared[best] else None


def place_of(claim: str, sentence: Sentence) -> Span | None:
    """Return the shortest stretch of a sentence that holds every word of weight it shares with a claim."""
    said = _stems(read(claim))
    wanted = _stems(_weighty(claim)) & sentence.content
    if not wanted:
        return None
    first, last = _shortest([token.stem for token in sentence.tokens], wanted)
    # The article or pronoun in front belongs to what is said.
    while first and ((before := sentence.tokens[first - 1]).stem in said or before.word in _PRONOUNS):
        first -= 1
    return sentence.spans[first][0], sentence.spans[last][1]


def added_words(claim: str, sentence: Sentence, names: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the words of weight of a claim that its sentence does not have, each once, in order.

    ``names`` are `names_in` the whole answer: what a pronoun or a missing subject may refer to.
    """
    before = ["", *(token.stem for token in read(claim))]
    known = _stems(sentence.tokens) | {
        token.stem
        for b, token in zip(before, read(claim), strict=False)
        if (b, token.stem) in names or ("", token.stem) in names
    }
    return tuple(dict.fromkeys(token.word for token in _weighty(claim) if token.stem not in known))


def dropped_words(text: str, claims: Sequence[str]) -> tuple[str, ...]:
    """Return the words of weight of a sentence that none of the claims made from it says."""
    said = {stem for claim in claims for stem in _stems(read(claim))}
    left = (token.word for token in _weighty(text) if token.stem not in said)
    return tuple(dict.fromkeys(word for word in left if word not in _PRONOUNS))


def has_pronoun(text: str) -> bool:
    """Tell whether a text has a word that refers to something named elsewhere."""
    return any(token.word in _PRONOUNS for token in read(text))


def names_in(answer: str, resolves: bool) -> frozenset[tuple[str, str]]:
    """Return the stems that a claim may take from other sentences of the answer.

    ``("", stem)`` for words with a capital letter and, where the claim's sentence has a pronoun
    (``resolves``), for any word but negations and numbers; ``(stem before, number)`` for the number of a
    name: "Apollo 11".
    """
    tokens = read(answer)
    capital = {token for token in tokens if answer[token.start].isupper()}
    plain = (token for token in tokens if not token.negates and not token.is_number)
    names = {("", token.stem) for token in plain if resolves or token in capital}
    numbers = {(a.stem, b.stem) for a, b in pairwise(tokens) if b.is_number and a in capital}
    return frozenset(names | numbers)


def _weighty(text: str) -> tuple[Token, ...]:
    tokens = read(text)
    return tuple(t for t in tokens if t.content or t.negates or t.word in _WEIGHTY) or tokens


def _stems(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.stem for token in tokens)


def _shortest(found: Sequence[str], wanted: Collection[str]) -> tuple[int, int]:
    """Return first and last place of the shortest run that holds all wanted words; of equals the first."""
    have: Counter[str] = Counter()
    first, best = 0, (0, len(found) - 1)
    for last, word in enumerate(found):
        if word in wanted:
            have[word] += 1
        while len(have) == len(wanted):
            if last - first < best[1] - best[0]:
                best = (first, last)
            if have[found[first]] > 1:
                have[found[first]] -= 1
            elif found[first] in have:
                del have[found[first]]
            first += 1
    return best
