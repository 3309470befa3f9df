"""One row per claim of an answer and passage, for tables and exports."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.claims.causal import CAUSAL_LABELS
from core.claims.of_run.answer_claims import sentences_of
from core.claims.of_run.cells import Cells, Ints
from core.run import Run

_OF_CLAIM = ("relevant", "state", "verdict", "uncertainty", "support_maximum", "any_support", "joint")
_OF_PASSAGE = ("influence", "above_noise", "quadrant")


def cell_frame(
    run: Run, cells: Cells, claims: pd.DataFrame, passages: pd.DataFrame, removals: Ints
) -> pd.DataFrame:
    """Return the rows, as `core.claims.of_run.analysis.ClaimsAnalysis.to_frame`.

    Parameters
    ----------
    run : Run
        The run.
    cells : Cells
        Its layout.
    claims, passages : DataFrame
        The tables of the analysis.
    removals : ndarray of int
        `core.claims.of_run.removals.Removals.codes`.
    """
    own = np.flatnonzero(cells.answer)
    n = np.maximum(cells.width[own], 1)  # a claim without passages is still a claim
    claim = np.repeat(np.arange(own.size), n)
    place = np.arange(claim.size) - np.repeat(np.cumsum(n) - n, n)
    real = np.repeat(cells.width[own] > 0, n)
    cell = np.where(real, np.repeat(cells.start[own], n) + place, -1)
    passage, support = _at(cells.passage_of_cell, cell), _at(cells.support, cell)
    said = claims.iloc[claim]
    frame = pd.DataFrame(
        {
            "query_id": said["query_id"].array,
            "question": run.queries["question"].iloc[cells.query[own][claim]].array,
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
    frame["probability"] = np.where(cell >= 0, np.append(cells.probability, np.nan)[cell], np.nan)
    frame["sentence"] = pd.Series(sentences_of(run, support, passage).tolist(), dtype="str")
    labels = np.array([*CAUSAL_LABELS, None], dtype=object)
    frame["causal"] = pd.Series(labels[_at(removals, cell)], dtype="str")
    shown = passages[list(_OF_PASSAGE)].reindex(passage)
    return frame.assign(**{name: shown[name].array for name in _OF_PASSAGE})


def _at(values: Ints, cells: Ints) -> Ints:
    """Return the values of cells, -1 for those that do not exist."""
    return np.append(values, -1)[cells]
