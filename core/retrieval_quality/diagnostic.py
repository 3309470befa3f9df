"""The diagnostic *retrieval quality*: whether the gold passages are found, and whether they are used."""

from __future__ import annotations

import pandas as pd

from core.analyses import Analyses
from core.retrieval_quality.analysis import DEPTHS, RetrievalQuality, retrieval_quality
from core.retrieval_quality.definitions import DEFINITIONS, FINDINGS, METRICS
from core.retrieval_quality.findings import findings
from core.socket import Diagnostic, Need, Number, QuestionColumn

_CARDS = {
    "hit_at_1": "queries.first_gold_rank:1",
    "gold_most_influential": "queries.gold_most_influential:True",
}
_SHARES = ("hit_at_k", "gold_most_influential")


def numbers(quality: RetrievalQuality) -> tuple[Number, ...]:
    """Return the mean of every metric at every depth, with its interval, n and what chance gives."""
    found = []
    for row in quality.summary.to_dict("records"):
        depth = "" if pd.isna(row["k"]) else str(row["k"])
        key = f"{row['metric'].removesuffix('k')}{depth}"
        found.append(
            Number(
                key,
                _title(key, row["metric"], depth),
                float(row["mean"]) if row["n"] else None,
                n=int(row["n"]),
                interval=None if pd.isna(row["low"]) else (float(row["low"]), float(row["high"])),
                define=row["metric"],
                chance=None if pd.isna(row["chance"]) else float(row["chance"]),
                is_share=row["metric"] in _SHARES,
                cases=_CARDS.get(key, ""),
                place="card" if key in _CARDS else "row",
            )
        )
    return tuple(found)


def _title(key: str, metric: str, depth: str) -> str:
    if key in FINDINGS:
        return FINDINGS[key].title
    return METRICS[metric].title.removesuffix(" k") + (f" {depth}" if depth else "")


def _analyse(diagnosis: Analyses) -> RetrievalQuality:
    return retrieval_quality(diagnosis.run, diagnosis["influence"], DEPTHS)


RETRIEVAL_QUALITY = Diagnostic(
    name="retrieval_quality",
    title="Retrieval quality",
    question="Are the gold passages found, and are they used?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    reads=("influence",),
    needs=(
        Need(
            "passages",
            "No gold passage is known: mark them with is_gold in the passages, or give gold fragments with "
            "the questions.",
            "is_gold",
        ),
    ),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn(
            "first_gold_rank", "Gold passage: retrieval rank", "{:g}", None, "worse", True, needs_labels=True
        ),
        QuestionColumn(
            "gold_influence_rank",
            "Gold passage: influence rank",
            "{:g}",
            None,
            "worse",
            True,
            needs_labels=True,
        ),
    ),
)
