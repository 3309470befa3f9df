"""The retriever protocol, and how ties are broken."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

DIGITS = 10  # scores that agree so far are tied: what is beyond comes from the order of additions


class Retriever(Protocol):
    """Ranks the texts it was built from."""

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return one score per text, shape (n,), higher = better; the range is the retriever's own."""
        ...

    def top(self, query: str, k: int) -> list[int]:
        """Return the indices of the k best texts, best first; fewer when there are fewer texts.

        Ties keep corpus order.
        """
        return best(self.scores(query), k)


def best(scores: NDArray[np.float64], k: int) -> list[int]:
    """Return the places of the k highest scores, best first; ties keep corpus order."""
    key = -np.round(scores, DIGITS)
    # Only what may be among the first k is sorted: the k-th, what is before it and what is tied with it.
    places = (
        np.flatnonzero(~(key > np.partition(key, k - 1)[k - 1])) if 0 < k < key.size else np.arange(key.size)
    )
    return [int(i) for i in places[np.argsort(key[places], kind="stable")[:k]]]
