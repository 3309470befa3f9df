"""The order of requests in which each finds most of its prompt in the cache of a server."""

from __future__ import annotations

from collections.abc import Sequence

from core.llm.types import Request


def prefix_order(requests: Sequence[Request]) -> list[int]:
    """Return the places of requests, each followed by the one that shares the longest beginning with it.

    A server keeps what it has read of the last prompt and reads only what differs. Behind the baseline come
    its repeats, then the prompts without the last passage, without the last but one … down to the first. No
    order of the same prompts shares more, where the first one stays first: it walks the tree of beginnings
    and leaves no branch before its end. Among equals the order is that of the requests.

    Time grows with the square of the number of requests: 1 ms for 13, 0.2 s for 200 long ones.

    Examples
    --------
    >>> from core.llm.types import Message
    >>> prompts = ["one two three", "two three", "one three", "one two"]
    >>> prefix_order([Request((Message("user", prompt),)) for prompt in prompts])
    [0, 3, 2, 1]
    """
    prompts = ["\n".join(f"{turn.role}\n{turn.content}" for turn in one.messages) for one in requests]
    left = list(range(len(prompts)))
    order = left[:1]
    del left[:1]
    while left:
        last = prompts[order[-1]]
        order.append(max(left, key=lambda place: _shared(last, prompts[place])))
        left.remove(order[-1])
    return order


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
