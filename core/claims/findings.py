"""What claims say of a run, in sentences."""

from __future__ import annotations

import pandas as pd

from core.claims.analysis import ClaimsAnalysis
from core.claims.matrix import FRAGILE, UNSCORED, UNSUPPORTED
from core.claims.scores import step_facts
from core.claims.types import OFFLINE
from core.severity import LOSS, NOTE, WRONG, graded
from core.socket import Finding
from core.stats import clustered_interval
from core.text.display import count, part, percent

_MOSTLY = 0.5


def findings(claims: ClaimsAnalysis) -> tuple[Finding, ...]:
    """Return claims without support, cells without a score, and claims that depend on one passage.

    Intervals are those of claims that come in answers. None has a chance baseline: a retrieved passage is no
    random passage, so how many claims random passages would support says nothing about how many these should.
    """
    return tuple(
        one for one in (_unsupported(claims), _unscored(claims), _fragile(claims)) if one is not None
    )


def _unsupported(claims: ClaimsAnalysis) -> Finding | None:
    q = claims.queries
    judged = q["n_supported"] + q["n_not_supported"]
    n, of = int(q["n_not_supported"].sum()), int(judged.sum())
    if not n:
        return None
    # In the order of `unsupported`, which reads every ablated answer first.
    worst = q[q["n_not_supported"] > 0].sort_values(
        ["n_not_supported", "grounding"], ascending=[False, True], kind="stable"
    )
    interval = clustered_interval(q["n_not_supported"], judged)
    has = "has" if n == 1 else "have"
    advice = (
        "Read these answers: either the model made the claim up, or the verifier missed its support. "
        "Where claims are made up, tell the model to answer only from the passages."
    )
    if claims.judge == OFFLINE:
        advice += (
            " The offline verifier is weak on hard claims: check a sample, or verify again with a judge."
        )
    return Finding(
        UNSUPPORTED,
        f"{n:,} of {count(of, 'claim')} checked {has} no supporting passage, in "
        f"{count(len(worst), 'answer')}.",
        n,
        of,
        interval,
        severity=graded(WRONG, interval),
        advice=advice,
        query_ids=tuple(worst["query_id"]),
        clause=f"{part(n, of, 'claim')} in the answers {has} no supporting passage "
        f"({percent(n / of, interval)})",
        label="Unsupported claim",
        reads="with an unsupported claim",
        fix="prompt:stricter",
    )


def _unscored(claims: ClaimsAnalysis) -> Finding | None:
    q = claims.queries
    n, of = int(q["n_cells_unscored"].sum()), int(q["n_cells"].sum())
    if not n:
        return None
    reasons = (step_facts(claims.run) or {}).get("unscored_reasons") or {}
    why = f" Most often: {max(reasons, key=lambda reason: reasons[reason])}" if reasons else ""
    worst = q[q["n_cells_unscored"] > 0].sort_values("n_cells_unscored", ascending=False, kind="stable")
    interval = clustered_interval(q["n_cells_unscored"], q["n_cells"])
    return Finding(
        UNSCORED,
        f"{n:,} of {count(of, 'pair')} of claim and passage {'has' if n == 1 else 'have'} no score.{why}",
        n,
        of,
        interval,
        severity=graded(LOSS, interval),
        advice="Verify the claims again: only what is missing is asked.",
        query_ids=tuple(worst["query_id"]),
        label="Claim without a score",
        reads="with a claim that has no score",
    )


def _fragile(claims: ClaimsAnalysis) -> Finding | None:
    """Report that most supported claims depend on a single passage of several."""
    layout = claims.layout
    table = claims.scores.assign(query_id=layout.claims["query_id"].array)
    table = table[layout.of_answer & (table["n_passages"] > 1) & (table["verdict"] == "SUPPORTED")]
    fragile = table[table["state"] == FRAGILE]
    n, of = len(fragile), len(table)
    if not n or n / of < _MOSTLY:
        return None
    by_answer = pd.crosstab(table["query_id"], table["state"] == FRAGILE)
    interval = clustered_interval(by_answer[True], by_answer.sum(axis=1))
    return Finding(
        FRAGILE,
        f"{n:,} of {count(of, 'supported claim')} {'has' if n == 1 else 'have'} only one supporting passage.",
        n,
        of,
        interval,
        severity=graded(NOTE, interval),
        advice="Nothing confirms that passage. Where it matters, check the claim against a second source.",
        query_ids=tuple(fragile["query_id"].value_counts(sort=True).index),
        label="Claim with one source",
        reads="with a claim that only one passage supports",
    )
