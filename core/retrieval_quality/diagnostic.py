"""The diagnostic *retrieval quality*: whether the gold passages are found, and whether they are used."""

from __future__ import annotations

import pandas as pd

from core.diagnosis import Diagnosis, Diagnostic, Need, Number, QuestionColumn
from core.retrieval_quality.analysis import DEPTHS, RetrievalQuality, retrieval_quality
from core.retrieval_quality.definitions import DEFINITIONS, METRICS
from core.text.display import number

_CARDS = ("hit_at_1", "gold_most_influential")


def numbers(quality: RetrievalQuality) -> tuple[Number, ...]:
    """Return the mean of every metric at every depth, with its interval and n."""
    found = []
    for row in quality.summary.to_dict("records"):
        depth = "" if pd.isna(row["k"]) else str(row["k"])
        key = f"{row['metric'].removesuffix('k')}{depth}"
        found.append(
            Number(
                key,
                METRICS[row["metric"]].title.removesuffix(" k") + (f" {depth}" if depth else ""),
                float(row["mean"]) if row["n"] else None,
                n=int(row["n"]),
                interval=None if pd.isna(row["low"]) else (float(row["low"]), float(row["high"])),
                define=row["metric"],
                note=_by_chance(quality) if key == "gold_most_influential" and row["n"] else "",
                place="card" if key in _CARDS else "row",
            )
        )
    return tuple(found)


def _by_chance(quality: RetrievalQuality) -> str:
    return f"{number(quality.queries['gold_most_influential_by_chance'].mean())} by chance"


def _analyse(diagnosis: Diagnosis) -> RetrievalQuality:
    return retrieval_quality(diagnosis.run, diagnosis["influence"], DEPTHS)


RETRIEVAL_QUALITY = Diagnostic(
    name="retrieval_quality",
    title="Retrieval quality",
    question="Are the gold passages found, and are they used?",
    analyse=_analyse,
    numbers=numbers,
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
            "first_gold_rank", "Gold passage: retrieval rank", "{:g}", None, "worse", by_passages=True
        ),
        QuestionColumn(
            "gold_influence_rank", "Gold passage: influence rank", "{:g}", None, "worse", by_passages=True
        ),
    ),
)
