"""Find the passages for a question."""

from core.retrieval.bm25 import BM25Retriever
from core.retrieval.types import Retriever

__all__ = ["BM25Retriever", "Retriever"]
