"""What claims say of a run, in sentences."""

from __future__ import annotations

from typing import Any

import pandas as pd

from core.claims.analysis import ClaimsAnalysis
from core.claims.matrix import FRAGILE, UNSCORED, UNSUPPORTED
from core.claims.scores import step_facts
from core.claims.types import OFFLINE
from core.severity import LOSS, NOTE, WRONG, Harm, graded
from core.socket import Finding
from core.stats import clustered_interval
from core.text.display import count, part, percent

_MOSTLY = 0.5


def findings(claims: ClaimsAnalysis) -> tuple[Finding, ...]:
    """Return claims without support, cells without a score, and claims that depend on one passage.

    Intervals are those of claims that come in answers. None has a chance baseline: a retrieved passage is no
    random passage, so how many claims random passages would support says nothing about how many these should.
    """
    return (*_unsupported(claims), *_unscored(claims), *_fragile(claims))


def _counted(
    name: str,
    ids: pd.Series,
    n: pd.Series,
    of: pd.Series,
    noun: str,
    of_what: str,
    said: str,
    harm: Harm,
    **told: Any,
) -> list[Finding]:
    """Say of how many claims or cells something is true, given the counts of each answer, the worst first."""
    hits, total = int(n.sum()), int(of.sum())
    if not hits:
        return []
    interval = clustered_interval(n, of)
    has = "has" if hits == 1 else "have"
    sentence = f"{hits:,} of {count(total, noun)}{of_what} {has} {said}"
    if "clause" in told:
        told["clause"] = told["clause"].format(part(hits, total, noun), has, percent(hits / total, interval))
    found = Finding(
        name, sentence, hits, total, interval, severity=graded(harm, interval), query_ids=tuple(ids), **told
    )
    return [found]


def _unsupported(claims: ClaimsAnalysis) -> list[Finding]:
    q = claims.queries
    # In the order of `ClaimsAnalysis.unsupported`, which reads every ablated answer first.
    worst = q[q["n_not_supported"] > 0].sort_values(
        ["n_not_supported", "grounding"], ascending=[False, True], kind="stable"
    )
    advice = (
        "Read these answers: either the model made the claim up, or the verifier missed its support. "
        "Where claims are made up, tell the model to answer only from the passages."
    )
    if claims.judge == OFFLINE:
        advice += (
            " The offline verifier is weak on hard claims: check a sample, or verify again with a judge."
        )
    return _counted(
        UNSUPPORTED, worst["query_id"], q["n_not_supported"], q["n_supported"] + q["n_not_supported"],
        "claim", " checked", f"no supporting passage, in {count(len(worst), 'answer')}.", WRONG,
        advice=advice, clause="{} in the answers {} no supporting passage ({})", label="Unsupported claim",
        reads="with an unsupported claim", fix="prompt:stricter",
    )  # fmt: skip


def _unscored(claims: ClaimsAnalysis) -> list[Finding]:
    q = claims.queries
    reasons = (step_facts(claims.run) or {}).get("unscored_reasons") or {}
    why = f" Most often: {max(reasons, key=lambda reason: reasons[reason])}" if reasons else ""
    worst = q[q["n_cells_unscored"] > 0].sort_values("n_cells_unscored", ascending=False, kind="stable")
    return _counted(
        UNSCORED, worst["query_id"], q["n_cells_unscored"], q["n_cells"], "pair",
        " of claim and passage", f"no score.{why}", LOSS,
        advice="Verify the claims again: only what is missing is asked.", label="Claim without a score",
        reads="with a claim that has no score",
    )  # fmt: skip


def _fragile(claims: ClaimsAnalysis) -> list[Finding]:
    """Report that most supported claims depend on a single passage of several."""
    layout = claims.layout
    table = claims.scores.assign(query_id=layout.claims["query_id"].array)
    table = table[layout.of_answer & (table["n_passages"] > 1) & (table["verdict"] == "SUPPORTED")]
    fragile = table["state"] == FRAGILE
    if not len(table) or fragile.mean() < _MOSTLY:
        return []
    by_answer = pd.crosstab(table["query_id"], fragile)
    return _counted(
        FRAGILE, table["query_id"][fragile].value_counts(sort=True).index, by_answer[True],
        by_answer.sum(axis=1), "supported claim", "", "only one supporting passage.", NOTE,
        advice="Nothing confirms that passage. Where it matters, check the claim against a second source.",
        label="Claim with one source", reads="with a claim that only one passage supports",
    )  # fmt: skip
