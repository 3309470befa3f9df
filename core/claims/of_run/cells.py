"""Claims, passages and cells of a whole run, laid out once: question by question, claim by claim.

Only questions that have claims take part, so a run without claims costs nothing. All cells stand in one flat
array: those of a claim side by side, one per passage of its question in the order of retrieval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.claims.matrix import Bools
from core.claims.types import Floats
from core.run import Run

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cells:
    """The layout.

    Attributes
    ----------
    claims : DataFrame
        The table ``claims`` by question; of each question the answer's claims first, in the table's order.
    query, answer : ndarray
        Of each claim: the row of its question in the run, and whether it is the answer's.
    claim_bounds, passage_bounds : ndarray
        Claims and passages of question q are those from ``bounds[q]`` to ``bounds[q + 1]``.
    passages : ndarray of int
        Rows of the table ``passages``, by question and retrieval rank; equal ranks in the table's order.
    start : ndarray of int
        First cell of each claim, and the number of cells.
    support : ndarray of int
        Of each cell the row of the table ``support``; -1 where there is none.
    probability : ndarray of float
        Of each cell; NaN where nobody judged, or where the table holds no probability.
    """

    claims: pd.DataFrame
    query: Ints
    answer: Bools
    claim_bounds: Ints
    passages: Ints
    passage_bounds: Ints
    start: Ints
    support: Ints
    probability: Floats

    @property
    def n_passages(self) -> Ints:
        """Number of passages of every question with claims, 0 for the others."""
        return np.diff(self.passage_bounds)

    @property
    def width(self) -> Ints:
        """Number of cells of every claim."""
        return np.diff(self.start)

    @property
    def claim_of_cell(self) -> Ints:
        """The claim of every cell."""
        return np.repeat(np.arange(len(self.claims)), self.width)

    @property
    def place_of_cell(self) -> Ints:
        """Place of every cell's passage within its question, from 0."""
        return np.arange(self.probability.size) - np.repeat(self.start[:-1], self.width)

    @property
    def passage_of_cell(self) -> Ints:
        """Row of the table ``passages`` of every cell."""
        first = self.passage_bounds[self.query]
        return self.passages[np.repeat(first, self.width) + self.place_of_cell]

    def by_width(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield claims that have equally many passages together: the claims and their matrix."""
        for width in np.unique(self.width):
            claims = np.flatnonzero(self.width == width)
            yield claims, self.probability[self.start[claims][:, None] + np.arange(width)]

    def matrix(self, query: int, answer: bool) -> tuple[Ints, Ints]:
        """Return the claims of one side of a question, and its cells as claims × passages."""
        claims = np.arange(self.claim_bounds[query], self.claim_bounds[query + 1])
        claims = claims[self.answer[claims] == answer]
        return claims, self.start[claims][:, None] + np.arange(self.n_passages[query])

    def passages_of(self, query: int) -> Ints:
        """Return the rows of a question's passages in the order of retrieval."""
        return self.passages[self.passage_bounds[query] : self.passage_bounds[query + 1]]


def cells_of(run: Run) -> Cells:
    """Lay out the claims and cells of a run.

    Cells of claims or passages that the run does not have are left out, and what is no probability in [0, 1]
    counts as unscored: a table may come from anywhere.
    """
    known, n = pd.Index(run.queries["query_id"]), len(run.queries)
    table = run["claims"]
    query = _located(known, table["query_id"])
    reference = table["side"].eq("reference").fillna(False).to_numpy(dtype=bool)
    order = np.lexsort((reference, query))
    claims, query = table.iloc[order].reset_index(drop=True), query[order]
    passages, passage_bounds = _passages(run, known, query)
    start = _bounds(np.diff(passage_bounds)[query])
    support, probability = _support(run, known, claims, query, passages, passage_bounds, start)
    return Cells(
        claims,
        query,
        ~reference[order],
        _bounds(np.bincount(query, minlength=n)),
        passages,
        passage_bounds,
        start,
        support,
        probability,
    )


def rows_of(query: Ints, names: pd.Series, wanted_query: Ints, wanted: pd.Series) -> Ints:
    """Find rows by question and name: for each one wanted its row, -1 where there is none."""
    codes = pd.factorize(pd.concat([names, wanted], ignore_index=True))[0].astype(np.int64)
    keys = np.concatenate([query, wanted_query]) * (codes.max(initial=0) + 1) + codes
    found = pd.Index(keys[: len(names)]).get_indexer(pd.Index(keys[len(names) :]))
    return np.asarray(found, dtype=np.int64)


def _passages(run: Run, known: pd.Index, query: Ints) -> tuple[Ints, Ints]:
    n = len(known)
    if not query.size:
        return np.empty(0, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    of_passage = _located(known, run.passages["query_id"])
    rows = np.flatnonzero((np.bincount(query, minlength=n) > 0)[of_passage])
    rank = run.passages["retrieval_rank"].to_numpy(dtype=np.float64)[rows]
    ordered = rows[np.lexsort((rank, of_passage[rows]))]
    return ordered, _bounds(np.bincount(of_passage[rows], minlength=n))


def _support(
    run: Run,
    known: pd.Index,
    claims: pd.DataFrame,
    query: Ints,
    passages: Ints,
    passage_bounds: Ints,
    start: Ints,
) -> tuple[Ints, Floats]:
    rows = np.full(int(start[-1]), -1, dtype=np.int64)
    probability = np.full(rows.size, np.nan)
    table = run["support"]
    if rows.size and len(table):
        wanted = _located(known, table["query_id"])
        claim = rows_of(query, claims["claim_id"], wanted, table["claim_id"])
        of_passage = np.repeat(np.arange(len(known)), np.diff(passage_bounds))
        ids = run.passages["passage_id"].iloc[passages]
        passage = rows_of(of_passage, ids, wanted, table["passage_id"])
        found = np.flatnonzero((claim >= 0) & (passage >= 0))
        cell = start[claim[found]] + passage[found] - passage_bounds[wanted[found]]
        rows[cell] = found
        values = table["probability"].to_numpy(dtype=np.float64, na_value=np.nan)[found]
        probability[cell] = np.where((values >= 0) & (values <= 1), values, np.nan)
    return rows, probability


def _located(known: pd.Index, names: pd.Series) -> Ints:
    return np.asarray(known.get_indexer(names), dtype=np.int64)


def _bounds(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
