"""How alike two answers are: symmetric matrices with values in [0, 1] and 1 on the diagonal.

ROUGE-L is in `core.text.overlap.rouge_l_matrix`; entailment comes from a verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.text.reading import read
from core.text.words import words


def jaccard(texts: Sequence[str], tokenizer: Literal["words", "split"] = "words") -> Floats:
    """Share of the distinct words of two texts that they have in common.

    ``tokenizer``: ``words`` reads any script; ``split`` is lower case cut at white space, as in the published
    code, so that a comma makes another word and a Chinese sentence is one. Two different texts without a word
    share nothing: 0. Lin, Trivedi, Sun 2023, arXiv 2305.19187.

    >>> jaccard(["St Petersburg", "Petersburg", "Moscow"]).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    sets = [set(words(text) if tokenizer == "words" else text.lower().split()) for text in texts]
    size, common = _shared(sets)
    found = common / np.maximum(1.0, size[:, None] + size - common)
    np.fill_diagonal(found, 1.0)
    return found


def content(texts: Sequence[str], question: str = "") -> Floats:
    """Share of the shorter text's words of content that the longer one has, by stem and numbers by value.

    Answers in English, Vietnamese or Chinese may be of very different length; words of the ``question`` do
    not count, since both may repeat them. 0 where each has a number that the other lacks, or only one denies
    something. A text with no other words of content is compared by all its words.

    >>> texts = ["It opened on 15 August 1914.", "August 15, 1914", "It opened on 4 May 1904.", "not in 1914"]
    >>> content(texts, "When did it open?").tolist()[0]
    [1.0, 1.0, 0.0, 0.0]
    """
    asked = {token.stem for token in read(question)}
    tokens = [read(text) for text in texts]
    own = [[token for token in found if token.stem not in asked] for found in tokens]
    said = [
        {token.stem for token in kept if token.content} or {token.stem for token in whole}
        for kept, whole in zip(own, tokens, strict=True)
    ]
    size, common = _shared(said)
    found = common / np.maximum(1.0, np.minimum(size[:, None], size))
    numbers, both = _shared([{token.stem for token in kept if token.is_number} for kept in own])
    each_lacks_one = (both < numbers) & (both < numbers[:, None])
    denies = np.array([any(token.negates for token in whole) for whole in tokens], dtype=bool)
    found[each_lacks_one | (denies[:, None] != denies)] = 0.0
    np.fill_diagonal(found, 1.0)
    return found


def cosine(embeddings: ArrayLike) -> Floats:
    """Cosine of every two embeddings; a negative one counts as 0, because a graph has no negative weights.

    Embeddings, (n, d), of any length; a row of zeros is like no other.

    >>> cosine([[2, 0], [1, 1], [-1, 0]]).round(2).tolist()
    [[1.0, 0.71, 0.0], [0.71, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows = unit(embeddings)
    found = np.clip(rows @ rows.T, 0.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found


def _shared(sets: Sequence[set[str]]) -> tuple[Floats, Floats]:
    """Return the size of every set, and how many members every two share."""
    place = {word: i for i, word in enumerate(dict.fromkeys(word for found in sets for word in found))}
    holds = np.zeros((len(sets), len(place)))
    for row, found in zip(holds, sets, strict=True):
        row[[place[word] for word in found]] = 1.0
    return holds.sum(axis=1), holds @ holds.T


def unit(embeddings: ArrayLike) -> Floats:
    """Return the rows divided by their length; a row of zeros stays one."""
    rows = np.asarray(embeddings, dtype=np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def mean_off_diagonal(similarity: ArrayLike) -> float:
    """Mean similarity of two different answers; NaN for fewer than two."""
    given = np.asarray(similarity, dtype=np.float64)
    n = len(given)
    return float((given.sum() - np.trace(given)) / (n * (n - 1))) if n > 1 else np.nan


def agreement(similarity: ArrayLike, answer: int = 0) -> float:
    """How far one answer agrees with all the others: the mean similarity to them.

    ``similarity``, (n, n), of the ``answer`` (its row) and its samples. In [0, 1], higher = the samples say
    the same; NaN where there is no other.

    >>> agreement([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    0.75
    """
    others = np.delete(np.asarray(similarity, dtype=np.float64)[answer], answer)
    return float(others.mean()) if others.size else np.nan


def typical_agreement(similarity: ArrayLike, answer: int = 0) -> float:
    """How far one answer agrees with the typical among the others.

    As `agreement`, but each of the others counts by how alike the others are to it: an odd one says less.

    Two samples that are alike weigh 2 each, the odd one 1:

    >>> typical_agreement([[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]])
    0.8
    """
    given = np.asarray(similarity, dtype=np.float64)
    others = np.delete(np.arange(len(given)), answer)
    weight = given[np.ix_(others, others)].sum(axis=1)
    return float(weight @ given[answer, others] / weight.sum()) if others.size else np.nan
