"""What an imported file reports against what its own scores give."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.arrays import ranks_within
from core.influence.analysis import InfluenceAnalysis
from core.influence.metrics import labels
from core.run import Run
from core.text.display import count

WHY = {
    "empty_baseline": "The baseline answer is empty; comparing nothing with nothing made every influence 1.",
    "inert": "All influences are 0; sorting ties by row gave a perfect order that nothing supports.",
    "all_equal": "All influences are equal; sorting ties by row gave a perfect order that nothing supports.",
    "ties": "Tied influences were ranked in row order, which is the retrieval order; average ranks are not.",
    "flag": "The file's own flag disagrees with its own ρ at this threshold.",
    "undefined": "Some of the numbers needed are missing.",
    "ties_cannot_reach": "With these ties no order reaches the threshold, whatever the retriever did.",
    "values": "The file's ρ does not follow from its own influence scores.",
}
# Each cause in a count: one, several.
_CAUSES = {
    "empty_baseline": ("empty baseline", "empty baselines"),
    "inert": ("inert", "inert"),
    "all_equal": ("with equal influences", "with equal influences"),
    "ties": ("tie", "ties"),
    "flag": ("flag against its own ρ", "flags against their own ρ"),
    "undefined": ("with missing numbers", "with missing numbers"),
    "ties_cannot_reach": ("with too many ties", "with too many ties"),
    "values": ("ρ that its scores do not give", "ρ that their scores do not give"),
}


def compare_reported(run: Run, analysis: InfluenceAnalysis) -> pd.DataFrame:
    """Compare the verdicts an imported file reports with the recomputed ones.

    One row per question with a reported verdict (``reported_rho`` or ``reported_divergent``): ``query_id,
    question, reported_rho, reported_label, rho, label, changed, cause`` (a key of `WHY`, or missing),
    ``why``, ``n_ranks_changed`` (passages whose reported influence rank differs). Empty when the file reports
    nothing, and where influence is not measured by words.
    """
    raw, q = run.queries, analysis.queries
    frame = pd.DataFrame(
        {
            "query_id": q["query_id"],
            "question": q["question"],
            "reported_rho": raw["reported_rho"],
            "reported_label": q["reported_label"],
            "rho": q["rho"],
            "label": q["label"],
            "n_ranks_changed": _ranks_changed(run, analysis),
        }
    )
    frame["changed"] = frame["reported_label"] != frame["label"]
    frame["cause"] = pd.Series(_causes(raw, q, analysis.threshold), dtype="str").where(frame["changed"], None)
    frame["why"] = frame["cause"].map(WHY)
    # A file's verdicts are about the words of answers.
    kept = frame["reported_label"].notna() & (not analysis.measure.is_signed)
    return frame[kept].reset_index(drop=True)


def changes_sentence(comparison: pd.DataFrame) -> str:
    """Say how many reported verdicts change when recomputed, and for which causes.

    >>> frame = pd.DataFrame({"changed": [True, True, True, False], "cause": ["inert", "ties", "ties", None]})
    >>> changes_sentence(frame)
    '3 of 4 reported verdicts change when recomputed: 2 ties, 1 inert.'
    """
    causes = comparison.loc[comparison["changed"], "cause"].value_counts()
    if causes.empty:
        return f"No verdict changes when recomputed: all {len(comparison):,} reported ones hold."
    why = ", ".join(cause_text(str(cause), n) for cause, n in causes.items())
    return f"{causes.sum():,} of {len(comparison):,} reported verdicts change when recomputed: {why}."


def cause_text(cause: str, n: int) -> str:
    """Return a number of changed verdicts with their cause, for people."""
    return count(n, *_CAUSES[cause]) if cause in _CAUSES else f"{n:,} {cause}"


def _causes(raw: pd.DataFrame, q: pd.DataFrame, threshold: float) -> np.ndarray:
    rho = raw["reported_rho"].to_numpy()
    flag = raw["reported_divergent"].to_numpy(dtype=np.float64, na_value=np.nan)
    flag_differs = ~np.isnan(flag) & ~np.isnan(rho) & ((labels(rho, threshold) == "Divergent") != (flag == 1))
    same_rho = np.isclose(rho, q["rho"].to_numpy(), atol=1e-6)
    reason = q["reason"]
    rules = [
        *[(name, (reason == name).to_numpy(dtype=bool)) for name in ("empty_baseline", "inert", "all_equal")],
        ("undefined", reason.notna().to_numpy(dtype=bool)),
        ("ties_cannot_reach", q["label_reason"].notna().to_numpy(dtype=bool)),
        ("flag", flag_differs & same_rho),
        ("ties", q["has_ties"].to_numpy(dtype=bool)),
    ]
    return np.select([mask for _, mask in rules], [name for name, _ in rules], default="values")


def _ranks_changed(run: Run, analysis: InfluenceAnalysis) -> np.ndarray:
    """How many passages' reported influence rank is not the recomputed average rank."""
    reported = run.passages["reported_influence_rank"].to_numpy()
    group = np.asarray(pd.Index(run.queries["query_id"]).get_indexer(run.passages["query_id"]), np.int64)
    recomputed = analysis.passages["influence_rank"].to_numpy()
    # Files may count from 0; the order is what is compared.
    differs = ~np.isnan(reported) & (np.abs(ranks_within(reported, group) - recomputed) > 1e-9)
    return np.bincount(group, differs, len(run.queries)).astype(int)
