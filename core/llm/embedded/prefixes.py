"""Prompts that begin alike: what several of them begin with is read once.

Imports torch and transformers: import it only where a model is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from core.llm.embedded.scoring import token_logprobs

_CUT_BACK = (DynamicLayer, DynamicSlidingWindowLayer)  # kinds of layers; a `_Layer` stands in for both
_MOST_BYTES = 2 * 2**30  # of the keys and values of prompts that are answered together


class _Layer(DynamicLayer):  # type: ignore[misc]
    """Keys and values in a buffer that has room for more, so that a token more does not copy all others."""

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Add keys and values; return all."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._buffers = [key_states[..., :0, :], value_states[..., :0, :]]
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if end > self._buffers[0].shape[-2]:
            self._buffers = [_longer(b, max(end, 2 * start), start) for b in self._buffers]
        for buffer, new in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[..., start:end, :] = new
        self.keys, self.values = (buffer[..., :end, :] for buffer in self._buffers)
        return self.keys, self.values


def _longer(buffer: Any, length: int, kept: int) -> Any:
    longer = buffer.new_empty(*buffer.shape[:-2], length, buffer.shape[-1])
    longer[..., :kept, :] = buffer[..., :kept, :]
    return longer


def _empty(like: Any, rows: int, width: int, room: int) -> Any:
    """Return a layer with zeros for ``width`` tokens of some rows, and room for more."""
    layer = _Layer()
    layer.lazy_initialization(like.keys, like.values)
    layer._buffers = [
        states.new_zeros(rows, states.shape[1], width + room, states.shape[-1])
        for states in (like.keys, like.values)
    ]
    layer.keys, layer.values = (buffer[..., :width, :] for buffer in layer._buffers)
    return layer


def _tokens_together(config: Any) -> int:
    # Each has a key and a value in every layer, in single precision.
    text = config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return int(_MOST_BYTES // (2 * text.num_hidden_layers * heads * size * 4))


class PrefixReader:
    """Reads prompts one after the other, each from where it differs from the one before.

    Sorted by their tokens, no token in common is read twice: a prompt and what is left of it without each of
    its passages cost about half. ``most_tokens`` may be kept `together` (2 GiB); `suits` says for which
    models.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._accepted = inspect.signature(model.forward).parameters
        self.most_tokens = _tokens_together(model.config)
        self._cache = Cache(layer_class_to_replicate=_Layer)
        self._read: list[int] = []

    @staticmethod
    def suits(model: Any) -> bool:
        """Tell whether a model's cache can be cut back to the beginning of a prompt."""
        if not {"past_key_values", "position_ids"} <= inspect.signature(model.forward).parameters.keys():
            return False
        return all(type(layer) in _CUT_BACK for layer in DynamicCache(config=model.config).layers)

    def together(self, prompts: Sequence[list[int]], n_more: int, before_each: Callable[[], object]) -> Any:
        """Read prompts but for the last token, with room for ``n_more``; None for a prompt of one token."""
        if min(map(len, prompts)) < 2:
            return None  # nothing is read yet
        width = max(map(len, prompts)) - 1
        layers: list[Any] = []
        for row, prompt in enumerate(prompts):
            before_each()
            self._go_to(prompt[:-1], 1)
            n = len(prompt) - 1
            for number, layer in enumerate(self._cache.layers):
                if row == 0:
                    layers.append(_empty(layer, len(prompts), width, n_more))
                for into, states in zip(layers[number]._buffers, (layer.keys, layer.values), strict=True):
                    into[row, :, width - n : width] = states[0]
        return Cache(layers=layers)

    def answer_logprobs(self, prompt: list[int], answer: list[int]) -> tuple[float, ...]:
        """Return the log-probability of each token of an answer, which has at least one."""
        # The last token of the prompt predicts the first one of the answer, so it is read again.
        self._cut(len(prompt) - 1)
        logits = self._go_to(prompt + answer[:-1], len(answer))
        return tuple(token_logprobs(logits[0], torch.tensor(answer, device=logits.device)).tolist())

    def _go_to(self, tokens: list[int], n_logits: int) -> Any:
        """Read what is not read yet of some tokens; return the last logits."""
        pairs = enumerate(zip(tokens, self._read, strict=False))
        self._cut(next((i for i, (a, b) in pairs if a != b), min(len(tokens), len(self._read))))
        new = tokens[len(self._read) :]
        if not new:
            return None
        inputs = {
            "input_ids": torch.tensor([new], device=self._model.device),
            "position_ids": torch.arange(len(self._read), len(tokens), device=self._model.device)[None],
            "past_key_values": self._cache,
            "use_cache": True,
            "logits_to_keep": n_logits,
        }
        found = self._model(**{name: value for name, value in inputs.items() if name in self._accepted})
        self._read = tokens
        return found.logits[:, -n_logits:]

    def _cut(self, n: int) -> None:
        if n < len(self._read):
            self._cache.crop(n - len(self._read))
            self._read = self._read[:n]
