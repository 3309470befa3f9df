"""The quick screen: about how likely an answer is without each passage, from one reading of the prompt.

Without a passage, everything behind it would be read differently. The screen reads only the question and the
answer again, and keeps what the model noted of the other passages (keys and values), though the later ones
were read with the passage in sight. The gap is closed: positions are relative where they are rotations, so
what stood behind it counts as that much nearer. Exact where nothing is kept from behind the gap, else
approximate. AttriBoT (arXiv 2411.15102) keeps what stands before the gap, CacheBlend (arXiv 2405.16444) also
what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from core.llm.embedded.scoring import token_logprobs
from core.llm.types import IsCancelled, stop_if

Span = tuple[int, int]
_ATTENTION = "leadline_screen"
_PACK_BYTES = 512 * 2**20  # of what grows with the rows that are read together
_TRIED, _MOVED = 24, 37  # tokens of the trial, and how far it moves them
# Frequencies that depend on the length of the prompt: a key kept from a longer one is no rotation away.
_CHANGING = ("dynamic", "longrope")


def removed_span(full: Sequence[int], without: Sequence[int]) -> Span | None:
    """Return the (begin, end) whose removal turns one prompt into the other; None where there is none.

    Of several such spans the last: everything before it was read without what is removed.

    >>> removed_span([1, 5, 7, 5, 8, 9], [1, 5, 8, 9])
    (2, 4)
    """
    n = len(full) - len(without)
    same = (a == b for a, b in zip(full, without, strict=False))
    begin = next((i for i, equal in enumerate(same) if not equal), len(without))
    return (begin, begin + n) if n > 0 and list(full[begin + n :]) == list(without[begin:]) else None


class Screen:
    """The screen of one causal model of transformers.

    Works with rotary positions (or none), an ordinary growing cache and a replaceable attention, as of Llama,
    Qwen, Gemma and Phi. Whether it does is tried out on a few tokens, not read off the name: keys must move
    as a rotation says, and a gap with nothing kept behind it must give what the model itself says.

    Attributes
    ----------
    works : bool
        Whether `logprobs` can be asked.
    """

    def __init__(self, model: Any, device: str) -> None:
        self._model, self._device = model, device
        self._turns: list[_Turn | None] = []
        self.works = self._try()

    def logprobs(
        self,
        prompt: Sequence[int],
        spans: Sequence[Span],
        answers: Sequence[Sequence[int]],
        cancelled: IsCancelled | None = None,
    ) -> list[list[tuple[float, ...]]] | None:
        """Return the log-probability of each token of each answer without each span: ``[span][answer]``.

        The tail behind the last span is read again with every answer: it has at least one token, and no
        answer is empty. An empty span, ``(i, i)``, is the prompt as it is. None where the model has not kept
        all of so long a prompt.

        Notes
        -----
        Exact for an empty span and for one that ends where the tail begins, else approximate. Cost: the
        prompt once, tail and answer once for every span and answer. Memory: keys and values of the prompt,
        and at most half a GB for the rows read together.
        """
        tail = max(end for _, end in spans)
        kept = self._read(prompt[:tail], len(prompt) + max(map(len, answers)))
        if kept is None:
            return None
        rows = [_Row(span, tuple(prompt[tail:]), tuple(answer)) for span in spans for answer in answers]
        found: list[tuple[float, ...]] = []
        for pack in self._packs(rows, tail):
            stop_if(cancelled)
            found += self._scored(pack, kept, tail)
        return [found[i : i + len(answers)] for i in range(0, len(found), len(answers))]

    def _read(self, tokens: Sequence[int], most: int) -> list[Any] | None:
        """Return the cache layers of tokens; None where one of them forgets before ``most`` tokens."""
        layers = self._forward([list(tokens)], use_cache=True, logits_to_keep=1).past_key_values.layers
        for layer in layers:
            if layer.keys.shape[-2] != len(tokens) or getattr(layer, "sliding_window", most) < most:
                return None
        return list(layers)

    def _packs(self, rows: Sequence[_Row], tail: int) -> Iterator[Sequence[_Row]]:
        config = self._model.config.get_text_config()
        longest = max(len(row.answer) for row in rows)
        logits = 2 * longest * config.vocab_size  # and their logarithms
        states = 8 * (len(rows[0].tail) + longest) * (config.hidden_size + config.intermediate_size)
        most = max(1, _PACK_BYTES // (4 * (logits + states)))
        for i in range(0, len(rows), most):
            yield rows[i : i + most]

    def _scored(self, rows: Sequence[_Row], kept: Sequence[Any], tail: int) -> list[tuple[float, ...]]:
        """Return the log-probabilities of the answers of some rows, from one forward pass."""
        import torch
        from transformers import AttentionInterface, Cache

        longest = max(len(row.answer) for row in rows)
        ids = [[*row.tail, *row.answer[:-1], *[0] * (longest - len(row.answer))] for row in rows]
        layers = [
            _Kept(layer.keys[0], layer.values[0], turn, [row.span for row in rows])
            for layer, turn in zip(kept, self._turns, strict=True)
        ]
        config = self._model.config.get_text_config()
        before, now = config._attn_implementation, _LAYERS.set(layers)
        AttentionInterface.register(_ATTENTION, _attention)
        config._attn_implementation = _ATTENTION
        try:
            # Every token has its old place; what is nearer with the gap closed is seen to in `_attention`.
            places = torch.arange(tail, tail + len(ids[0]), device=self._device).expand(len(ids), -1)
            cache = Cache(layers=layers)
            logits = self._forward(
                ids, position_ids=places, past_key_values=cache, use_cache=True, logits_to_keep=longest
            ).logits
        finally:
            config._attn_implementation = before
            _LAYERS.reset(now)
        answers = [torch.tensor(row.answer, device=self._device) for row in rows]
        return [
            tuple(token_logprobs(of_row[: len(answer)], answer).tolist())
            for of_row, answer in zip(logits, answers, strict=True)
        ]

    def _forward(self, ids: Sequence[Sequence[int]], **inputs: Any) -> Any:
        import torch

        return self._model(input_ids=torch.tensor(ids, device=self._device), **inputs)

    def _try(self) -> bool:
        """Find out how the keys of every layer move, and whether a gap is exact where it must be."""
        import torch

        try:
            close = torch.finfo(self._model.dtype).eps ** 0.5
            ids = [(7 * i + 11) % self._model.config.get_text_config().vocab_size for i in range(_TRIED)]
            turns = [None, *_turns(self._model)]
            for here, there in zip(self._keys(ids, 0), self._keys(ids, _MOVED), strict=True):
                apart = [_apart(here if turn is None else turn.moved(here, _MOVED), there) for turn in turns]
                if min(apart) > close:
                    return False
                self._turns.append(turns[apart.index(min(apart))])
            begin, end, n = _TRIED // 6, _TRIED // 3, 2 * _TRIED // 3
            prompt, answer = ids[:n], ids[n:]
            found = self.logprobs(prompt, [(begin, end)], [answer])
            plain = self._forward([ids[:begin] + ids[end:]], logits_to_keep=len(answer) + 1).logits[0, :-1]
            true = token_logprobs(plain, torch.tensor(answer, device=self._device))
            return found is not None and _apart(torch.tensor(found[0][0]), true.cpu()) < close
        except Exception:  # a model's own code may fail in any way on a cache that it does not expect
            return False

    def _keys(self, ids: Sequence[int], first: int) -> list[Any]:
        import torch

        places = torch.arange(first, first + len(ids), device=self._device)[None]
        read = self._forward([ids], position_ids=places, use_cache=True, logits_to_keep=1)
        return [layer.keys for layer in read.past_key_values.layers]


@dataclass(frozen=True, slots=True)
class _Row:
    """What is read again without a span: the tail and an answer, both with at least one token."""

    span: Span
    tail: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Turn:
    """How keys and queries move along a prompt: pairs of their dimensions turn, each with its frequency.

    The two of a pair stand half the rotary dimensions apart (Llama) or are ``neighbours`` (Cohere).
    """

    frequencies: Any
    neighbours: bool

    def moved(self, states: Any, by: int) -> Any:
        """Return states of shape (…, head dimension) as they would be ``by`` places further on."""
        angle = by * self.frequencies.float()
        cos, sin = angle.cos().to(states.dtype), angle.sin().to(states.dtype)
        m = len(angle)
        pairs = (slice(0, m), slice(m, 2 * m))
        one, two = (slice(0, 2 * m, 2), slice(1, 2 * m, 2)) if self.neighbours else pairs
        turned = states.clone()
        turned[..., one] = states[..., one] * cos - states[..., two] * sin
        turned[..., two] = states[..., two] * cos + states[..., one] * sin
        return turned


class _Kept:
    """A cache layer with what was kept of the prompt, which `_attention` reads; nothing is added to it."""

    is_initialized, is_sliding, is_compileable = True, False, False

    def __init__(self, keys: Any, values: Any, turn: _Turn | None, spans: Sequence[Span]) -> None:
        self.keys, self.values, self.turn, self.spans = keys, values, turn, spans

    def get_seq_length(self) -> int:
        return int(self.keys.shape[-2])

    def update(self, keys: Any, values: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        return keys, values


# Those of the forward pass under way: a model hands its attention function nothing of the caller's.
_LAYERS: ContextVar[Sequence[_Kept]] = ContextVar("_LAYERS")


def _attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    _mask: Any,
    scaling: float | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[Any, None]:
    """Attend, in each row, to what was kept outside its span and to the row's own tokens so far."""
    import torch

    layer = _LAYERS.get()[module.layer_idx]
    n_rows, n_heads, n, size = query.shape
    shared = key.shape[1]  # each by several heads of the queries
    query = query * (size**-0.5 if scaling is None else scaling)
    future = torch.ones(n, n, dtype=torch.bool, device=query.device).triu(1)
    found = query.new_empty(n_rows, n, n_heads, value.shape[-1])
    for row, (begin, end) in enumerate(layer.spans):
        asked = query[row]
        # With the gap closed, what stands before it is that much nearer.
        nearer = asked if layer.turn is None or begin == end else layer.turn.moved(asked, begin - end)
        parts = (
            (nearer, layer.keys[:, :begin], layer.values[:, :begin]),
            (asked, layer.keys[:, end:], layer.values[:, end:]),
            (asked, key[row], value[row]),
        )
        scores = torch.cat([q.reshape(shared, -1, size) @ k.mT for q, k, _ in parts], dim=2)
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        scores.view(n_heads, n, -1)[..., -n:].masked_fill_(future, float("-inf"))
        weights = scores.softmax(-1, dtype=torch.float32).to(value.dtype)
        split = weights.split([k.shape[1] for _, k, _ in parts], dim=2)
        read = sum(w @ v for w, (_, _, v) in zip(split, parts, strict=True))
        found[row] = read.view(n_heads, n, -1).transpose(0, 1)
    return found, None


def _turns(model: Any) -> list[_Turn]:
    """Return how keys might move in a model: by each of its tables of frequencies, in both orders."""
    kinds = " ".join(str(getattr(module, "rope_type", "")) for module in model.modules())
    if any(kind in kinds for kind in _CHANGING):
        return []
    tables = [table for name, table in model.named_buffers() if name.endswith("inv_freq") and table.ndim == 1]
    return [_Turn(table, neighbours) for table in tables for neighbours in (False, True)]


def _apart(a: Any, b: Any) -> float:
    """Return the distance of two tensors relative to the second."""
    return float((a - b).float().norm() / b.float().norm())
