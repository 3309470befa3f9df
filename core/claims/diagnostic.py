"""The diagnostic *claims*: what each answer claims, and which passages support it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from core.analyses import Analyses
from core.claims.analysis import ClaimsAnalysis, analyse_claims
from core.claims.definitions import DEFINITIONS, QUADRANT, STATES
from core.claims.layout import layout_of
from core.claims.matrix import DEFAULT_SUPPORT, FRAGILE, UNSCORED, UNSUPPORTED
from core.claims.quadrants import quadrant_counts
from core.claims.rafe import DEFAULT_K
from core.claims.scores import step_facts
from core.claims.step import ClaimsStep
from core.claims.types import OFFLINE
from core.severity import LOSS, NOTE, WRONG, Harm, graded
from core.socket import REASON, Diagnostic, Export, Finding, Need, Number, QuestionColumn, Setting
from core.spreadsheet import csv_bytes
from core.stats import clustered_interval, mean_in_unit
from core.text.display import count, part, percent, share_interval
from core.text.strict import finite

_MOSTLY = 0.5


def findings(claims: ClaimsAnalysis) -> tuple[Finding, ...]:
    """Return claims without support, cells without a score, and claims that depend on one passage."""
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
        advice=STATES[FRAGILE].advice,
        label="Claim with one source", reads="with a claim that only one passage supports",
    )  # fmt: skip


SUPPORT = Setting(
    "support",
    "Support threshold",
    DEFAULT_SUPPORT,
    "A passage supports a claim from this probability on; the probabilities themselves stay.",
    low=0.05,
)
_COUNTS = {
    "n_claims": "n_claims",
    "n_claims_supported": "n_supported",
    "n_claims_not_supported": "n_not_supported",
    "n_claims_irrelevant": "n_irrelevant",
    "n_claims_unscored": "n_unscored",
    "n_claims_joint": "n_joint",
    "n_cells_unscored": "n_cells_unscored",
}


def numbers(claims: ClaimsAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers: counts of the answers' claims, which add up, and means over answers."""
    q = claims.queries
    counts = {key: int(q[column].sum()) for key, column in _COUNTS.items()}
    n, judged = counts["n_claims"], counts["n_claims_supported"] + counts["n_claims_not_supported"]
    grounding, *interval = mean_in_unit(q["grounding"])
    uncertainty, *_ = mean_in_unit(q["mean_uncertainty"])
    n_grounding, n_uncertainty = (int(q[name].notna().sum()) for name in ("grounding", "mean_uncertainty"))
    ci = None if np.isnan(interval).any() else (interval[0], interval[1])
    supported = clustered_interval(q["n_supported"], q["n_supported"] + q["n_not_supported"])
    joint = f"{counts['n_claims_joint']:,} by two passages together only" if counts["n_claims_joint"] else ""
    note = "; ".join(filter(None, [share_interval(supported) if judged else "", joint]))
    extracted_by = (step_facts(claims.run) or {}).get("decomposition")
    shown = (
        Number("n_claims", "Claims", n, n=claims.n_with_claims, noun="answer", place="row"),
        Number("n_claims_supported", "Supported claims", counts["n_claims_supported"], of=judged, note=note, place="card"),
        Number("n_claims_irrelevant", "Irrelevant claims", counts["n_claims_irrelevant"], of=n, place="row"),
        Number("n_claims_unscored", "Unscored claims", counts["n_claims_unscored"], of=n, place="row"),
        Number("n_cells_unscored", "Unscored cells", counts["n_cells_unscored"], place="row"),
        Number("mean_grounding", "Mean grounding", finite(grounding), n=n_grounding, noun="answer",
            interval=ci, define="grounding", place="card"),
        Number("mean_claim_uncertainty", "Mean claim uncertainty U", finite(uncertainty), n=n_uncertainty, noun="answer",
            define="claim_uncertainty", place="row"),
        Number("claims_undefined_reasons", "Grounding undefined because", q["reason"].value_counts().to_dict(),
            define=REASON, place="row"),
        Number("quadrants", "Passages, influence vs support", _quadrants(claims), define=QUADRANT, place="row"),
        Number("claims_judge", "Claims verified by", claims.judge, place="setup"),
        Number("claims_extracted_by", "Claims extracted by", extracted_by, place="setup"),
    )  # fmt: skip
    others = {
        "n_claims_not_supported": counts["n_claims_not_supported"],
        "n_claims_joint": counts["n_claims_joint"],
        "n_grounding": n_grounding,
        "grounding_ci": ci and [*ci],
        "n_claim_uncertainty": n_uncertainty,
        "n_with_claims": claims.n_with_claims,
        "n_verdicts_changed": claims.n_verdicts_changed,
        "n_verdicts_from_file": claims.n_verdicts_from_file,
        "support_threshold": claims.threshold,
    }
    return (*shown, *(Number(key, value=value) for key, value in others.items()))


def _quadrants(claims: ClaimsAnalysis) -> dict[str, int]:
    """Count the passages of answers with claims by quadrant."""
    q = claims.queries
    of_answers = claims.run.passages["query_id"].isin(q["query_id"][q["n_claims"] > 0]).to_numpy(dtype=bool)
    counts = quadrant_counts(claims.quadrant[of_answers])
    return dict(zip(counts["quadrant"], counts["n"].tolist(), strict=True))


def claims_csv(diagnosis: Analyses) -> bytes:
    """Return one row per claim of an answer and passage; no rows without claims.

    A passage that supports the claim together with another one names it in ``second_passage_id``, with the
    two's ``joint_probability`` and ``joint_judge``; one that does so with several has a row for each.
    """
    claims, run = diagnosis["claims"], diagnosis.run
    pairs = run["joint_support"].rename(columns={"probability": "joint_probability", "judge": "joint_judge"})
    frame = claims.to_frame().merge(pairs, "left", ["query_id", "claim_id", "passage_id"])
    return csv_bytes(frame.assign(support_threshold=claims.threshold), run.data_source)


def _analyse(diagnosis: Analyses) -> ClaimsAnalysis:
    layout = diagnosis.once(layout_of)
    return analyse_claims(layout, diagnosis["influence"], float(diagnosis.settings["support"]))


CLAIMS = Diagnostic(
    name="claims",
    title="Claims & evidence",
    question="What does each answer claim, and which passages support it?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    finds=(UNSUPPORTED, UNSCORED, FRAGILE),
    reads=("influence",),
    settings=(SUPPORT,),
    needs=(
        Need(
            "claims",
            "Claims not extracted: extract and verify them to see which passages support them.",
            step="claims",
        ),
    ),
    exports=(
        Export("claims-csv", "Claims × passages", ".csv", claims_csv, "One row per claim and passage."),
    ),
    figures=("claims_quadrants", "f1_at_k_chart"),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("grounding", "Grounding", bounds=(0.0, 1.0), higher_is="better"),
        QuestionColumn(
            "mean_uncertainty",
            "Claim uncertainty U",
            bounds=(0.0, 1.0),
            higher_is="more uncertain",
            by_passages=True,
        ),
        QuestionColumn("f1_at_k", f"F1@{DEFAULT_K}", bounds=(0.0, 1.0), higher_is="better"),
        QuestionColumn("n_claims", "Claims", "{:g}"),
    ),
    step=ClaimsStep,
    icon=":material/fact_check:",
)
