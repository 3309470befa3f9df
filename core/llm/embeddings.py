"""Sentence and token embeddings: offline with the packaged model, shared by a process, cached."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from core.errors import BackendError
from core.llm.packaged import PACKAGED_EMBEDDER, packaged_embedder, quiet, require_local_models

_MODELS_KEPT = 2
_MOST_BYTES = 256 * 2**20
_lock = threading.Lock()
_shared: OrderedDict[str | None, RememberingEmbedder] = OrderedDict()


class TokenVectors(NamedTuple):
    """The n tokens of a text, in order, without special ones.

    ``known`` is False where the model has no token for the characters: the vector reflects only the context.
    """

    vectors: NDArray[np.float32]  # shape (n, d), unit rows: each token in its context
    spans: NDArray[np.int64]  # shape (n, 2), half-open character ranges
    known: NDArray[np.bool_]  # shape (n,)


def token_vectors(model: Any, texts: Sequence[str]) -> list[TokenVectors] | None:
    """Return the token vectors of texts from a loaded SentenceTransformer, long ones read in pieces.

    None where the model's tokenizer does not report token positions.
    """
    import torch

    tokenizer = model.tokenizer
    if not getattr(tokenizer, "is_fast", False):
        return None
    pieces = _pieces(tokenizer, texts, min(model.max_seq_length or 512, 512))
    found: list[Any] = [None] * len(pieces)
    order = sorted(range(len(pieces)), key=lambda i: -len(pieces[i][1]))
    size = batch_size(model)
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        padded = tokenizer.pad({"input_ids": [pieces[i][1] for i in batch]}, return_tensors="pt")
        with torch.inference_mode():
            states = model[0].auto_model(**padded.to(model.device)).last_hidden_state.float().cpu().numpy()
        mask = padded["attention_mask"].cpu().numpy().astype(bool)
        for row, index in enumerate(batch):
            found[index] = states[row][mask[row]]
    rows: list[list[int]] = [[] for _ in texts]
    for index, (text, _, _) in enumerate(pieces):
        rows[text].append(index)
    return [_of_text(tokenizer, pieces, found, of_text) for of_text in rows]


def batch_size(model: Any) -> int:
    """Return how many texts to pass through a model at once: on the CPU more outgrow its cache."""
    return 8 if model.device.type == "cpu" else 64


def _pieces(tokenizer: Any, texts: Sequence[str], most: int) -> list[tuple[int, list[int], Any]]:
    """Return (text, token ids with special ones, character spans) of every piece."""
    if not texts:
        return []
    with_pieces = {"return_overflowing_tokens": True, "return_offsets_mapping": True}
    read = tokenizer(list(texts), truncation=True, max_length=most, **with_pieces)
    columns = (read[name] for name in ("overflow_to_sample_mapping", "input_ids", "offset_mapping"))
    return list(zip(*columns, strict=True))


def _of_text(
    tokenizer: Any, pieces: Sequence[tuple[int, list[int], Any]], states: Sequence[Any], rows: Sequence[int]
) -> TokenVectors:
    ids = np.concatenate([np.array(pieces[row][1], dtype=np.int64) for row in rows])
    spans = np.concatenate([np.array(pieces[row][2], dtype=np.int64).reshape(-1, 2) for row in rows])
    vectors = np.concatenate([states[row] for row in rows]).astype(np.float32)
    # Special tokens span no characters.
    there = spans[:, 1] > spans[:, 0]
    unknown = tokenizer.unk_token_id
    known = ids != unknown if unknown is not None else np.ones(len(ids), dtype=bool)
    return TokenVectors(unit_rows(vectors)[there], spans[there], known[there])


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their cosine similarity."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return an array of shape (n, d), rows of length 1."""
        ...


class SentenceEmbedder:
    """A sentence-transformers model, loaded on first use; None is the packaged one, offline."""

    def __init__(self, model: str | None = None) -> None:
        self.name = model or PACKAGED_EMBEDDER
        self._model = model
        self._loaded: Any = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit rows, shape (n, d); `BackendError` where the model cannot be loaded.

        The model cuts texts longer than its limit (256 word pieces for the packaged model).
        """
        with self._lock, quiet():
            model = self._ready()
            if not len(texts):
                return np.zeros((0, model.get_embedding_dimension()), dtype=np.float32)
            vectors = model.encode(
                list(texts), batch_size=batch_size(model), show_progress_bar=False, convert_to_numpy=True
            )
        return unit_rows(np.asarray(vectors, dtype=np.float32))

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors] | None:
        """Return the vectors of each text's tokens, see `token_vectors`; `BackendError` as in `embed`."""
        with self._lock, quiet():
            return token_vectors(self._ready(), texts)

    def _ready(self) -> Any:
        if self._loaded is None:
            require_local_models(f"The embedding model {self.name}")
            from sentence_transformers import SentenceTransformer

            packaged = self._model is None
            source = str(packaged_embedder()) if packaged else self._model
            try:
                self._loaded = SentenceTransformer(source, local_files_only=packaged)
            except (OSError, ValueError, RuntimeError) as error:
                first = str(error).strip().split("\n")[0]
                raise BackendError(f"The embedding model {self.name} cannot be loaded: {first}") from error
            if packaged:
                _by_onednn(self._loaded)
        return self._loaded


def _by_onednn(model: Any) -> None:
    """Multiply matrices on the CPU with oneDNN, as precise as before and faster off Intel's processors."""
    import torch
    from torch.utils.mkldnn import to_mkldnn

    if model.device.type == "cpu" and torch.backends.mkldnn.is_available():
        to_mkldnn(model[0].auto_model)


class RememberingEmbedder:
    """Caches another embedder's vectors, up to ``most_bytes``: planning and running embed passages once."""

    def __init__(self, embedder: Embedder, most_bytes: int = _MOST_BYTES) -> None:
        self._embedder = embedder
        self._most = most_bytes
        self._kept: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embedder's vectors of these texts; the array is read-only."""
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
        """Return the vectors of the texts' tokens, None where the embedder has none; they are not cached."""
        embed = getattr(self._embedder, "embed_tokens", None)
        found: list[TokenVectors] | None = None if embed is None else embed(texts)
        return found


def shared_embedder(model: str | None = None) -> RememberingEmbedder:
    """Return this process's embedder for a model, see `SentenceEmbedder`; not loaded before its first use."""
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
