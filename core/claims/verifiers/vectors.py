"""The token vectors of texts, each text read once as long as there is room for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from core.llm.embeddings import Embedder, TokenVectors, shared_embedder
from core.text.words import word_spans, words

_MOST_BYTES = 256 * 2**20


class VectorMemory:
    """Turns texts into token vectors and keeps them, so that a recurring text is not read again.

    None is the packaged all-MiniLM-L6-v2. Where an embedder has no ``embed_tokens``, every distinct word is
    embedded as a text of its own: it works, but words are then compared without their context. Beyond
    ``most_bytes`` the vectors least recently used go first.
    """

    def __init__(self, embedder: Embedder | None = None, most_bytes: int = _MOST_BYTES) -> None:
        self._embedder: Embedder = shared_embedder() if embedder is None else embedder
        self._most = most_bytes
        self._kept: OrderedDict[str, TokenVectors] = OrderedDict()
        self._words: dict[str, NDArray[np.float32]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def vectors(self, texts: Iterable[str]) -> dict[str, TokenVectors]:
        """Return the token vectors of texts; all that are new are read in one go."""
        wanted = list(dict.fromkeys(texts))
        with self._lock:
            new = [text for text in wanted if text not in self._kept]
            fresh = dict(zip(new, self._read(new), strict=True)) if new else {}
            found = {}
            for text in wanted:
                if text in fresh:
                    found[text] = fresh[text]
                else:
                    found[text] = self._kept[text]
                    self._kept.move_to_end(text)
            for text, vectors in fresh.items():
                self._kept[text] = vectors
                self._size += _bytes(vectors)
            while self._size > self._most and self._kept:
                self._size -= _bytes(self._kept.popitem(last=False)[1])
        return found

    def _read(self, texts: Sequence[str]) -> list[TokenVectors]:
        embed = getattr(self._embedder, "embed_tokens", None)
        found = None if embed is None else embed(texts)
        found = self._word_by_word(texts) if found is None else found
        # Half the memory; three digits of a cosine are more than its meaning bears.
        return [one._replace(vectors=one.vectors.astype(np.float16)) for one in found]

    def _word_by_word(self, texts: Sequence[str]) -> list[TokenVectors]:
        spelled = [words(text) for text in texts]
        new = list(dict.fromkeys(w for found in spelled for w in found if w not in self._words))
        if new:
            self._words.update(zip(new, self._embedder.embed(new), strict=True))
        empty = np.zeros((0, 1), dtype=np.float32)
        return [
            TokenVectors(
                np.stack([self._words[w] for w in found]) if found else empty,
                np.array(word_spans(text), dtype=np.int64).reshape(-1, 2),
                np.ones(len(found), dtype=bool),
            )
            for text, found in zip(texts, spelled, strict=True)
        ]


def _bytes(vectors: TokenVectors) -> int:
    return int(vectors.vectors.nbytes + vectors.spans.nbytes + vectors.known.nbytes)
