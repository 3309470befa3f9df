"""Faster arithmetic of a model on a processor, in single precision as before.

Matrices: the library that torch takes by itself uses half of the vector width of processors other than
Intel's, oneDNN all of it. Attention of tokens that follow others: torch computes every pair of the two, also
those that the mask then forbids. Results differ in the last digits only.

Imports torch: import it only where a model is loaded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import prepare_padding_mask, sdpa_mask

NAME = "leadline"
_FEW_ROWS = 8  # below, torch's own product is the faster one
_MOST_BYTES = 2 * 2**30  # of weights: they are kept twice
_BLOCK = 128  # tokens whose attention is computed together: their scores stay in the processor's cache


def speed_up(model: Any) -> Any:
    """Let oneDNN multiply the matrices of a model, and attention skip what its mask forbids; in place.

    Only a model in single precision on a processor, and of at most 2 GiB: its weights are kept twice.
    Attention is left alone where the model has its own kind.
    """
    if not _suits(model):
        return model
    for module in model.modules():
        if type(module) is torch.nn.Linear:
            packed = torch.ops.mkldnn._reorder_linear_weight(module.weight.contiguous(), 1024)
            module.forward = partial(_product, module, packed)
    if model.config._attn_implementation == "sdpa":
        AttentionInterface.register(NAME, _attention)
        AttentionMaskInterface.register(NAME, _mask)
        model.set_attn_implementation(NAME)
    return model


def _suits(model: Any) -> bool:
    plain = model.device.type == "cpu" and model.dtype == torch.float32
    packs = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    return plain and packs and sum(p.nbytes for p in model.parameters()) <= _MOST_BYTES


def _product(module: Any, packed: Any, x: Any) -> Any:
    if x.numel() < _FEW_ROWS * x.shape[-1]:
        return torch.nn.functional.linear(x, module.weight, module.bias)
    return torch.ops.mkldnn._linear_pointwise(x, packed, module.bias, "none", [], "")


def _mask(
    *, q_length: int, kv_length: int, kv_offset: int = 0, attention_mask: Any = None, **others: Any
) -> Any:
    """Return the mask, None where each token attends to all before it, and so `_attention` needs none."""
    padding = prepare_padding_mask(attention_mask, kv_length, kv_offset)
    local = others.get("local_size")
    whole = (local is None or kv_length < local) and (padding is None or bool(padding.all()))
    if others.pop("allow_is_causal_skip", True) and whole and kv_offset == 0:
        return None
    given = {"q_length": q_length, "kv_length": kv_length, "kv_offset": kv_offset}
    return sdpa_mask(**given, attention_mask=attention_mask, allow_is_causal_skip=False, **others)


def _attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    **more: Any,
) -> tuple[Any, None]:
    if attention_mask is not None or query.shape[2] == 1:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **more)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return causal_attention(query, key, value, scale).transpose(1, 2).contiguous(), None


def causal_attention(query: Any, key: Any, value: Any, scale: float) -> Any:
    """Return the attention of the last m of n tokens, each to all up to itself.

    ``query`` has shape (rows, heads, m, size), ``key`` and ``value`` (rows, heads / g, n, size): g heads of
    the queries share one of the keys. Returns (rows, heads, m, size of the values).
    """
    rows, heads, m, size = query.shape
    shared, before = heads // key.shape[1], key.shape[2] - m
    found = query.new_empty(rows, heads, m, value.shape[-1])
    product = torch.ops.mkldnn._linear_pointwise
    future = torch.ones(_BLOCK, _BLOCK, dtype=torch.bool).triu(1)
    for row in range(rows):
        for head in range(key.shape[1]):
            mine = slice(head * shared, (head + 1) * shared)
            for start in range(0, m, _BLOCK):
                stop = min(start + _BLOCK, m)
                n, end = stop - start, before + stop
                asked = (query[row, mine, start:stop] * scale).reshape(-1, size)
                scores = product(asked, key[row, head, :end], None, "none", [], "").view(shared, n, end)
                scores[..., end - n :].masked_fill_(future[:n, :n], float("-inf"))
                weights = scores.softmax(-1).view(-1, end)
                read = product(weights, value[row, head, :end].t().contiguous(), None, "none", [], "")
                found[row, mine, start:stop] = read.view(shared, n, -1)
    return found
