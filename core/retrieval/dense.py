"""Dense retrieval: the cosine of sentence embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.llm.embeddings import Embedder, shared_embedder
from core.retrieval.types import Retriever

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
