"""Batches of prompts, and log-probabilities of generated tokens and of given answers."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any


def batches(todo: Sequence[int], most: int, order: Callable[[int], tuple[int, int]]) -> list[list[int]]:
    """Group indices into batches of at most ``most``; with 1 each is alone and the order is kept.

    ``order`` maps an index to ``(group, length)``: a batch has one group, and similar lengths to save
    padding.

    >>> batches([0, 1, 2, 3], 2, lambda index: (0, [30, 10, 20, 40][index]))
    [[1, 2], [0, 3]]
    """
    if most == 1:
        return [[index] for index in todo]
    found: list[list[int]] = []
    for index in sorted(todo, key=lambda index: (*order(index), index)):
        if found and len(found[-1]) < most and order(found[-1][0])[0] == order(index)[0]:
            found[-1].append(index)
        else:
            found.append([index])
    return found


def fitting(todo: Sequence[int], most: int, size: Callable[[int], tuple[int, int]]) -> list[list[int]]:
    """Cut indices, in their order, into batches of at most ``most`` tokens, padded, or of one index.

    ``size`` maps an index to the tokens of its answer, the same in a batch, and of its prompt.

    >>> fitting([0, 1, 2, 3], 60, lambda index: (10, [5, 10, 20, 50][index]))
    [[0, 1], [2], [3]]
    """
    found: list[list[int]] = []
    longest = 0
    for index in todo:
        answer, prompt = size(index)
        longest = max(longest, prompt)
        fits = found and size(found[-1][0])[0] == answer and (len(found[-1]) + 1) * (longest + answer) <= most
        if fits:
            found[-1].append(index)
        else:
            found.append([index])
            longest = prompt
    return found


def together(todo: Sequence[int], most: int, prompt: Callable[[int], Hashable]) -> list[list[int]]:
    """Group indices that have the same prompt, at most ``most`` together.

    >>> together([0, 2, 3, 4], 2, "a?aba".__getitem__)
    [[0, 2], [4], [3]]
    """
    groups: dict[Hashable, list[int]] = {}
    for index in todo:
        groups.setdefault(prompt(index), []).append(index)
    return [group[i : i + most] for group in groups.values() for i in range(0, len(group), most)]


def left_padded(rows: Sequence[Sequence[int]], pad: int, device: str) -> tuple[Any, Any]:
    """Return token ids and attention mask of prompts, each of shape (n, longest); padding is masked out."""
    import torch

    width = max(map(len, rows))
    ids = torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask


class Recorder:
    """Logits processor, the first one: records the model's own log-probability of each chosen token."""

    def __init__(self) -> None:
        self._steps: list[Any] = []
        self._scores: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores unchanged."""
        self._note(input_ids[:, -1])
        self._scores = scores  # never changed in place: later processors copy
        return scores

    def rows(self, output: Any) -> list[list[float]]:
        """Return the log-probabilities of each row's tokens, of shape (n, m) without the prompt."""
        import torch

        if len(self._steps) < output.shape[1]:
            self._note(output[:, -1])
        return torch.stack(self._steps, dim=1).tolist() if self._steps else [[] for _ in output]

    def _note(self, tokens: Any) -> None:
        if self._scores is not None:
            self._steps.append(token_logprobs(self._scores, tokens))


def token_logprobs(logits: Any, tokens: Any) -> Any:
    """Return log softmax(logits) at the tokens; logits have one more axis, the last."""
    logits = logits.float()
    return logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)


class Prompts:
    """Prompts of a model, read once but for their last token, however many answers to them are scored."""

    def __init__(self, model: Any, prompts: Sequence[list[int]], pad: int, device: str) -> None:
        self._model, self._pad, self._device = model, pad, device
        self._accepted = inspect.signature(model.forward).parameters
        shared = "past_key_values" in self._accepted and min(map(len, prompts)) > 1
        self._tails = [prompt[-1:] if shared else prompt for prompt in prompts]
        self._read: Any = None
        if shared:
            ids, self._mask = left_padded([prompt[:-1] for prompt in prompts], pad, device)
            self._read = self._forward(ids, self._mask, 1, use_cache=True).past_key_values

    def answer_logprobs(self, pairs: Sequence[tuple[int, list[int]]]) -> list[tuple[float, ...]]:
        """Return each answer's tokens' log-probabilities; ``pairs`` are (which prompt, tokens)."""
        import torch

        rows = [self._tails[which] + answer for which, answer in pairs]
        ids, mask = left_padded(rows, self._pad, self._device)
        longest = max(len(answer) for _, answer in pairs)
        # The last position predicts what comes after the answer, so it is not read.
        mask, cache = mask[:, :-1], None
        if self._read is not None:
            chosen = torch.tensor([which for which, _ in pairs], device=self._device)
            mask = torch.cat([self._mask[chosen], mask], dim=1)
            # What reads on adds to the cache, and the next answers begin where the prompt ends.
            cache = copy.deepcopy(self._read)
            cache.batch_select_indices(chosen)
        logits = self._forward(ids[:, :-1], mask, longest, cache, use_cache=cache is not None).logits
        found = token_logprobs(logits[:, -longest:], ids[:, -longest:]).tolist()
        return [tuple(row[longest - len(answer) :]) for row, (_, answer) in zip(found, pairs, strict=True)]

    def copies(self, n: int) -> Any:
        """Return what was read of the only prompt, for n rows, and use it up; None without a cache."""
        if self._read is not None:
            self._read.batch_repeat_interleave(n)
        return self._read

    def _forward(self, ids: Any, mask: Any, n_logits: int, cache: Any = None, *, use_cache: bool) -> Any:
        places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "position_ids": places,
            "past_key_values": cache,
            "use_cache": use_cache,
            "logits_to_keep": n_logits,  # a table of all positions by all tokens would be large
        }
        return self._model(**{name: value for name, value in inputs.items() if name in self._accepted})
