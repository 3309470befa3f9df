"""One row per claim of an answer and passage, for tables and exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from core.claims.analysis.spans import sentences_of
from core.claims.types import Ints

if TYPE_CHECKING:
    from core.claims.analysis.claims_analysis import ClaimsAnalysis

_OF_CLAIM = ("relevant", "state", "verdict", "uncertainty", "support_maximum", "any_support", "joint")
_OF_PASSAGE = ("influence", "above_noise", "quadrant")


def cell_table(found: ClaimsAnalysis) -> pd.DataFrame:
    """Return the rows, as `ClaimsAnalysis.to_frame`."""
    run, layout = found.run, found.layout
    own = np.flatnonzero(layout.of_answer)
    n = np.maximum(layout.width[own], 1)  # a claim without passages is still a claim
    claim = np.repeat(np.arange(own.size), n)
    place = np.arange(claim.size) - np.repeat(np.cumsum(n) - n, n)
    cell = np.where(layout.width[own][claim] > 0, layout.start[own][claim] + place, -1)
    passage, support = _at(layout.passage_of_cell, cell), _at(layout.support, cell)
    said = found.claims.iloc[claim]
    frame = pd.DataFrame(
        {
            "query_id": said["query_id"].array,
            "question": run.queries["question"].iloc[layout.query[own][claim]].array,
            "claim_id": said["claim_id"].array,
            "claim": said["text"].array,
            **{name: said[name].array for name in _OF_CLAIM},
        }
    )
    # Row -1 of `reindex` is a row of missing values.
    of_passage = run.passages[["passage_id", "retrieval_rank", "title"]].reindex(passage)
    of_cell = run["support"][["probability", "agreement", "judge"]].reindex(support)
    frame = frame.assign(**{name: part[name].array for part in (of_passage, of_cell) for name in part})
    # What is no probability was not counted as one.
    frame["probability"] = np.append(layout.probability, np.nan)[cell]
    frame["sentence"] = pd.Series(sentences_of(run, support, passage).tolist(), dtype="str")
    frame["causal"] = pd.Series(layout.effects, dtype="str").reindex(cell).array
    shown = found.passages[list(_OF_PASSAGE)].reindex(passage)
    return frame.assign(**{name: shown[name].array for name in _OF_PASSAGE})


def _at(values: Ints, cells: Ints) -> Ints:
    """Return the values of cells, -1 for those that do not exist."""
    return np.append(values, -1)[cells]
