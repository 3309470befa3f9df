"""Constrain a model to a JSON Schema: only tokens that can still lead to such JSON are allowed.

The automaton comes from outlines-core, the engine of `outlines`. Its logits processors are not used: they
need a compiler on the user's machine, take one schema for a whole batch, let a model write its control
tokens inside a string, and treat tokens as text, so they lose parts of characters.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.llm.embedded.chat_format import special_tokens

_KEPT = 8  # compiled schemas


class Grammars:
    """The schemas compiled for one model, the last few kept; ``end`` is the token that ends an answer.

    Compiling takes 0.03 to 0.3 s. Numeric bounds and the like are left to the validation of the reply.
    """

    def __init__(self, tokenizer: Any, end: int | None) -> None:
        self._tokenizer = tokenizer
        self._end = end
        self._tokens: Any = None
        self._compiled: OrderedDict[str, Any] = OrderedDict()

    def guide(self, schema: str) -> Guided:
        """Return a fresh automaton for one answer; `InputError` where the schema cannot be compiled."""
        if self._end is None:
            raise _uncompilable("the model has no token that ends an answer")
        if schema not in self._compiled:
            self._compiled[schema] = self._compile(schema)
            if len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(schema)
        from outlines_core import Guide

        return Guided(Guide(self._compiled[schema]), self._end)

    def _compile(self, schema: str) -> Any:
        from outlines_core import Index, Vocabulary
        from outlines_core.json_schema import build_regex_from_schema

        if self._tokens is None:
            self._tokens = Vocabulary(self._end, token_bytes(self._tokenizer))
        try:
            return Index(build_regex_from_schema(schema), self._tokens)
        except Exception as error:  # outlines-core raises several kinds, for schema, pattern and vocabulary
            raise _uncompilable(str(error).strip().split("\n")[0] or type(error).__name__) from error


class Guided:
    """The state of one answer in its automaton."""

    def __init__(self, guide: Any, end: int) -> None:
        self._guide = guide
        self._end = end
        self.complete = False

    def allowed(self, width: int) -> NDArray[np.bool_]:
        """Return which of the model's ``width`` tokens may come next."""
        words = np.zeros((width + 31) // 32, dtype=np.int32)
        if not self.complete:
            self._guide.write_mask_into(words.ctypes.data, words.size, words.itemsize)
        allowed = np.unpackbits(words.view(np.uint8), bitorder="little")[:width].astype(bool)
        if not allowed.any():  # complete, or a vocabulary that cannot spell what must follow
            allowed[self._end] = True
        return allowed

    def advance(self, token: int) -> None:
        """Take the chosen token; ``complete`` becomes true once nothing can follow."""
        if self.complete or token == self._end:
            self.complete = True
            return
        self._guide.advance(token, return_tokens=False)
        self.complete = self._guide.is_finished() and set(self._guide.get_tokens()) <= {self._end}


class SchemaMask:
    """Logits processor: excludes every token that a row's automaton forbids."""

    def __init__(self, guides: Sequence[Guided | None]) -> None:
        self._guides = guides

    def __call__(self, _input_ids: Any, scores: Any) -> Any:
        """Return the scores, -inf where a token is forbidden."""
        import torch

        scores = scores.clone()
        for row, guide in enumerate(self._guides):
            if guide is not None:
                allowed = torch.from_numpy(guide.allowed(scores.shape[-1])).to(scores.device)
                scores[row] = scores[row].masked_fill(~allowed, float("-inf"))
        return scores


def token_bytes(tokenizer: Any) -> dict[bytes, list[int]]:
    """Return the bytes, not letters, that each token adds to a text; control tokens are left out."""
    specials = special_tokens(tokenizer)
    spell = _token_speller(tokenizer)
    found: dict[bytes, list[int]] = {}
    for token, number in tokenizer.get_vocab().items():
        spelled = b"" if token in specials else spell(token)
        if spelled:
            found.setdefault(spelled, []).append(number)
    return found


def _token_speller(tokenizer: Any) -> Callable[[str], bytes]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder = json.dumps(json.loads(backend.to_str())["decoder"]) if backend is not None else ""
    if '"ByteLevel"' not in decoder:
        return _piece
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    added = {str(token) for token in tokenizer.added_tokens_decoder.values()}
    byte = {character: value for value, character in bytes_to_unicode().items()}

    def byte_level(token: str) -> bytes:
        if token in added or not byte.keys() >= set(token):
            return token.encode()
        return bytes(byte[character] for character in token)

    return byte_level


def _piece(token: str) -> bytes:
    """Spell a token of the SentencePiece family: a low line block is a space, <0x0A> a single byte."""
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return bytes.fromhex(token[3:5])
    return token.replace("\u2581", " ").encode()


def _uncompilable(why: str) -> InputError:
    return InputError(f"The model cannot be kept to this JSON Schema: {why[:300].rstrip(' .')}.")
