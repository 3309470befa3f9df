"""Reciprocal rank fusion: several rankings combined into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.retrieval.types import DIGITS, Retriever


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
