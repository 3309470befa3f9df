"""Runs with confidence signals by hand."""

import pandas as pd

from core.run import Run


def signal_run(similarity, lexical=None, llm=None, correct=None, manifest=None, **columns):
    """One question per value of ``similarity``; a correct answer is "alpha", which is the reference."""
    n = len(similarity)
    ids = [f"q{i:02}" for i in range(n)]
    known = correct or [None] * n
    queries = {
        "query_id": ids,
        "question": [f"Which word is number {i}?" for i in range(n)],
        "answer": ["omega" if right is False else "alpha" for right in known],
        "answer_status": "answered",
        "reference_answers": [None if right is None else ["alpha"] for right in known],
    }
    signals = {"query_id": ids, "similarity": similarity, "lexical": lexical, "llm_score": llm}
    return Run.create(
        {"source": "upload", "name": "Signals"} | (manifest or {}),
        queries=pd.DataFrame(queries | columns),
        signals=pd.DataFrame(signals).dropna(how="all", subset=["similarity", "lexical", "llm_score"]),
    )
