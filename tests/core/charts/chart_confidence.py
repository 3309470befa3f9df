"""Answers whose confidence can be worked out on paper."""

import numpy as np
import pandas as pd

from core.calibration.in_use import InUse
from core.confidence import ConfidenceMap, Method, Weighting
from core.confidence.analysis import analyse_confidence
from core.diagnosis import Diagnosis
from core.run import Run
from core.socket import Diagnostic

NAN = np.nan
TITLES = {"similarity": "Similarity", "lexical": "Lexical", "llm": "Stated"}


def scored(rows, *, weights=None, threshold=0.6, mapped=None, titles=None, question=None, reason=""):
    """The analysis of answers given as (similarity, stated, correct), each in [0, 1] or NaN.

    By default similarity counts half and the stated confidence half.
    """
    n = len(rows)
    similarity, stated, correct = (np.array(one, dtype=float) for one in zip(*rows, strict=True))
    queries = pd.DataFrame(
        {
            "query_id": [f"q{i + 1}" for i in range(n)],
            "question": [question or f"Question {i + 1}?" for i in range(n)],
            "answer": "yes",
        }
    )
    nothing = np.full(n, NAN)
    signals = {"similarity": similarity, "lexical": nothing, "llm": stated}
    weights = weights or {"similarity": 0.5, "llm": 0.5}
    method = Method(Weighting(weights, dict.fromkeys(signals, (0.0, 1.0))), mapped or ConfidenceMap())
    used = InUse(method, "default", reason, signals, titles or TITLES, (), correct, None, None, ())
    run, unknown = Run.create({"source": "upload"}, queries=queries), pd.Series([None] * n, dtype="boolean")
    return analyse_confidence(run, used, threshold, nothing, nothing, nothing, unknown)


def diagnosis_of(analysis):
    """A diagnosis that knows only this analysis."""
    one = Diagnostic("confidence", "Confidence", "?", lambda _: analysis, lambda _: ())
    return Diagnosis(analysis.run, diagnostics=[one])
