"""Find the passages for a question."""

from core.llm.embeddings import RememberingEmbedder, shared_embedder
from core.retrieval.bm25 import TOKENIZERS, BM25Retriever
from core.retrieval.bm25_fast import FastBM25Retriever
from core.retrieval.factory import (
    EMBEDDING_RETRIEVERS,
    RETRIEVERS,
    DenseRetriever,
    HybridRetriever,
    make_retriever,
)
from core.retrieval.types import Retriever, best

__all__ = [
    "EMBEDDING_RETRIEVERS",
    "RETRIEVERS",
    "TOKENIZERS",
    "BM25Retriever",
    "DenseRetriever",
    "FastBM25Retriever",
    "HybridRetriever",
    "RememberingEmbedder",
    "Retriever",
    "best",
    "make_retriever",
    "shared_embedder",
]
