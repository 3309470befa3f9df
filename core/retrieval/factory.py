"""Retrievers by name, those that use an embedding model among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.llm.embeddings import Embedder, shared_embedder
from core.retrieval.bm25 import BM25Retriever
from core.retrieval.bm25_fast import FastBM25Retriever
from core.retrieval.types import DIGITS, Retriever

_BATCH = 1_024
_DIGITS = 6  # single precision holds noise beyond


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


RETRIEVERS = ("bm25", "bm25s", "dense", "hybrid")
EMBEDDING_RETRIEVERS = ("dense", "hybrid")  # those that use an embedding model


def make_retriever(
    name: str, texts: Sequence[str], *, tokenizer: str = "words", embedder: Embedder | None = None
) -> Retriever:
    """Build a retriever over a collection.

    Parameters
    ----------
    name : {"bm25", "bm25s", "dense", "hybrid"}
        ``bm25``: Okapi BM25 by rank_bm25. ``bm25s``: the same scores from an index for large collections.
        ``dense``: cosine of sentence embeddings. ``hybrid``: reciprocal rank fusion of bm25s and dense.
    texts : sequence of str
        The passages, in corpus order; ties in score keep this order.
    tokenizer : {"words", "split"}
        How BM25 splits words; ``dense`` does not use it.
    embedder : Embedder, optional
        For ``dense`` and ``hybrid``; None is the packaged all-MiniLM-L6-v2.

    Raises
    ------
    InputError, ValueError, BackendError
        An unknown retriever; an unknown tokenizer; an embedding model that cannot be loaded.

    Examples
    --------
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
