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
    return [int(i) for i in np.argsort(-np.round(scores, DIGITS), kind="stable")[:k]]
