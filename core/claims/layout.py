"""Where the claims, passages and cells of a whole run are: question by question, claim by claim.

All cells are in one flat array: those of a claim side by side, one per passage of its question in retrieval
order. No threshold is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from core.claims.causal import UNKNOWN, causal_labels
from core.claims.types import Bools, Floats, Ints, Labels
from core.run import Run

JointPair = tuple[int, int, int, float]


@dataclass(frozen=True, eq=False)
class MatrixLayout:
    """Where each claim, passage and cell of a run is."""

    run: Run = field(repr=False)
    claims: pd.DataFrame  # the table by question; the answer's claims first, in the table's order
    query: Ints  # row of each claim's question in the run
    of_answer: Bools  # whether a claim is the answer's; else it is the reference answer's
    claim_bounds: Ints  # claims of question q: from bounds[q] to bounds[q + 1]
    passages: Ints  # rows of the table, by question and retrieval rank; equal ranks in the table's order
    passage_bounds: Ints
    start: Ints  # first cell of each claim, then the number of cells
    support: Ints  # of each cell its row of the table; -1 = none
    probability: Floats  # of each cell, in [0, 1]; NaN where the table has none

    @property
    def width(self) -> Ints:
        """Number of cells of every claim: passages of its question."""
        return np.diff(self.start)

    @cached_property
    def claim_of_cell(self) -> Ints:
        """The claim of every cell."""
        return np.repeat(np.arange(len(self.claims)), self.width)

    @cached_property
    def passage_of_cell(self) -> Ints:
        """Row of the table ``passages`` of every cell."""
        first = np.repeat(self.passage_bounds[self.query], self.width)
        return self.passages[first + _places(self.start)]

    @cached_property
    def effects(self) -> Labels:
        """Leave-one-out effect of every cell, *unknown* for references; slow, so only where it is needed."""
        found = np.full(self.probability.size, UNKNOWN, dtype=object)
        ablated = ablated_answers(self.run.passages)
        for query in range(len(self.run.queries)):
            cells = self.matrix(query, of_answer=True)[1]
            if cells.size:
                found[cells] = self.effects_of(query, [ablated[row] for row in self.passages_of(query)])
        return found

    def effects_of(self, query: int, ablated: Sequence[str | None]) -> Labels:
        """Return the effects of one answer's claims × passages, given the answers without each passage."""
        texts, asked = self.claims["text"], self.run.queries
        answer = asked["answer"].iloc[query]
        return causal_labels(
            [texts.iloc[i] for i in self.matrix(query, of_answer=True)[0]],
            ablated,
            None if pd.isna(answer) else answer,
            asked["question"].iloc[query],
        )

    @cached_property
    def pairs(self) -> list[JointPair]:
        """A claim, two places of passages, and the probability that these support it together."""
        table = self.run["joint_support"]
        claim = _rows_of(self.claims, table, "claim_id", "claim_id")
        both = [self.locate_passages(table, name) for name in ("passage_id", "second_passage_id")]
        p = table["probability"].to_numpy(dtype=np.float64, na_value=np.nan)
        known = (claim >= 0) & (both[0] >= 0) & (both[1] >= 0) & (both[0] != both[1]) & (p <= 1)
        rows = np.flatnonzero(known)
        places = np.sort(np.stack(both, axis=1), axis=1)[rows].tolist()
        return [(int(c), i, j, float(q)) for c, (i, j), q in zip(claim[rows], places, p[rows], strict=True)]

    def by_width(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield claims with equally many passages together, with their matrix."""
        for width in np.unique(self.width):
            claims = np.flatnonzero(self.width == width)
            yield claims, self.probability[self.start[claims][:, None] + np.arange(width)]

    def matrix(self, query: int, of_answer: bool) -> tuple[Ints, Ints]:
        """Return the claims of one side of a question, and its cells as claims × passages."""
        claims = np.arange(self.claim_bounds[query], self.claim_bounds[query + 1])
        claims = claims[self.of_answer[claims] == of_answer]
        return claims, self.start[claims][:, None] + np.arange(self.passages_of(query).size)

    def passages_of(self, query: int) -> Ints:
        """Return the rows of a question's passages in retrieval order."""
        return self.passages[self.passage_bounds[query] : self.passage_bounds[query + 1]]

    def locate_passages(self, frame: pd.DataFrame, column: str) -> Ints:
        """Return the place, from 0, of each row's passage within its question; -1 where there is none."""
        rows = _rows_of(self.run.passages, frame, "passage_id", column)
        place = np.full(self.passages.size + 1, -1, dtype=np.int64)  # the last is for row -1
        place[self.passages] = _places(self.passage_bounds)
        return place[rows]


def layout_of(run: Run) -> MatrixLayout:
    """Lay out the claims and cells of a run; cells without their claim or passage are left out.

    What is no probability in [0, 1] counts as unscored.
    """
    known, n = pd.Index(run.queries["query_id"]), len(run.queries)
    table, ranks = run["claims"], run.passages["retrieval_rank"].to_numpy(dtype=np.float64)
    query, of_passage = (known.get_indexer(frame["query_id"]) for frame in (table, run.passages))
    of_reference = table["side"].eq("reference").fillna(False).to_numpy(dtype=bool)
    order = np.lexsort((of_reference, query))
    query = query[order].astype(np.int64)
    n_passages = np.bincount(of_passage, minlength=n)
    start = _bounds(n_passages[query])
    layout = MatrixLayout(
        run,
        table.iloc[order].reset_index(drop=True),
        query,
        ~of_reference[order],
        _bounds(np.bincount(query, minlength=n)),
        np.lexsort((ranks, of_passage)),
        _bounds(n_passages),
        start,
        np.full(int(start[-1]), -1, dtype=np.int64),
        np.full(int(start[-1]), np.nan),
    )
    support = run["support"]
    claim = _rows_of(layout.claims, support, "claim_id", "claim_id")
    place = layout.locate_passages(support, "passage_id")
    found = np.flatnonzero((claim >= 0) & (place >= 0))
    cells = start[claim[found]] + place[found]
    values = support["probability"].to_numpy(dtype=np.float64, na_value=np.nan)[found]
    layout.support[cells] = found
    layout.probability[cells] = np.where((values >= 0) & (values <= 1), values, np.nan)
    return layout


def ablated_answers(passages: pd.DataFrame) -> list[str | None]:
    """Return for each row of a table ``passages`` the answer without it; None where there is none."""
    known = passages["ablated_answer"].notna() & passages["ablated_status"].ne("error").fillna(True)
    return [a if k else None for a, k in zip(passages["ablated_answer"], known, strict=True)]


def _rows_of(table: pd.DataFrame, wanted: pd.DataFrame, name: str, column: str) -> Ints:
    """Find the rows of a table by question and id; -1 where there is none."""
    index, keys = (
        pd.MultiIndex.from_arrays([frame["query_id"], frame[own]])
        for frame, own in ((table, name), (wanted, column))
    )
    return np.asarray(index.get_indexer(keys), dtype=np.int64)


def _bounds(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _places(bounds: Ints) -> Ints:
    """Count from 0 within each part."""
    return np.arange(bounds[-1]) - np.repeat(bounds[:-1], np.diff(bounds))
