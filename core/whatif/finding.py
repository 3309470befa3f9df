"""Passages for a question among those of the other questions of its run."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.losses.arms import Shown
from core.retrieval import FastBM25Retriever, best
from core.run import Run


class Elsewhere:
    """The distinct passages of a run, ranked by BM25; building it reads all of them once. No LLM calls."""

    def __init__(self, run: Run) -> None:
        columns = ["passage_id", "title", "text"]
        both = pd.concat([run["passages"][columns], run["gold"][columns]], ignore_index=True)
        both = both[both["text"].fillna("").str.strip().ne("")].drop_duplicates("text")
        self._rows = [
            Shown(str(name), title if isinstance(title, str) else "", text)
            for name, title, text in both.itertuples(index=False)
        ]
        self._texts = [one.text for one in self._rows]
        self._retriever = FastBM25Retriever(self._texts)

    def find(self, query: str, known: frozenset[str] = frozenset(), n: int = 5) -> tuple[Shown, ...]:
        """Return up to ``n`` passages for a query, best first; none without a word of it, none ``known``."""
        held = self._retriever.holding(query)
        ranked = best(np.where(held, self._retriever.scores(query), -np.inf), n + len(known))
        found = [self._rows[i] for i in ranked if held[i] and self._texts[i] not in known]
        return tuple(found[:n])
