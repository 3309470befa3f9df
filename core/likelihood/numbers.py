"""The headline numbers of fixed-answer scores."""

from __future__ import annotations

import math

import pandas as pd

from core.diagnosis import REASON, Number
from core.likelihood.analysis import GoldShare, LikelihoodAnalysis
from core.likelihood.definitions import METRICS, MODES

_CARDS = ("gold_by_answer", "gold_by_reference")


def numbers(analysis: LikelihoodAnalysis) -> tuple[Number, ...]:
    """Return how many answers are scored, and how often each measure puts a gold passage first."""
    q = analysis.queries
    return (
        Number("n_scored", "Answers scored", int(q["reason"].isna().sum()), of=len(q), define="n_scored",
            place="row"),
        *map(_number, analysis.gold),
        *(_mode(analysis, name) for name in MODES),
        Number("likelihood_reasons", "Answer not scored", _counts(q["reason"]), define=REASON, place="row"),
        Number("reference_likelihood_reasons", "Reference not scored", _counts(q["reference_reason"]),
            define=REASON, place="row"),
    )  # fmt: skip


def _number(one: GoldShare) -> Number:
    known = one.n > 0
    return Number(
        one.measure,
        METRICS[one.measure].title,
        one.mean if known else None,
        n=one.n,
        interval=None if math.isnan(one.low) else (one.low, one.high),
        define=one.measure,
        chance=one.chance if known else None,
        is_share=True,
        place="card" if one.measure in _CARDS else "row",
    )


def _mode(analysis: LikelihoodAnalysis, name: str) -> Number:
    values = analysis.queries[name].dropna()
    chance = float(analysis.queries[f"{name}_by_chance"].sum()) if len(values) else None
    return Number(
        f"n_{name}",
        MODES[name].title,
        int(values.sum()),
        of=len(values),
        define=name,
        chance=chance,
        cases=f"queries.{name}:True",
        place="card",
    )


def _counts(reasons: pd.Series) -> dict[str, int]:
    return {str(reason): int(n) for reason, n in reasons.value_counts().items()}
