"""The headline numbers of fixed-answer scores."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from core.likelihood.analysis import GoldShare, LikelihoodAnalysis
from core.likelihood.definitions import METRICS, MODES
from core.socket import REASON, Number

_CARDS = ("gold_by_answer", "gold_by_reference")  # by drops


def numbers(analysis: LikelihoodAnalysis) -> tuple[Number, ...]:
    """Return how many answers are scored, and how often each measure puts a gold passage first."""
    q = analysis.queries
    note = "partly approximate" if analysis.passages["approximate"].any() else ""
    return (
        Number("n_scored", "Answers scored", int(q["reason"].isna().sum()), of=len(q), define="n_scored",
            place="row"),
        *_screen(analysis),
        *(replace(_number(one), note=note if one.measure in _CARDS else "") for one in analysis.gold),
        *(replace(_mode(analysis, name), note=note) for name in MODES),
        Number("likelihood_reasons", "Answer not scored", _counts(q["reason"]), define=REASON, place="row"),
        Number("reference_likelihood_reasons", "Reference not scored", _counts(q["reference_reason"]),
            define=REASON, place="row"),
    )  # fmt: skip


def _screen(analysis: LikelihoodAnalysis) -> tuple[Number, ...]:
    """Return how much is only estimated, and how far the estimates are off."""
    found, scored = analysis.agreement, int(analysis.passages["drop"].notna().sum())
    off, order = (METRICS[name] for name in ("screen_off", "screen_order"))
    apart, share = (None if math.isnan(value) else value for value in (found.apart, found.same_order))
    known = not math.isnan(found.apart_interval[0])
    return (
        Number("n_approximate", METRICS["n_approximate"].title, int(analysis.passages["approximate"].sum()),
            of=scored, noun="passage", define="n_approximate", place="row"),
        Number(off.name, off.title, apart, n=found.n, noun="passage", define=off.name, place="row",
            interval=found.apart_interval if known else None),
        Number(order.name, order.title, share, n=found.n_pairs, noun="pair", define=order.name, is_share=True,
            place="row", interval=None if share is None else found.order_interval,
            chance=None if share is None else 0.5),
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
