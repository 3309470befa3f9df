"""Answers of a simulated run under random subsets of their passages."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.arrays import Bools
from core.sources.simulation_tables import Tables
from core.sources.simulation_truth import ANSWER_WORDS, Truth
from core.stats.designs import held_out, subsets

MEASURED = 50  # questions of a run whose subsets were measured
_MASKS, _TESTED = 64, 32  # as the step takes them
_NATS = 6.0  # of an influence of 1


def either_enough(truth: Truth, measured: int) -> dict[str, Bools]:
    """Return where two passages hold the same evidence, by the key of its `core.socket.Number`, (n,)."""
    return {"n_either_enough": truth.twice.any(axis=1) & (np.arange(len(truth.case)) < measured)}


def measured_subsets(tables: Tables) -> dict[str, pd.DataFrame]:
    """Return the table ``ablations`` of the first questions of a block.

    What passages add to the log-probability of the answer adds up; of two that hold the same evidence either
    is enough.
    """
    truth, k = tables.truth, tables.k
    masks = np.vstack([subsets(k, _MASKS), held_out(k, _TESTED), np.ones((1, k), dtype=bool)])
    masks = np.unique(masks, axis=0)
    kept = ["".join("01"[int(one)] for one in mask) for mask in masks]
    rows = [pd.DataFrame()]
    for i in np.flatnonzero(~truth.empty[:MEASURED]).tolist():
        left = ~masks @ (truth.replaced[i] / ANSWER_WORDS)
        if truth.twice[i].any():
            left = (~masks[:, truth.twice[i]]).all(axis=1) * 1.0
        own = {"query_id": tables.ids[i], "ablation_id": kept, "kept": kept, "answer_status": "answered"}
        rows.append(pd.DataFrame({**own, "logprob": -1 - _NATS * left, "n_tokens": ANSWER_WORDS}))
    return {"ablations": pd.concat(rows)}
