"""BM25 (Okapi) over a list of texts, as ``rank_bm25`` computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from core.retrieval.types import Retriever
from core.text.words import ENGLISH, words


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

        That is a text in which every query word that tells texts apart (positive idf) occurs without end:
        the sum of idf · (k1 + 1).

        Returns
        -------
        ndarray, shape (n_places,), or None
            In [0, 1], higher = better. None where the query has no word that tells the texts apart.
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
