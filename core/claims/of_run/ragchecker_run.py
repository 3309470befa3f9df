"""RAGChecker's metrics for every question of a run, where its answers were compared with a reference."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.claims.matrix import Bools
from core.claims.of_run.cells import Cells
from core.claims.ragchecker import METRICS, RagCheckerMetrics, ragchecker_metrics
from core.claims.types import Floats
from core.run import Run


def ragchecker_frame(
    run: Run, cells: Cells, scores: pd.DataFrame, silent: Bools, threshold: float
) -> pd.DataFrame:
    """Return one row per question: ``query_id``, the metrics (NaN where undefined) and ``reason``.

    Parameters
    ----------
    run : Run
        The run.
    cells, scores
        Its layout and `core.claims.of_run.scores.claim_scores`.
    silent : ndarray of bool
        Questions whose answer is empty, in error or an abstention: as if it had no claims.
    threshold : float
        From here on a probability counts as entailment.

    Notes
    -----
    Irrelevant claims are left out. A claim's ``counterpart`` is its comparison with the other text:
    Entailment is yes, Neutral and Contradiction are no, nothing is unscored. A question is compared with a
    reference when the reference has claims, or any claim of the answer has a counterpart.
    """
    values = np.full((len(run.queries), len(METRICS)), np.nan)
    reasons: list[str | None] = ["not_run"] * len(run.queries)
    counterpart = _counterparts(cells.claims["counterpart"])
    relevant = scores["relevant"].to_numpy()
    for query in np.flatnonzero(np.diff(cells.claim_bounds)).tolist():
        found = _metrics(cells, query, relevant, counterpart, bool(silent[query]), threshold)
        values[query] = [np.nan if (v := getattr(found, name)) is None else v for name in METRICS]
        reasons[query] = next((found.reasons[name] for name in METRICS if name in found.reasons), None)
    frame = pd.DataFrame(values, columns=list(METRICS))
    frame.insert(0, "query_id", run.queries["query_id"].array)
    return frame.assign(reason=pd.Series(reasons, dtype="str"))


def _metrics(
    cells: Cells, query: int, relevant: Bools, counterpart: Floats, silent: bool, threshold: float
) -> RagCheckerMetrics:
    sides = []
    for answer in (True, False):
        claims, block = cells.matrix(query, answer)
        kept = relevant[claims] & (not (answer and silent))
        sides.append((cells.probability[block[kept]], counterpart[claims[kept]]))
    (to_answer, correct), (to_reference, covered) = sides
    if not covered.size and np.isnan(correct).all():
        return ragchecker_metrics(None, to_answer, None, None, threshold)
    return ragchecker_metrics(to_reference, to_answer, correct, covered, threshold)


def _counterparts(labels: pd.Series) -> Floats:
    known = labels.isin(("Entailment", "Neutral", "Contradiction")).to_numpy(dtype=bool)
    return np.where(known, labels.eq("Entailment").fillna(False).to_numpy(dtype=bool), np.nan)
