"""A vector for every token of a text, with its position, from one forward pass of a sentence model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class TokenVectors(NamedTuple):
    """The n tokens of a text, in order, without special ones.

    ``known`` is False where the model has no token for the characters: the vector reflects only the context.
    """

    vectors: NDArray[np.float32]  # shape (n, d), unit rows: each token in its context
    spans: NDArray[np.int64]  # shape (n, 2), half-open character ranges
    known: NDArray[np.bool_]  # shape (n,)


def token_vectors(model: Any, texts: Sequence[str]) -> list[TokenVectors] | None:
    """Return the token vectors of texts of any length from a loaded SentenceTransformer.

    A text longer than the model's limit is read in consecutive pieces, in batches of about equal length. None
    where the model's tokenizer does not report token positions.
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
    """Return how many texts to pass through a model at once.

    On the CPU more outgrow its cache: 64 texts of 100 words at once take 1.6 times as long as in eights.
    """
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
