"""Runs with confidence signals by hand, and what is made of them without the other diagnostics."""

import math

import numpy as np
import pandas as pd

from core.calibration.in_use import TITLES, InUse
from core.calibration.saved import Method, digest
from core.calibration.weighted import RANGES, Weighting
from core.confidence.analysis import analyse_confidence
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


def used_by(run, correct=None, weights=None, reason="", taught=()):
    """The confidence in use: by default the similarity alone; ``taught`` are the places of the questions."""
    known = run.queries[["query_id"]].merge(run["signals"], how="left", on="query_id")
    names = {"similarity": "similarity", "lexical": "lexical", "llm": "llm_score"}
    labels = [math.nan if right is None else float(right) for right in correct or [None] * len(run.queries)]
    learned_from = frozenset(digest(run.queries["question"].iloc[place]) for place in taught)
    return InUse(
        Method(Weighting(weights or {"similarity": 1.0}, RANGES), learned_from=learned_from),
        "setting", reason,
        {name: known[column].to_numpy(dtype=float, na_value=math.nan) for name, column in names.items()},
        TITLES, (), np.array(labels), None, None, (),
    )  # fmt: skip


def analysis_of(
    run, correct=None, threshold=0.6, sampling=None, variance=None, conformal=None, verdict=None, **used
):
    """The confidence of a run by hand; what is not given of the other diagnostics is unknown."""
    nothing = [math.nan] * len(run.queries)
    parts = [np.array(nothing if part is None else part) for part in (sampling, variance, conformal)]
    decision = pd.Series(verdict or [None] * len(nothing), dtype="boolean")
    return analyse_confidence(
        run, used_by(run, correct, **used), threshold, parts[0], 1 - parts[1], parts[2], decision
    )


def judged(similarity, correct, threshold=0.6):
    """The analysis of answers whose confidence is their similarity."""
    return analysis_of(signal_run(similarity, correct=correct), correct, threshold)
