"""Find the passages for a question: retrievers by name, and how ties are broken."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi
from scipy.sparse import csc_array, csr_array

from core.errors import InputError
from core.llm.embeddings import Embedder, shared_embedder
from core.text.words import ENGLISH, words

DIGITS = 10  # scores that agree so far are tied: what is beyond comes from the order of additions
K1, B, EPSILON = 1.5, 0.75, 0.25
_BATCH = 1_024
_DIGITS = 6  # single precision holds noise beyond
RETRIEVERS = ("bm25", "bm25s", "dense", "hybrid")
EMBEDDING_RETRIEVERS = ("dense", "hybrid")  # those that use an embedding model


class Retriever(Protocol):
    """Ranks the texts it was built from."""

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return one score per text, shape (n,), higher = better; the range is the retriever's own."""
        ...

    def top(self, query: str, k: int) -> list[int]:
        """Return the indices of the k best texts, best first; fewer when there are fewer texts.

        Ties keep corpus order.
        """
        return best(self.scores(query), k)


def best(scores: NDArray[np.float64], k: int) -> list[int]:
    """Return the places of the k highest scores, best first; ties keep corpus order."""
    key = -np.round(scores, DIGITS)
    # Only what may be among the first k is sorted: the k-th, what is before it and what is tied with it.
    places = (
        np.flatnonzero(~(key > np.partition(key, k - 1)[k - 1])) if 0 < k < key.size else np.arange(key.size)
    )
    return [int(i) for i in places[np.argsort(key[places], kind="stable")[:k]]]


def content_words(text: str) -> list[str]:
    """Return the words of a text without English stop words; all words when nothing else is left."""
    found = words(text)
    return [word for word in found if word not in ENGLISH] or found


def split(text: str) -> list[str]:
    """Lower-case and split at white space, for parity with published figures."""
    return text.lower().split()


TOKENIZERS: Mapping[str, Callable[[str], list[str]]] = {"words": content_words, "split": split}


def tokenizer_named(name: str) -> Callable[[str], list[str]]:
    """Return a tokenizer by its name; ValueError for an unknown one."""
    if name not in TOKENIZERS:
        raise ValueError(f"tokenizer must be one of {', '.join(TOKENIZERS)}, got {name!r}.")
    return TOKENIZERS[name]


class BM25Retriever(Retriever):
    """BM25Okapi with k1 = 1.5, b = 0.75 and an idf floor of 0.25 times the mean idf, over ``texts``.

    ``tokenizer``: "words", Unicode words without English stop words, one word per CJK ideograph; or "split",
    lower-case and split at white space; ValueError for another.

    Scores have no upper bound, and on tiny corpora they may be negative. A repeated query word counts as
    often as it occurs. Robertson et al. 1995 (Okapi at TREC-3); no LLM calls.
    """

    def __init__(self, texts: Sequence[str], tokenizer: str = "words") -> None:
        self._tokenize = tokenizer_named(tokenizer)
        self._size = len(texts)
        tokens = [self._tokenize(text) for text in texts]
        # rank_bm25 divides by the mean length, so a corpus without a single word needs no index.
        self._index = BM25Okapi(tokens) if any(tokens) else None

    def shares(self, query: str, places: Sequence[int]) -> NDArray[np.float64] | None:
        """Return the scores of some texts as shares of the largest that any text could have for the query.

        That is a text in which every query word that tells texts apart (positive idf) occurs without end: the
        sum of idf · (k1 + 1). In [0, 1], (n_places,), higher = better; None where the query has no such word.
        """
        tokens, index = self._tokenize(query), self._index
        if index is None:
            return None
        most = (index.k1 + 1) * sum(max(0.0, index.idf.get(word, 0.0)) for word in tokens)
        if most <= 0:
            return None
        return np.clip(np.asarray(index.get_batch_scores(tokens, list(places))) / most, 0.0, 1.0)

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the BM25 score of every text, shape (n,), higher = better."""
        if self._index is None:
            return np.zeros(self._size)
        return np.asarray(self._index.get_scores(self._tokenize(query)), dtype=np.float64)


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
        for texts, scores in self._of_words(query):
            total[texts] += scores
        return total

    def holding(self, query: str) -> NDArray[np.bool_]:
        """Return whether each text has a word of a query, shape (n,); its score can still be 0."""
        found = np.zeros(self._size, dtype=bool)
        for texts, _ in self._of_words(query):
            found[texts] = True
        return found

    def _of_words(self, query: str) -> Iterator[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        """Yield for each word of a query the texts that have it, and their scores for it."""
        for word in self._tokenize(query):
            if self._scores is not None and word in self._columns:
                column = self._columns[word]
                held = slice(*self._scores.indptr[column : column + 2])
                yield self._scores.indices[held], self._scores.data[held]


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


class DenseRetriever(Retriever):
    """Ranks ``texts`` by the cosine between their embedding and the query's, in [-1, 1], higher = more alike.

    ``embedder`` None is the packaged all-MiniLM-L6-v2. It was trained on English: a passage in another
    language is found by the words and characters it shares with the query rather than by its meaning, so use
    a multilingual model there. It reads the first 256 word pieces of a text.

    Scores are rounded to six digits so that noise in single precision does not decide a tie. Reimers,
    Gurevych 2019 (arXiv 1908.10084). No LLM calls, but one forward pass of the embedding model for every
    distinct passage; 4 bytes are kept for each of its dimensions. `BackendError` where the model cannot be
    loaded.
    """

    def __init__(self, texts: Sequence[str], embedder: Embedder | None = None) -> None:
        self._embedder = shared_embedder() if embedder is None else embedder
        distinct: dict[str, int] = {}
        self._rows = np.array([distinct.setdefault(text, len(distinct)) for text in texts], dtype=np.int64)
        self._vectors = self._embed(list(distinct))

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the cosine of every text and the query, shape (n,), higher = better."""
        if not self._rows.size:
            return np.zeros(0)
        cosines = self._vectors @ self._embedder.embed([query])[0]
        return np.round(cosines.astype(np.float64), _DIGITS)[self._rows]

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        # In batches, so that a question need not wait for a whole collection.
        batches = [self._embedder.embed(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH)]
        return np.concatenate(batches) if batches else np.zeros((0, 0), dtype=np.float32)


class HybridRetriever(Retriever):
    """Sums the reciprocal ranks from other retrievers, at least one, all over the same texts.

    The score of a text is the sum of ``1 / (k + rank)`` over the retrievers, at most ``n / (k + 1)`` for n of
    them; the larger k, the less the first ranks count; 60 as in the paper. Texts with equal scores share
    their mean rank, so corpus order has no effect: for BM25 all passages without a query word rank equally
    low. Cormack, Clarke, Buettcher 2009 (SIGIR). No LLM calls.
    """

    def __init__(self, retrievers: Sequence[Retriever], k: int = 60) -> None:
        self._retrievers = tuple(retrievers)
        self._k = k

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the fused score of every text, shape (n,), higher = better."""
        fused = [1 / (self._k + _average_ranks(r.scores(query))) for r in self._retrievers]
        return np.asarray(np.sum(fused, axis=0), dtype=np.float64)


def _average_ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks from 1 for the highest score; equal scores share their mean rank."""
    _, place, counts = np.unique(-np.round(scores, DIGITS), return_inverse=True, return_counts=True)
    mean = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(mean[place], dtype=np.float64)


def make_retriever(
    name: str, texts: Sequence[str], *, tokenizer: str = "words", embedder: Embedder | None = None
) -> Retriever:
    """Build a retriever over a collection.

    ``name``: ``bm25``, Okapi BM25 by rank_bm25; ``bm25s``, the same scores from an index for large
    collections; ``dense``, cosine of sentence embeddings; ``hybrid``, reciprocal rank fusion of bm25s and
    dense. ``texts`` in corpus order: ties in score keep it. ``tokenizer``, "words" or "split", is how BM25
    splits words. ``embedder`` is for dense and hybrid; None is the packaged all-MiniLM-L6-v2. `InputError`
    for an unknown retriever, ValueError for an unknown tokenizer, `BackendError` where an embedding model
    cannot be loaded.

    >>> make_retriever("bm25s", ["a red apple", "a green pear", "blue sky"]).top("pear", k=1)
    [1]
    """
    if name == "bm25":
        return BM25Retriever(texts, tokenizer)
    if name == "bm25s":
        return FastBM25Retriever(texts, tokenizer)
    if name == "dense":
        return DenseRetriever(texts, embedder)
    if name == "hybrid":
        return HybridRetriever([FastBM25Retriever(texts, tokenizer), DenseRetriever(texts, embedder)])
    raise InputError(f"The retriever must be one of {', '.join(RETRIEVERS)}, got {name!r}.")
