"""Exports of influence: the published columns, and one row per question."""

from __future__ import annotations

from typing import Any

import pandas as pd

from core.influence.definitions import ROUGE
from core.socket import Analyses
from core.spreadsheet import csv_bytes


def influence_csv(diagnosis: Analyses) -> bytes:
    """Return an influence CSV: the 14 published columns, then ``label, reason, data_source``.

    One row per question and passage, in the run's order, with the recomputed numbers.
    ``rouge_l`` is 1 - ``influence_score``. ``data_source`` is `core.run.Run.data_source`. Influence by
    log-probability is no score of words: then ``logprob_drop`` takes the place of both, with
    ``approximate_drop``, whether it is only estimated.
    """
    run, analysis = diagnosis.run, diagnosis["influence"]
    p, q, raw = analysis.passages, analysis.queries, run.queries
    row = pd.Index(q["query_id"]).get_indexer(p["query_id"])

    def of_question(values: pd.Series) -> Any:
        return values.take(row).array

    divergent = q["label"].map({"Divergent": True, "Aligned": False}).astype("boolean")
    frame = pd.DataFrame(
        {
            "query": of_question(raw["question"]),
            "baseline_answer": of_question(raw["answer"]),
            "spearman_rho": of_question(q["rho"]),
            "spearman_pvalue": of_question(q["p_value"]),
            "dominance_ratio": of_question(q["dominance"]),
            "influence_entropy": of_question(q["entropy"]),
            "is_divergent": of_question(divergent),
            "doc_id": p["passage_id"].array,
            "passage": run.passages["text"].array,
            "retrieval_rank": p["retrieval_rank"].array,
            "retrieval_score": p["retrieval_score"].array,
            **(
                {"rouge_l": 1 - p["influence"].array, "influence_score": p["influence"].array}
                if analysis.measure == ROUGE
                else {
                    "logprob_drop": p["influence"].array,
                    "approximate_drop": run.passages["approximate_drop"].array,
                }
            ),
            "influence_rank": p["influence_rank"].array,
            "label": of_question(q["label"]),
            "reason": of_question(q["reason"]),
        }
    )
    return csv_bytes(frame, run.data_source)


def questions_csv(diagnosis: Analyses) -> bytes:
    """Return one row per question: every number, label, reason and failure mode."""
    return csv_bytes(diagnosis["influence"].queries, diagnosis.run.data_source)
