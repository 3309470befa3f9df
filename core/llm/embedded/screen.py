"""The quick screen: about how likely an answer is without each passage, from one reading of the prompt.

Without a passage, everything behind it would be read differently. The screen reads again only the question,
the answer and a few tokens where texts meet. It keeps what the model noted of the other passages (keys and
values), though the later ones were read with the passage in sight. The gap is closed: positions are relative
where they are rotations, so what stood behind it counts as that much nearer. Exact where nothing is kept from
behind the gap, else approximate. AttriBoT (arXiv 2411.15102) keeps what stands before the gap, CacheBlend
(arXiv 2405.16444) also what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from core.llm.embedded.scoring import token_logprobs
from core.llm.types import IsCancelled, stop_if

Span = tuple[int, int]
_ATTENTION = "leadline_screen"
_PACK_BYTES = 512 * 2**20  # of what grows with the rows that are read together
# What is read again, where one text gives way to the next and takes up most of what came before: the first
# tokens of each later passage, and the last ones before the question.
_AGAIN, _LAST = 8, 16
_TRIED, _MOVED = 24, 37  # tokens of the trial, and how far it moves them
# Frequencies that depend on the length of the prompt: a key kept from a longer one is no rotation away.
_CHANGING = ("dynamic", "longrope")


def removed_span(full: Sequence[int], without: Sequence[int]) -> Span | None:
    """Return the last (begin, end) whose removal turns one prompt into the other; None where there is none.

    >>> removed_span([1, 5, 7, 5, 8, 9], [1, 5, 8, 9])
    (2, 4)
    """
    n = len(full) - len(without)
    same = (a == b for a, b in zip(full, without, strict=False))
    begin = next((i for i, equal in enumerate(same) if not equal), len(without))
    return (begin, begin + n) if n > 0 and list(full[begin + n :]) == list(without[begin:]) else None


class Screen:
    """The screen of one causal model of transformers: rotary positions or none, an ordinary growing cache.

    Whether it ``works`` is tried out on a few tokens: keys must move as a rotation says, and a gap with
    nothing kept behind it must give what the model itself says.
    """

    def __init__(self, model: Any, device: str) -> None:
        self._model, self._device = model, device
        self._turns: list[_Turn | None] = []
        self.works = self._try()

    def scores(
        self,
        full: Sequence[int],
        without: Sequence[Sequence[int]],
        answers: Sequence[Sequence[int]],
        cancelled: IsCancelled | None = None,
    ) -> list[list[tuple[float, ...] | None]]:
        """Return what `logprobs` finds, ``[prompt][answer]``, for a prompt and for those that lack a span."""
        spans = [(0, 0), *(removed_span(full, one) for one in without)]
        asked = {i: span for i, span in enumerate(spans) if span is not None and span[1] < len(full)}
        texts = {i: answer for i, answer in enumerate(answers) if answer}
        found: list[list[tuple[float, ...] | None]] = [[None] * len(answers) for _ in spans]
        if not self.works or len(asked) == 1 or not texts:
            return found
        read = self.logprobs(full, list(asked.values()), list(texts.values()), cancelled)
        for i, of_span in zip(asked, read or [], strict=read is not None):
            for j, logprobs in zip(texts, of_span, strict=True):
                found[i][j] = logprobs
        return found

    def logprobs(
        self,
        prompt: Sequence[int],
        spans: Sequence[Span],
        answers: Sequence[Sequence[int]],
        cancelled: IsCancelled | None = None,
    ) -> list[list[tuple[float, ...]]] | None:
        """Return the log-probability of each token of each answer without each span: ``[span][answer]``.

        The tail behind the last span, at least one token, is read again with every answer. Exact for an empty
        span and for one that ends where the tail begins. None where the model has not kept all of so long a
        prompt.
        """
        tail = max(end for _, end in spans)
        kept = self._read(prompt[:tail], len(prompt) + max(map(len, answers)))
        if kept is None:
            return None
        rows = [self._row(prompt, span, spans, tail, answer) for span in spans for answer in answers]
        found: list[tuple[float, ...]] = []
        for pack in self._packs(rows):
            stop_if(cancelled)
            found += self._scored(pack, kept)
        return [found[i : i + len(answers)] for i in range(0, len(found), len(answers))]

    def _read(self, tokens: Sequence[int], most: int) -> list[Any] | None:
        """Return the cache layers of tokens; None where one of them forgets before ``most`` tokens."""
        layers = self._forward(list(tokens), use_cache=True, logits_to_keep=1).past_key_values.layers
        for layer in layers:
            if layer.keys.shape[-2] != len(tokens) or getattr(layer, "sliding_window", most) < most:
                return None
        return list(layers)

    def _row(
        self, prompt: Sequence[int], span: Span, spans: Sequence[Span], tail: int, answer: Sequence[int]
    ) -> _Row:
        """Choose what is read again without a span."""
        begin, end = span
        behind = [first for first, last in spans if end <= first < last] if begin < end else []
        starts = {i for first in behind for i in range(first, min(first + _AGAIN, tail))}
        again = sorted(starts.union(range(max(end, tail - _LAST), tail) if begin < end else ()))
        tokens = [prompt[i] for i in again] + [*prompt[tail:], *answer[:-1]]
        places = [*again, *range(tail, len(prompt) + len(answer) - 1)]
        kept = sorted({*range(end, tail)}.difference(again))
        return _Row(
            begin, begin - end, tokens, places, list(answer), self._indices(kept), self._indices(places)
        )

    def _indices(self, numbers: Sequence[int]) -> Any:
        import torch

        return torch.tensor(numbers, dtype=torch.long, device=self._device)

    def _packs(self, rows: Sequence[_Row]) -> Iterator[Sequence[_Row]]:
        """Split rows so that those read together fit into memory."""
        config = self._model.config.get_text_config()
        logits = 2 * max(len(row.answer) for row in rows) * config.vocab_size  # and their logarithms
        states = 8 * max(len(row.tokens) for row in rows) * (config.hidden_size + config.intermediate_size)
        most = max(1, _PACK_BYTES // (4 * (logits + states)))
        for i in range(0, len(rows), most):
            yield rows[i : i + most]

    def _scored(self, rows: Sequence[_Row], kept: Sequence[Any]) -> list[tuple[float, ...]]:
        """Return the log-probabilities of the answers of some rows, from one forward pass."""
        import torch
        from transformers import AttentionInterface, Cache

        ends = list(accumulate(len(row.tokens) for row in rows))
        wanted = [i for row, end in zip(rows, ends, strict=True) for i in range(end - len(row.answer), end)]
        layers = [
            _Kept(layer.keys[0], layer.values[0], turn, rows)
            for layer, turn in zip(kept, self._turns, strict=True)
        ]
        config = self._model.config.get_text_config()
        before, now = config._attn_implementation, _LAYERS.set(layers)
        AttentionInterface.register(_ATTENTION, _attention)
        config._attn_implementation = _ATTENTION
        try:
            logits = self._forward(
                [token for row in rows for token in row.tokens],
                # Every token keeps its place; `_attention` sees to what is nearer with the gap closed.
                position_ids=torch.cat([row.at for row in rows])[None],
                past_key_values=Cache(layers=layers),
                use_cache=True,
                logits_to_keep=self._indices(wanted),
            ).logits[0]
        finally:
            config._attn_implementation = before
            _LAYERS.reset(now)
        answers = [row.answer for row in rows]
        found = token_logprobs(logits, self._indices([token for answer in answers for token in answer]))
        return [tuple(one.tolist()) for one in found.split([len(answer) for answer in answers])]

    def _forward(self, tokens: Sequence[int], **inputs: Any) -> Any:
        return self._model(input_ids=self._indices(tokens)[None], **inputs)

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
            plain = self._forward(ids[:begin] + ids[end:], logits_to_keep=len(answer) + 1).logits[0, :-1]
            true = token_logprobs(plain, self._indices(answer))
            return found is not None and _apart(torch.tensor(found[0][0]), true.cpu()) < close
        except Exception:  # a model's own code may fail in any way on a cache that it does not expect
            return False

    def _keys(self, ids: Sequence[int], first: int) -> list[Any]:
        places = self._indices(range(first, first + len(ids)))[None]
        read = self._forward(ids, position_ids=places, use_cache=True, logits_to_keep=1)
        return [layer.keys for layer in read.past_key_values.layers]


@dataclass(frozen=True, slots=True)
class _Row:
    """What is read again without a span: ``tokens`` at ``places``, moved ``by`` the gap at ``begin``."""

    begin: int
    by: int
    tokens: list[int]
    places: list[int]
    answer: list[int]
    kept: Any
    at: Any


@dataclass(frozen=True, slots=True)
class _Turn:
    """How keys move along a prompt: pairs of dimensions turn, far apart or ``neighbours`` (Cohere)."""

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

    def __init__(self, keys: Any, values: Any, turn: _Turn | None, rows: Sequence[_Row]) -> None:
        self.keys, self.values, self.turn, self.rows = keys, values, turn, rows

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
    scaling: float,
    softcap: float | None = None,
    **_: Any,
) -> tuple[Any, None]:
    """Attend, in each row, to what was kept outside its span and to the row's own tokens so far."""
    import torch

    layer = _LAYERS.get()[module.layer_idx]
    query = query * scaling
    sizes = [len(row.tokens) for row in layer.rows]
    found = []
    for row, *own in zip(
        layer.rows, *(states[0].split(sizes, dim=1) for states in (query, key, value)), strict=True
    ):
        asked, keys, values = own
        n_heads, n, size = asked.shape
        # With the gap closed, what stands before it is that much nearer.
        nearer = layer.turn.moved(asked, row.by) if layer.turn is not None and row.by else asked
        parts = (
            (nearer, layer.keys[:, : row.begin], layer.values[:, : row.begin]),
            (asked, layer.keys[:, row.kept], layer.values[:, row.kept]),
            (asked, keys, values),
        )
        # Several heads of the queries share one of the keys.
        scores = torch.cat([q.reshape(len(k), -1, size) @ k.mT for q, k, _ in parts], dim=2)
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        later = row.at[:, None] < torch.cat([row.kept, row.at])
        scores.view(n_heads, n, -1)[..., row.begin :].masked_fill_(later, float("-inf"))
        weights = scores.softmax(-1, dtype=torch.float32).to(values.dtype)
        split = weights.split([k.shape[1] for _, k, _ in parts], dim=2)
        read = sum(w @ v for w, (_, _, v) in zip(split, parts, strict=True))
        found.append(read.view(n_heads, n, -1))
    return torch.cat(found, dim=1).transpose(0, 1)[None], None


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
