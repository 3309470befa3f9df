"""Group prompts into batches, and pad them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any


def batches(todo: Sequence[int], most: int, order: Callable[[int], tuple[int, int]]) -> list[list[int]]:
    """Group indices into batches of at most ``most``.

    ``order`` maps an index to ``(group, length)``: only one group shares a batch, in order of length to save
    padding. With ``most`` 1, as on a processor, each index is alone and the order is kept.

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
    """Cut indices, in their order, into batches of at most ``most`` tokens, or of one index.

    ``size`` maps an index to the tokens of its answer, of which a batch has one number only, and those of its
    prompt; every row takes as many as the longest.

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
