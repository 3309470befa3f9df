"""Retrievers by name."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import InputError
from core.llm.embeddings import Embedder
from core.retrieval.bm25 import BM25Retriever
from core.retrieval.bm25_fast import FastBM25Retriever
from core.retrieval.dense import DenseRetriever
from core.retrieval.hybrid import HybridRetriever
from core.retrieval.types import Retriever

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
