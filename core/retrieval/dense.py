"""Dense retrieval: the cosine of sentence embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.llm.embeddings import Embedder
from core.llm.shared_embedder import shared_embedder
from core.retrieval.types import best

_BATCH = 1_024
_DIGITS = 6  # what single precision can tell apart


class DenseRetriever:
    """Ranks texts by the cosine of their embedding and the query's.

    Parameters
    ----------
    texts : sequence of str
        The passages, in corpus order; embedded here, once, in batches. Equal texts are embedded once.
    embedder : Embedder, optional
        None is the packaged all-MiniLM-L6-v2. It was trained on English: a passage in another language is
        found by the words and characters it shares with the query rather than by its meaning, so give a
        multilingual model for those. It reads the first 256 word pieces of a text.

    Raises
    ------
    BackendError
        The embedding model cannot be loaded.

    Notes
    -----
    Scores lie in [-1, 1], higher = more alike, rounded to six digits: beyond, single precision holds noise,
    and a tie must not be decided by it. Reimers, Gurevych 2019 (arXiv 1908.10084). No LLM calls, but one run
    of the embedding model for every passage; 4 bytes a dimension and passage are kept.
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

    def top(self, query: str, k: int) -> list[int]:
        """Return the indices of the k best texts, best first; ties keep corpus order."""
        return best(self.scores(query), k)

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        # One batch after the other, so that a question is not kept waiting for a whole collection.
        batches = [self._embedder.embed(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH)]
        return np.concatenate(batches) if batches else np.zeros((0, 0), dtype=np.float32)
