"""Where passages of each retrieval rank stand by influence: observed, and in random orders."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from core.arrays import Floats, Ints
from core.influence.analysis import InfluenceAnalysis

MOST_CELLS = 20  # a side; beyond, neighbouring ranks share a cell


class Places(NamedTuple):
    """Passages by retrieval rank and by influence rank, in cells of equally many ranks.

    ``first`` and ``last``, (m,), are the ranks that share each cell. ``observed`` and ``expected``, (m, m):
    passages, rows are influence ranks; ``expected`` is what random orders give, exactly. ``n_questions``, (m,
    m): questions with a passage in the cell, if only a part of it. ``whole``: whether every
    retrieval rank, for tied passages their mean, is a whole number.
    """

    first: Floats
    last: Floats
    observed: Floats
    expected: Floats
    n_questions: Ints
    n_passages: int
    n: int
    whole: bool


def places(analysis: InfluenceAnalysis, label: str | None = None) -> Places:
    """Count the passages of each retrieval rank by their rank by influence.

    Passages of equal influence belong in equal parts to all ranks that their tie spans, so a tie adds nothing
    beyond chance to any of them. Questions without a ρ are left out, and those without the ``label`` where
    one is given; no cells where none is left.

    >>> import pandas as pd
    >>> from core.influence import analyse
    >>> from core.run import Run
    >>> passages = pd.DataFrame(
    ...     {
    ...         "query_id": "q",
    ...         "passage_id": ["a", "b", "c"],
    ...         "retrieval_rank": [1, 2, 3],
    ...         "influence_score": [0.9, 0.0, 0.0],
    ...     }
    ... )
    >>> queries = pd.DataFrame({"query_id": ["q"], "question": ["Who?"]})
    >>> found = places(analyse(Run.create({"source": "upload"}, queries=queries, passages=passages)))
    >>> found.observed.tolist(), found.expected.round(2).tolist()[0]
    ([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]], [0.33, 0.33, 0.33])
    """
    questions = analysis.defined
    if label is not None:
        questions = questions[questions["label"] == label]
    ids = pd.Index(questions["query_id"])
    rows = analysis.passages[analysis.passages["query_id"].isin(ids)]
    question = ids.get_indexer(rows["query_id"])
    k = questions["k"].to_numpy()[question]
    top = int(k.max()) if k.size else 0
    width = max(1, -(-top // MOST_CELLS))
    first = np.arange(1, top + 1, width, dtype=np.float64)
    last = np.minimum(first + width - 1, top)

    # Retrieval ranks are rarely tied; a half belongs to the rank behind it.
    order = rows["retrieval_order"].to_numpy()
    column = ((np.floor(order + 0.5) - 1) // width).astype(np.int64)
    begin, end = rows["best_influence_rank"].to_numpy(), rows["worst_influence_rank"].to_numpy()
    shape = (first.size, first.size)
    observed, expected, n_questions = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    for i, (low, high) in enumerate(zip(first, last, strict=True)):
        inside = _overlap(begin, end, low, high)
        observed[i] = np.bincount(column, inside / (end - begin + 1), first.size)
        expected[i] = np.bincount(column, _overlap(np.ones(k.size), k, low, high) / k, first.size)
        touching = np.unique(np.stack([column, question])[:, inside > 0], axis=1)
        n_questions[i] = np.bincount(touching[0], minlength=first.size)
    whole = bool((order % 1 == 0).all())
    return Places(first, last, observed, expected, n_questions, len(rows), len(questions), whole)


def _overlap(begin: Floats, end: Floats, low: float, high: float) -> Floats:
    """How many of the ranks from ``begin`` to ``end`` lie from ``low`` to ``high``."""
    return np.clip(np.minimum(end, high) - np.maximum(begin, low) + 1, 0, None)
