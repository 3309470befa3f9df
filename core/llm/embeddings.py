"""Sentence embeddings, offline with the packaged model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.errors import BackendError
from core.llm.packaged import PACKAGED_EMBEDDER, packaged_embedder
from core.llm.quiet import quiet
from core.llm.token_vectors import TokenVectors, token_vectors, unit_rows

_BATCH = 64


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their cosine similarity."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return an array of shape (n, d), rows of length 1."""
        ...


class SentenceEmbedder:
    """A sentence-transformers model; loaded at the first `embed`.

    Parameters
    ----------
    model : str or None
        None is the packaged all-MiniLM-L6-v2, which needs no network. Else any name or path that
        sentence-transformers knows.
    device : str or None
        None takes a GPU where there is one.
    """

    def __init__(self, model: str | None = None, device: str | None = None) -> None:
        self.name = model or PACKAGED_EMBEDDER
        self._model = model
        self._device = device
        self._loaded: Any = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts.

        Parameters
        ----------
        texts : sequence of str
            Any number; texts longer than the model's limit are cut by it (256 word pieces for the
            packaged model).

        Returns
        -------
        ndarray of float32, shape (n, d)
            Unit rows; shape (0, d) for no texts.

        Raises
        ------
        BackendError
            The model cannot be loaded.
        """
        with self._lock, quiet():
            model = self._ready()
            if not len(texts):
                return np.zeros((0, model.get_embedding_dimension()), dtype=np.float32)
            vectors = model.encode(
                list(texts), batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True
            )
        return unit_rows(np.asarray(vectors, dtype=np.float32))

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors] | None:
        """Return a vector for every token of each text; `core.llm.token_vectors` says more.

        None where the model cannot tell where in the text its tokens stand.

        Raises
        ------
        BackendError
            The model cannot be loaded.
        """
        with self._lock, quiet():
            return token_vectors(self._ready(), texts)

    def _ready(self) -> Any:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> Any:
        from sentence_transformers import SentenceTransformer

        source = str(packaged_embedder()) if self._model is None else self._model
        try:
            return SentenceTransformer(source, device=self._device, local_files_only=self._model is None)
        except (OSError, ValueError, RuntimeError) as error:
            first = str(error).strip().split("\n")[0]
            raise BackendError(f"The embedding model {self.name} cannot be loaded: {first}") from error
