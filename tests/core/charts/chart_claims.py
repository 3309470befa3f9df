"""Small runs with claims, made from matrices written down by hand."""

import numpy as np
import pandas as pd

from core.diagnosis import Diagnosis
from core.run import Run

SENTENCE = "It opened in 1890."


def claims_run(matrices, *, influence=None, ablated=None, joint=(), **options):
    """Build a run: question i has the matrix i of claims by passages, None for an unscored cell.

    Options: ``texts`` (a list per question), ``irrelevant`` ((question, claim) pairs), ``answers``,
    ``title``, ``judge``, ``n_passages`` (for questions whose matrix has no rows).
    """
    queries, passages, claims, support = [], [], [], []
    for q, matrix in enumerate(matrices):
        query_id, rows = f"q{q + 1}", len(matrix)
        n = len(matrix[0]) if rows else options.get("n_passages", 0)
        texts = options["texts"][q] if "texts" in options else [f"Claim {i + 1} is so." for i in range(rows)]
        answer = options.get("answers", {}).get(q, " ".join(texts) or "An answer.")
        queries.append({"query_id": query_id, "question": f"Question {q + 1}?", "answer": answer})
        for j in range(n):
            given = None if influence is None else influence[q][j]
            passages.append(
                {
                    "query_id": query_id,
                    "passage_id": f"p{j + 1}",
                    "retrieval_rank": j + 1,
                    "influence_score": given,
                    "title": options.get("title", ""),
                    "text": SENTENCE,
                    "ablated_answer": None if ablated is None else ablated[q][j],
                }
            )
        for i, (text, row) in enumerate(zip(texts, matrix, strict=True)):
            relevance = "IRRELEVANT" if (q, i) in options.get("irrelevant", ()) else "RELEVANT"
            claims.append(
                {"query_id": query_id, "claim_id": f"c{i + 1}", "text": text, "relevance": relevance}
            )
            support += [
                {
                    "query_id": query_id,
                    "claim_id": f"c{i + 1}",
                    "passage_id": f"p{j + 1}",
                    "probability": None if p is None or np.isnan(p) else float(p),
                    "judge": options.get("judge", "a judge"),
                    "start": 0,
                    "end": len(SENTENCE),
                }
                for j, p in enumerate(row)
            ]
    tables = {"queries": queries, "passages": passages, "claims": claims, "support": support}
    if joint:
        names = ("query_id", "claim_id", "passage_id", "second_passage_id", "probability")
        tables["joint_support"] = [dict(zip(names, pair, strict=True)) for pair in joint]
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items() if rows}
    return Run.create({"source": "upload"}, **frames)


def claims_analysis(matrices, threshold=0.5, **options):
    """Return the analysis of `claims_run`."""
    return Diagnosis(claims_run(matrices, **options), {"support": threshold})["claims"]


def one_answer(matrix, threshold=0.5, **options):
    """Return the claims of the only question."""
    return claims_analysis([matrix], threshold, **options).answer("q1")
