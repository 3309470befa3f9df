"""A vector for every token of a text, with its place in the text, from one reading of a sentence model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_BATCH = 32


class TokenVectors(NamedTuple):
    """The tokens of a text, in order; no special ones.

    Attributes
    ----------
    vectors : ndarray of float32, shape (n, d)
        Unit rows: what the model makes of each token in its context.
    spans : ndarray of int64, shape (n, 2)
        Half-open character range of each token.
    known : ndarray of bool, shape (n,)
        False where the model has no token for the characters, so that its vector stands for the context
        alone.
    """

    vectors: NDArray[np.float32]
    spans: NDArray[np.int64]
    known: NDArray[np.bool_]


def token_vectors(model: Any, texts: Sequence[str]) -> list[TokenVectors] | None:
    """Return the token vectors of texts of any length.

    Parameters
    ----------
    model : SentenceTransformer
        Loaded. A text longer than it reads at once is read in pieces one after the other, none of it left
        out.
    texts : sequence of str
        Any number; read in batches of pieces of about equal length.

    Returns
    -------
    list of TokenVectors, or None
        One for each text; None where the model's tokenizer cannot tell where its tokens stand.
    """
    import torch

    tokenizer = model.tokenizer
    if not getattr(tokenizer, "is_fast", False):
        return None
    pieces = _pieces(tokenizer, texts, min(model.max_seq_length or 512, 512))
    found: list[Any] = [None] * len(pieces)
    order = sorted(range(len(pieces)), key=lambda i: -len(pieces[i][1]))
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        padded = tokenizer.pad({"input_ids": [pieces[i][1] for i in batch]}, return_tensors="pt")
        with torch.inference_mode():
            states = model[0].auto_model(**padded.to(model.device)).last_hidden_state.float().cpu().numpy()
        mask = padded["attention_mask"].cpu().numpy().astype(bool)
        for row, index in enumerate(batch):
            found[index] = states[row][mask[row]]
    return [_of_text(tokenizer, pieces, found, text) for text in _by_text(pieces, len(texts))]


def _pieces(tokenizer: Any, texts: Sequence[str], most: int) -> list[tuple[int, list[int], Any]]:
    """Return (text, token ids with the special ones, character spans) of every piece."""
    if not texts:
        return []
    read = tokenizer(
        list(texts),
        truncation=True,
        max_length=most,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    return list(
        zip(read["overflow_to_sample_mapping"], read["input_ids"], read["offset_mapping"], strict=True)
    )


def _by_text(pieces: Sequence[tuple[int, list[int], Any]], n: int) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(n)]
    for index, (text, _, _) in enumerate(pieces):
        rows[text].append(index)
    return rows


def _of_text(
    tokenizer: Any, pieces: Sequence[tuple[int, list[int], Any]], states: Sequence[Any], rows: Sequence[int]
) -> TokenVectors:
    ids = np.concatenate([np.array(pieces[row][1], dtype=np.int64) for row in rows])
    spans = np.concatenate([np.array(pieces[row][2], dtype=np.int64).reshape(-1, 2) for row in rows])
    vectors = np.concatenate([states[row] for row in rows]).astype(np.float32)
    # Special tokens stand for no characters.
    there = spans[:, 1] > spans[:, 0]
    unknown = tokenizer.unk_token_id
    known = ids != unknown if unknown is not None else np.ones(len(ids), dtype=bool)
    return TokenVectors(unit_rows(vectors)[there], spans[there], known[there])


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows at length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)
