"""Okapi BM25 for large collections: the scores of ``rank_bm25`` from an index of sparse columns."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from core.retrieval.bm25 import tokenizer_named
from core.retrieval.types import Retriever

K1, B, EPSILON = 1.5, 0.75, 0.25


class FastBM25Retriever(Retriever):
    """BM25Okapi with the parameters of `BM25Retriever`; every word's scores are computed with the index.

    The very scores of rank_bm25 0.2.2, to the last bit: the same operations in the same order.

    A query adds up one column per query word; building costs little more than splitting the texts into
    words. Memory is about 12 bytes for each distinct word of each passage. No LLM calls.
    """

    def __init__(self, texts: Sequence[str], tokenizer: str = "words") -> None:
        self._tokenize = tokenizer_named(tokenizer)
        self._size = len(texts)
        number: defaultdict[str, int] = defaultdict()
        number.default_factory = number.__len__  # a new word gets the next number
        # Numbers right away: lists of words would keep every word of the collection as its own string.
        ids, ends = array("i"), array("i", [0])
        for text in texts:
            ids.extend(map(number.__getitem__, self._tokenize(text)))
            ends.append(len(ids))
        self._columns = dict(number)
        self._scores = _okapi(ids, ends, len(self._columns)) if self._columns else None

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the BM25 score of every text, shape (n,), higher = better."""
        total = np.zeros(self._size)
        for word in self._tokenize(query):
            if self._scores is not None and word in self._columns:
                column = self._columns[word]
                held = slice(*self._scores.indptr[column : column + 2])
                total[self._scores.indices[held]] += self._scores.data[held]
        return total


def _okapi(ids: array[int], ends: array[int], n_words: int) -> csc_array:
    """Return the score of every passage (row) for every word (column).

    ``ids`` are the numbers of all words of all passages, passage i those of ``ends[i]`` to ``ends[i + 1]``.
    """
    size, lengths = len(ends) - 1, np.diff(ends)
    # Sorting by column leaves the passages of each in order, so that repeated words stand side by side.
    one_each = np.ones(len(ids), np.int32)
    found = csr_array(
        (one_each, np.frombuffer(ids, np.intc), np.frombuffer(ends, np.intc)), (size, n_words)
    ).tocsc()
    found.sum_duplicates()
    held_by = np.diff(found.indptr)
    idf = np.repeat(_okapi_idf(held_by.tolist(), size), held_by)
    norm = (K1 * (1 - B + B * lengths / (len(ids) / size)))[found.indices]
    scores = idf * (found.data * (K1 + 1) / (found.data + norm))
    return csc_array((scores, found.indices, found.indptr), found.shape)


def _okapi_idf(held_by: Sequence[int], size: int) -> NDArray[np.float64]:
    # math.log and a plain sum, as in rank_bm25: numpy's differ in the last digit.
    idf = np.array([math.log(size - n + 0.5) - math.log(n + 0.5) for n in held_by])
    return np.where(idf < 0, EPSILON * (sum(idf.tolist()) / len(idf)), idf)
