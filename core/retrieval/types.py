"""What the pipeline asks of a retriever."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Retriever(Protocol):
    """Ranks the texts it was built from."""

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return one score per text, shape (n,), higher = better; the range is the retriever's own."""
        ...

    def top(self, query: str, k: int) -> list[int]:
        """Return the indices of the k best texts, best first; fewer when there are fewer texts."""
        ...
