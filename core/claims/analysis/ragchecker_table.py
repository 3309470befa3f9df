"""RAGChecker's metrics for every question of a run, where its answers were compared with a reference."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.claims.analysis.layout import MatrixLayout
from core.claims.ragchecker import METRICS, ragchecker_metrics
from core.claims.three_valued import Share
from core.claims.types import Bools, Floats


def ragchecker_table(layout: MatrixLayout, relevant: Bools, silent: Bools, threshold: float) -> pd.DataFrame:
    """Return one row per question: ``query_id``, the metrics (NaN where undefined) and ``reason``.

    Parameters
    ----------
    layout : MatrixLayout
        The run's claims and cells.
    relevant : ndarray of bool, shape (n_claims,)
        Claims that are not are left out.
    silent : ndarray of bool, shape (n_questions,)
        Questions whose answer is empty, in error or an abstention: as if it had no claims.
    threshold : float
        From here on a probability counts as entailment.

    Notes
    -----
    A claim's ``counterpart`` is its comparison with the other text: Entailment is yes, Neutral and
    Contradiction are no, nothing is unscored. A question is compared with a reference when the reference has
    claims, or any claim of the answer has a counterpart.
    """
    n = len(layout.run.queries)
    values = np.full((n, len(METRICS)), np.nan)
    reasons: list[str | None] = ["not_run"] * n
    counterpart = _counterparts(layout.claims["counterpart"])
    for query in np.flatnonzero(np.diff(layout.claim_bounds)).tolist():
        found = _metrics(layout, query, relevant, counterpart, bool(silent[query]), threshold)
        values[query] = [found[name].value for name in METRICS]
        reasons[query] = next((found[name].reason for name in METRICS if found[name].reason), None)
    frame = pd.DataFrame(values, columns=list(METRICS))
    frame.insert(0, "query_id", layout.run.queries["query_id"].array)
    return frame.assign(reason=pd.Series(reasons, dtype="str"))


def _metrics(
    layout: MatrixLayout, query: int, relevant: Bools, counterpart: Floats, silent: bool, threshold: float
) -> dict[str, Share]:
    sides = []
    for of_answer in (True, False):
        claims, cells = layout.matrix(query, of_answer)
        kept = relevant[claims] & (not (of_answer and silent))
        sides.append((layout.probability[cells[kept]], counterpart[claims[kept]]))
    (to_answer, correct), (to_reference, covered) = sides
    if not covered.size and np.isnan(correct).all():
        return ragchecker_metrics(None, to_answer, None, None, threshold)
    return ragchecker_metrics(to_reference, to_answer, correct, covered, threshold)


def _counterparts(labels: pd.Series) -> Floats:
    known = labels.isin(("Entailment", "Neutral", "Contradiction")).to_numpy(dtype=bool)
    return np.where(known, labels.eq("Entailment").fillna(False).to_numpy(dtype=bool), np.nan)
