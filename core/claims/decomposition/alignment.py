"""Find where an answer says what a model's claim says, and which words were added or left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

from core.claims.decomposition.split import without_citations
from core.claims.language.sentences import Span
from core.text.stop_words import ENGLISH
from core.text.words import word_spans, words

# Stop words for a search, but a claim without its "not", "may" or "most" is another claim.
_WEIGHTY = frozenset(
    "no nor not neither cannot without only t all any before after above below under over until few most "
    "some more every may might could".split()
)
_NEGATIONS = frozenset(
    "no nor not neither cannot without t none never không chưa chẳng 不 未 没 沒 无 無 非".split()
)
_CUT = frozenset("isn aren wasn weren doesn didn hasn haven hadn couldn wouldn shouldn ll ve re".split())
_SAME = {"t": "not", "cannot": "not"}  # words() makes "isn", "t" of "isn't"
_VIETNAMESE = frozenset(
    "là của và các những một được đã trong ở có cho với này đó thì mà về tại từ khi như cũng rằng "
    "vào ra do bởi".split()
)
_CHINESE = frozenset("的了是在和与與有被于於为為之其而也及这這那个個一他她它们們就都")
STOP_WORDS = (ENGLISH - _WEIGHTY) | _CUT | _VIETNAMESE | _CHINESE
# Words that refer to something named elsewhere.
_PRONOUNS = frozenset(
    """
    he she it they we him her them his hers its their theirs this that these those there who which such
    former latter
    ông bà nó họ anh chị cô chúng đây đó này ấy
    他 她 它 们 們 这 這 那 其 该 該 此
    """.split()
)
_ENDINGS = regex.compile(r"(?<=[a-z]{3})(?:ies|ied|ing|ed|es|ly|s|y|e)$")


class Sentence(NamedTuple):
    """A sentence of an answer: its words in order, the place of each in the answer, and the content words."""

    words: tuple[str, ...]
    spans: tuple[Span, ...]
    content: frozenset[str]


def read_sentence(answer: str, span: Span) -> Sentence:
    """Read the words of ``answer[span]``; citations have none."""
    start, end = span
    text = without_citations(answer[start:end])
    found = tuple(map(_stem, words(text)))
    places = tuple((start + a, start + b) for a, b in word_spans(text))
    return Sentence(found, places, frozenset(_stem(word) for word in content_words(text)))


def content_words(text: str) -> tuple[str, ...]:
    """Return the words that carry what a text says, each once, in order; all of them where none does."""
    found = tuple(dict.fromkeys(words(text)))
    return tuple(word for word in found if word not in STOP_WORDS) or found


def best_sentence(claim: str, stated: int, sentences: Sequence[Sentence]) -> int | None:
    """Return the sentence that a claim comes from; None where none shares a content word with it.

    The one that the model names where they share a content word; else the one that shares most, of equals the
    first.
    """
    wanted = {_stem(word) for word in content_words(claim)}
    shared = [len(wanted & sentence.content) for sentence in sentences]
    if 0 <= stated < len(sentences) and shared[stated]:
        return stated
    best = max(range(len(sentences)), key=lambda i: (shared[i], -i), default=None)
    return best if best is not None and shared[best] else None


def place_of(claim: str, sentence: Sentence) -> Span | None:
    """Return the shortest stretch of a sentence that holds every content word it shares with a claim."""
    said = {_stem(word) for word in words(claim)}
    wanted = {_stem(word) for word in content_words(claim)} & sentence.content
    if not wanted:
        return None
    first, last = _shortest(sentence.words, wanted)
    # The article or pronoun in front belongs to what is said.
    while first and (sentence.words[first - 1] in said or sentence.words[first - 1] in _PRONOUNS):
        first -= 1
    return sentence.spans[first][0], sentence.spans[last][1]


def added_words(claim: str, sentence: Sentence, names: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the content words of a claim that its sentence does not have, each once, in order.

    ``names`` are `names_in` the whole answer: what a pronoun or a missing subject may refer to.
    """
    found = words(claim)
    before = ["", *found]
    resolved = {w for b, w in zip(before, found, strict=False) if (b, w) in names or ("", w) in names}
    known = set(sentence.words)
    return tuple(word for word in content_words(claim) if _stem(word) not in known and word not in resolved)


def dropped_words(text: str, claims: Sequence[str]) -> tuple[str, ...]:
    """Return the content words of a sentence that none of the claims made from it says."""
    said = {_stem(word) for claim in claims for word in words(claim)}
    pronouns = _PRONOUNS - STOP_WORDS
    return tuple(word for word in content_words(text) if _stem(word) not in said and word not in pronouns)


def has_pronoun(text: str) -> bool:
    """Tell whether a text has a word that refers to something named elsewhere."""
    return not _PRONOUNS.isdisjoint(words(text))


def names_in(answer: str, resolves: bool) -> frozenset[tuple[str, str]]:
    """Return what a claim may take from other sentences of the answer.

    ``("", word)`` for words with a capital letter and, where the claim's sentence has a pronoun
    (``resolves``), for any word but negations and numbers; ``(word before, number)`` for the number of a
    name: "Apollo 11".
    """
    original = [answer[start:end] for start, end in word_spans(answer)]
    folded = words(answer)
    names = {
        ("", word)
        for shown, word in zip(original, folded, strict=True)
        if (resolves or shown[0].isupper()) and word not in _NEGATIONS and not word[0].isdigit()
    }
    numbers = {
        (before, word)
        for shown, (before, word) in zip(original, pairwise(folded), strict=False)
        if word[0].isdigit() and shown[0].isupper()
    }
    return frozenset(names | numbers)


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    """Return a word without its English ending: a model may write "won two prizes" as "winning a prize"."""
    word = _SAME.get(word, word)
    return _ENDINGS.sub("", word) if word.isascii() and len(word) > 3 else word


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
