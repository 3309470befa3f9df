"""How alike two answers are: symmetric matrices with values in [0, 1] and 1 on the diagonal.

`jaccard` and `content` of one question are those of many questions, each with equally many texts. ROUGE-L is
in `core.text.overlap.rouge_l_matrix`; entailment comes from a verifier.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.arrays import Floats, dot
from core.text.reading import known_stems
from core.text.words import known_words


def jaccard(texts: Sequence[str], tokenizer: Literal["words", "split"] = "words") -> Floats:
    """Share of the distinct words of two texts that they have in common.

    ``tokenizer``: ``words`` reads any script; ``split`` is lower case cut at white space, as in the published
    code, so that a comma makes another word and a Chinese sentence is one. Two different texts without a word
    share nothing: 0. Lin, Trivedi, Sun 2023, arXiv 2305.19187.

    >>> jaccard(["St Petersburg", "Petersburg", "Moscow"]).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    split = known_words if tokenizer == "words" else (lambda text: text.lower().split())
    return jaccard_of_each([texts], split)[0]


def jaccard_of_each(
    questions: Sequence[Sequence[str]], split: Callable[[str], Collection[str]] = known_words
) -> Floats:
    """Return the `jaccard` of the texts of each question, (questions, n, n)."""
    size, common = _shared([[set(split(text)) for text in texts] for texts in questions])
    return _whole(common / np.maximum(1.0, size[:, :, None] + size[:, None, :] - common))


def content(texts: Sequence[str], question: str = "") -> Floats:
    """Share of the shorter text's words of content that the longer one has, by stem and numbers by value.

    Answers in English, Vietnamese or Chinese may be of very different length; words of the ``question`` do
    not count, since both may repeat them. 0 where each has a number that the other lacks, or only one denies
    something. A text with no other words of content is compared by all its words.

    >>> texts = ["It opened on 15 August 1914.", "August 15, 1914", "It opened on 4 May 1904.", "not in 1914"]
    >>> content(texts, "When did it open?").tolist()[0]
    [1.0, 1.0, 0.0, 0.0]
    """
    return content_of_each([texts], [question])[0]


def content_of_each(questions: Sequence[Sequence[str]], asked: Sequence[str]) -> Floats:
    """Return the `content` of the texts of each question, (questions, n, n); ``asked``: the questions."""
    said: list[list[frozenset[str]]] = []
    numbers: list[list[frozenset[str]]] = []
    for texts, question in zip(questions, asked, strict=True):
        known = known_stems(question).all
        parts = [known_stems(text) for text in texts]
        said.append([(one.content - known) or one.all for one in parts])
        numbers.append([one.numbers - known for one in parts])
    size, common = _shared(said)
    found = common / np.maximum(1.0, np.minimum(size[:, :, None], size[:, None, :]))
    n_numbers, both = _shared(numbers)
    each_lacks_one = (both < n_numbers[:, None, :]) & (both < n_numbers[:, :, None])
    denies = np.array([[known_stems(text).denies for text in texts] for texts in questions], dtype=bool)
    found[each_lacks_one | (denies[:, :, None] != denies[:, None, :])] = 0.0
    return _whole(found)


def cosine(embeddings: ArrayLike) -> Floats:
    """Cosine of every two embeddings; a negative one counts as 0, because a graph has no negative weights.

    Embeddings, (..., n, d), of any length; a row of zeros is like no other.

    >>> cosine([[2, 0], [1, 1], [-1, 0]]).round(2).tolist()
    [[1.0, 0.71, 0.0], [0.71, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows = unit(embeddings)
    return _whole(np.clip(rows @ np.swapaxes(rows, -1, -2), 0.0, 1.0))


def _shared(questions: Sequence[Sequence[Collection[str]]]) -> tuple[Floats, Floats]:
    """Return the size of every set, (questions, n), and how many members every two of a question share."""
    n_sets = len(questions[0])
    sets = [found for of_question in questions for found in of_question]
    number: dict[str, int] = {}
    words = [number.setdefault(word, len(number)) for found in sets for word in found]
    size = np.array([len(found) for found in sets], dtype=np.int64)
    place = np.repeat(np.arange(len(sets)), size)
    question = place // max(1, n_sets)
    # Words are numbered question by question, so those of one are a range.
    column, _ = pd.factorize(question * len(number) + np.array(words, dtype=np.int64))
    start = np.zeros(len(questions), dtype=np.int64)
    seen, first = np.unique(question, return_index=True)
    start[seen] = column[first]
    column = column - start[question]
    holds = np.zeros((len(sets), int(column.max(initial=-1)) + 1))
    holds[place, column] = 1.0
    each = holds.reshape(len(questions), n_sets, holds.shape[1])
    return size.reshape(len(questions), n_sets).astype(np.float64), each @ each.transpose(0, 2, 1)


def _whole(similarity: Floats) -> Floats:
    """Return the matrices with 1 on the diagonal, in place."""
    every = np.arange(similarity.shape[-1])
    similarity[..., every, every] = 1.0
    return similarity


def unit(embeddings: ArrayLike) -> Floats:
    """Return the rows divided by their length; a row of zeros stays one."""
    rows = np.asarray(embeddings, dtype=np.float64)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def mean_off_diagonal(similarity: ArrayLike) -> Any:
    """Mean similarity of two different answers, (..., n, n); NaN for fewer than two."""
    given = np.asarray(similarity, dtype=np.float64)
    n = given.shape[-1]
    if n < 2:
        return _undefined(given)
    total = given.reshape(*given.shape[:-2], -1).sum(axis=-1)
    return (total - np.trace(given, axis1=-2, axis2=-1)) / (n * (n - 1))


def agreement(similarity: ArrayLike, answer: int = 0) -> Any:
    """How far one answer agrees with all the others: the mean similarity to them.

    ``similarity``, (..., n, n), of the ``answer`` (its row) and its samples. In [0, 1], higher = the samples
    say the same; NaN where there is no other.

    >>> float(agreement([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]]))
    0.75
    """
    given = np.asarray(similarity, dtype=np.float64)
    others = np.delete(given[..., answer, :], answer, axis=-1)
    return others.mean(axis=-1) if others.shape[-1] else _undefined(given)


def typical_agreement(similarity: ArrayLike, answer: int = 0) -> Any:
    """How far one answer agrees with the typical among the others.

    As `agreement`, but each of the others counts by how alike the others are to it: an odd one says less.

    Two samples that are alike weigh 2 each, the odd one 1:

    >>> float(typical_agreement([[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]]))
    0.8
    """
    given = np.asarray(similarity, dtype=np.float64)
    if given.shape[-1] < 2:
        return _undefined(given)
    others = np.delete(given, answer, axis=-2)
    row, weight = others[..., answer], np.delete(others, answer, axis=-1).sum(axis=-1)
    return dot(weight, row) / weight.sum(axis=-1)


def _undefined(similarity: Floats) -> Any:
    return np.full(similarity.shape[:-2], np.nan)[()]
