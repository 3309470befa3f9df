"""ROUGE-L: the longest common subsequence of two texts' words, and how far answers agree by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_lowercase, digits
from typing import Any, NamedTuple

import numpy as np
import regex
from numpy.typing import ArrayLike, NDArray
from rapidfuzz import process
from rapidfuzz.distance import LCSseq

from core.text.abstention import answer_status
from core.text.words import known_words

# rouge_score drops everything outside a-z and 0-9, so other scripts vanish and Vietnamese falls into
# fragments ("không" becomes "kh", "ng") that match where words do not.
_FOREIGN = regex.compile(r"[^\p{Latin}\p{Common}\p{Inherited}]|[\u1EA0-\u1EF9ơƠưƯ]")
# A stray Greek letter does not make an English text unreadable; one word in five does.
_MAX_FOREIGN_SHARE = 0.2
# What rouge_score takes for a character of a word, as it stands in a text of lower case; all else separates.
_SEPARATED = bytes(byte if chr(byte) in ascii_lowercase + digits else 32 for byte in range(256))
_PAIRS = 50_000  # at once: their different words must not outnumber the characters of Unicode


class RougeL(NamedTuple):
    """ROUGE-L of a prediction against a target; each in [0, 1], or NaN where undefined."""

    precision: float
    recall: float
    f1: float


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    # Importing it imports scikit-learn: half of the engine's import time.
    from rouge_score.tokenizers import DefaultTokenizer

    return DefaultTokenizer(use_stemmer=True)


@lru_cache(maxsize=262_144)
def _stem(word: str) -> str:
    # Stemming takes most of rouge_score's time, and texts repeat their words.
    return "".join(_tokenizer().tokenize(word)) if len(word) > 3 else word


@lru_cache(maxsize=16_384)
def _rouge_words(text: str, stem: bool = True) -> tuple[str, ...]:
    # As its regular expressions find them, at a quarter of their time.
    found = text.lower().encode("ascii", "replace").translate(_SEPARATED).decode().split()
    return tuple(map(_stem, found) if stem else found)


def _readable(text: str) -> bool:
    return text.isascii() or _mostly_latin(text)


@lru_cache(maxsize=4096)
def _mostly_latin(text: str) -> bool:
    found = known_words(text)
    return sum(bool(_FOREIGN.search(word)) for word in found) <= _MAX_FOREIGN_SHARE * len(found)


def rouge_l(target: str, prediction: str, stem: bool = True) -> RougeL:
    """ROUGE-L precision, recall and F1 of a prediction against a target.

    Equal to ``rouge_score`` 0.1.2 on texts it can read. Texts in other scripts, and Vietnamese,
    are compared by the same formula over `words`.

    Swapping the texts swaps precision and recall and leaves F1 unchanged. With ``stem`` words longer than
    three letters are stemmed (Porter) as in rouge_score, in texts that it can read. Each in [0, 1], higher =
    more alike; all NaN when neither text has a word: a 0 would read as "completely changed".

    References
    ----------
    Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries, section 3.1.

    >>> rouge_l("the cat sat", "the cat ran").f1
    0.6666666666666666
    """
    if _readable(target) and _readable(prediction):
        return rouge_l_words(_rouge_words(target, stem), _rouge_words(prediction, stem))
    return rouge_l_words(known_words(target), known_words(prediction))


def rouge_l_pairs(targets: Sequence[str], predictions: Sequence[str]) -> NDArray[np.float64]:
    """ROUGE-L F1 of many pairs of texts in one go: the very values of `rouge_l`, shape (n,).

    >>> rouge_l_pairs(["the cat sat", "the cat sat"], ["the cat ran", "a dog"]).round(2).tolist()
    [0.67, 0.0]
    """
    place = {text: i for i, text in enumerate(dict.fromkeys([*targets, *predictions]))}
    one, other = (np.array([place[text] for text in part], dtype=np.int64) for part in (targets, predictions))
    return _f1_of([*place], one, other)


def _f1_of(texts: Sequence[str], one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the F1 of pairs of texts, which are given by their places."""
    found = [np.empty(0)]
    for start in range(0, len(one), _PAIRS):
        some = np.unique(np.concatenate([one[start : start + _PAIRS], other[start : start + _PAIRS]]))
        pair = [np.searchsorted(some, part[start : start + _PAIRS]) for part in (one, other)]
        chosen = [texts[i] for i in some]
        readable = np.array([_readable(text) for text in chosen], dtype=bool)
        f1 = _f1_pairs([_rouge_words(text) for text in chosen], *pair)
        if not readable.all():
            both = readable[pair[0]] & readable[pair[1]]
            f1[~both] = _f1_pairs([known_words(text) for text in chosen], *(part[~both] for part in pair))
        found.append(f1)
    return np.concatenate(found)


def _f1_pairs(
    texts: Sequence[Sequence[str]], one: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.float64]:
    strings = _coded(texts)
    common = process.cpdist(
        [strings[i] for i in one], [strings[i] for i in other], scorer=LCSseq.similarity, dtype=np.int32
    )
    n_words = np.array([len(string) for string in strings], dtype=np.float64)
    n_target, n_prediction = n_words[one], n_words[other]
    precision, recall = common / np.maximum(1, n_prediction), common / np.maximum(1, n_target)
    # The order of operations is that of `rouge_l_words`, so that the last digit is the same.
    f1 = 2 * precision * recall / np.where(common, precision + recall, 1.0)
    return np.where((n_target + n_prediction) > 0, f1, np.nan)


def rouge_l_matrix(texts: Sequence[str]) -> NDArray[np.float64]:
    """ROUGE-L F1 of every text against every other in one go: the very values of `rouge_l`, shape (n, n).

    >>> rouge_l_matrix(["the cat sat", "the cat ran", "a dog"]).round(2).tolist()
    [[1.0, 0.67, 0.0], [0.67, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return rouge_l_of_each([texts])[0]


def rouge_l_of_each(questions: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return the `rouge_l_matrix` of the texts of each question, each with n: shape (questions, n, n)."""
    n = len(questions[0])
    place: dict[str, int] = {}
    which = np.array(
        [place.setdefault(text, len(place)) for texts in questions for text in texts], dtype=np.int64
    ).reshape(len(questions), n)
    # Both directions have the same F1, and equal texts have that of one with itself.
    row, column = np.triu_indices(n)
    one, other = which[:, row].ravel(), which[:, column].ravel()
    pairs, back = np.unique(one * len(place) + other, return_inverse=True)
    found = np.empty((len(questions), n, n))
    f1 = _f1_of([*place], pairs // max(1, len(place)), pairs % max(1, len(place)))[back].reshape(
        len(questions), len(row)
    )
    found[:, row, column] = found[:, column, row] = f1
    return found


def _coded(texts: Sequence[Sequence[str]]) -> list[str]:
    """Write each distinct word as one character: the library compares strings in batches."""
    code: dict[str, str] = {}
    return ["".join([code.setdefault(word, chr(len(code))) for word in text]) for text in texts]


def rouge_l_words(target: Sequence[str], prediction: Sequence[str]) -> RougeL:
    """ROUGE-L of two word sequences; all NaN when both are empty."""
    if not target and not prediction:
        return RougeL(math.nan, math.nan, math.nan)
    common = LCSseq.similarity(target, prediction)
    if not common:
        return RougeL(0.0, 0.0, 0.0)
    precision = common / len(prediction)
    recall = common / len(target)
    return RougeL(precision, recall, 2 * precision * recall / (precision + recall))


class Agreement(NamedTuple):
    """A value in [0, 1], higher = more alike; NaN with a reason, a sentence, where it is undefined."""

    value: float
    reason: str = ""


def by_outcome(likeness: NDArray[np.float64], status: ArrayLike) -> NDArray[np.float64]:
    """Set the likeness of texts of which at least one is no answer: 1 for equal ``status``, else 0.

    ``status``, (..., n), of the texts.

    >>> by_outcome(np.full((3, 3), 0.5), ["answered", "abstained", "abstained"]).tolist()
    [[0.5, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    given = np.array(status)
    equal = given[..., :, None] == given[..., None, :]
    both_answered = (given[..., None] == "answered") & equal
    return np.where(both_answered, likeness, equal)


def rouge_l_agreement(answer: str, samples: Sequence[str]) -> Agreement:
    """Mean ROUGE-L F1 of an answer to samples; undefined unless it and one of them are answers.

    A refusal or an empty text among the samples counts as unlike.

    >>> rouge_l_agreement("the cat sat", ["the cat sat", "the cat ran", "I don't know"]).value
    0.5555555555555555
    >>> rouge_l_agreement("I don't know", ["Paris"]).reason
    'The answer is a refusal: it claims nothing.'
    """
    status = [answer_status(text) for text in (answer, *samples)]
    if status[0] != "answered":
        return Agreement(math.nan, _NO_ANSWER[status[0]])
    if "answered" not in status[1:]:
        return Agreement(math.nan, "No sample is an answer, so there is nothing to agree with.")
    likeness = by_outcome(np.nan_to_num(rouge_l_matrix((answer, *samples))), status)
    return Agreement(float(likeness[0, 1:].mean()))


_NO_ANSWER = {
    "abstained": "The answer is a refusal: it claims nothing.",
    "empty": "The answer holds no word.",
}
