"""One embedder for all retrievers of a process, which embeds no text twice."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.llm.embeddings import Embedder, SentenceEmbedder
from core.llm.token_vectors import TokenVectors

_MODELS_KEPT = 2
_MOST_BYTES = 256 * 2**20

_lock = threading.Lock()
_shared: OrderedDict[str | None, RememberingEmbedder] = OrderedDict()


class RememberingEmbedder:
    """Keeps what another embedder returned, so that planning a run and doing it embed the passages once.

    Parameters
    ----------
    embedder : Embedder
        Does the work.
    most_bytes : int
        The vectors kept; those not asked for longest go first.
    """

    def __init__(self, embedder: Embedder, most_bytes: int = _MOST_BYTES) -> None:
        self._embedder = embedder
        self._most = most_bytes
        self._kept: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return what the embedder returns for these texts; the array is read-only."""
        key = _key(texts)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        vectors = self._embedder.embed(texts)
        vectors.setflags(write=False)
        with self._lock:
            if key not in self._kept and vectors.nbytes <= self._most:
                self._kept[key] = vectors
                self._size += vectors.nbytes
            while self._size > self._most:
                self._size -= self._kept.popitem(last=False)[1].nbytes
        return vectors

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors] | None:
        """Return the vectors of the texts' tokens, None where the embedder has none; none are kept here."""
        embed = getattr(self._embedder, "embed_tokens", None)
        found: list[TokenVectors] | None = None if embed is None else embed(texts)
        return found


def shared_embedder(model: str | None = None) -> RememberingEmbedder:
    """Return the one embedder of this process for a model; nothing is loaded before its first use.

    Parameters
    ----------
    model : str or None
        None is the packaged all-MiniLM-L6-v2; else a name or path that sentence-transformers knows.
    """
    with _lock:
        if model not in _shared:
            _shared[model] = RememberingEmbedder(SentenceEmbedder(model))
            while len(_shared) > _MODELS_KEPT:
                _shared.popitem(last=False)
        _shared.move_to_end(model)
        return _shared[model]


def _key(texts: Sequence[str]) -> bytes:
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.digest()
