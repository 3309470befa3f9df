"""The diagnostic *claims*: what each answer claims, and which passages support it."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.claims.analysis.claims_analysis import ClaimsAnalysis, analyse_claims
from core.claims.analysis.layout import layout_of
from core.claims.analysis.question_tables import step_facts
from core.claims.definitions import DEFINITIONS, QUADRANT
from core.claims.matrix import FRAGILE, UNSCORED, UNSUPPORTED
from core.claims.quadrants import quadrant_counts
from core.claims.rafe import DEFAULT_K
from core.claims.step import OFFLINE, ClaimsStep
from core.claims.three_valued import DEFAULT_SUPPORT
from core.diagnosis import (
    REASON,
    Diagnosis,
    Diagnostic,
    Export,
    Finding,
    Need,
    Number,
    QuestionColumn,
    Setting,
)
from core.spreadsheet import csv_bytes
from core.stats import mean_in_unit, wilson_interval
from core.text.display import count, part, percent

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
_MOSTLY = 0.5


def numbers(claims: ClaimsAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers of claims; without a value where none were extracted.

    Claims are those of answers, and add up: supported (the joint ones among them) + not supported +
    irrelevant + unscored = all. Means are over answers, the unit of all other means.
    """
    q = claims.queries
    counts: dict[str, Any] = {key: int(q[column].sum()) for key, column in _COUNTS.items()}
    n, judged = counts["n_claims"], counts["n_claims_supported"] + counts["n_claims_not_supported"]
    grounding, *interval = mean_in_unit(q["grounding"])
    uncertainty, *_ = mean_in_unit(q["mean_uncertainty"])
    facts = {
        **counts,
        "mean_grounding": _known(grounding),
        "n_grounding": int(q["grounding"].notna().sum()),
        "grounding_ci": None if np.isnan(interval).any() else interval,
        "mean_claim_uncertainty": _known(uncertainty),
        "n_claim_uncertainty": int(q["mean_uncertainty"].notna().sum()),
        "n_with_claims": claims.n_with_claims,
        "n_verdicts_changed": claims.n_verdicts_changed,
        "n_verdicts_from_file": claims.n_verdicts_from_file,
        "claims_judge": claims.judge,
        "claims_extracted_by": (step_facts(claims.run) or {}).get("decomposition"),
        "support_threshold": claims.threshold,
        "claims_undefined_reasons": q["reason"].value_counts().to_dict(),
        "quadrants": _quadrants(claims),
    }
    if not claims.extracted:
        facts, n, judged = dict.fromkeys(facts), 0, 0
    joint = f"{counts['n_claims_joint']:,} of them by two passages together only" if n else ""
    shown = (
        Number("n_claims", "Claims", facts["n_claims"], n=facts["n_with_claims"], noun="answer", place="row"),
        Number(
            "n_claims_supported", "Supported claims", facts["n_claims_supported"], of=judged, note=joint,
            place="card",
        ),
        Number("n_claims_irrelevant", "Irrelevant claims", facts["n_claims_irrelevant"], of=n, place="row"),
        Number("n_claims_unscored", "Unscored claims", facts["n_claims_unscored"], of=n, place="row"),
        Number("n_cells_unscored", "Unscored cells", facts["n_cells_unscored"], place="row"),
        Number(
            "mean_grounding", "Mean grounding", facts["mean_grounding"], n=facts["n_grounding"], noun="answer",
            interval=facts["grounding_ci"], define="grounding", place="card",
        ),
        Number(
            "mean_claim_uncertainty", "Mean claim uncertainty U", facts["mean_claim_uncertainty"],
            n=facts["n_claim_uncertainty"], noun="answer", define="claim_uncertainty", place="row",
        ),
        Number("claims_undefined_reasons", "Grounding undefined because", facts["claims_undefined_reasons"], define=REASON, place="row"),
        Number("quadrants", "Passages, influence vs support", facts["quadrants"], define=QUADRANT, place="row"),
        Number("claims_judge", "Claims verified by", facts["claims_judge"], place="setup"),
        Number("claims_extracted_by", "Claims extracted by", facts["claims_extracted_by"], place="setup"),
    )  # fmt: skip
    keys = {number.key for number in shown}
    return (*shown, *(Number(key, value=value) for key, value in facts.items() if key not in keys))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _quadrants(claims: ClaimsAnalysis) -> dict[str, int]:
    """Count the passages of answers with claims by quadrant."""
    q = claims.queries
    of_answers = claims.run.passages["query_id"].isin(q["query_id"][q["n_claims"] > 0]).to_numpy(dtype=bool)
    counts = quadrant_counts(claims.quadrant[of_answers])
    return dict(zip(counts["quadrant"], counts["n"].tolist(), strict=True))


def findings(claims: ClaimsAnalysis) -> tuple[Finding, ...]:
    """Return claims without support, cells without a score, and claims that depend on one passage.

    None has a chance baseline: a retrieved passage is no random passage, so how many claims random passages
    would support says nothing about how many these should.
    """
    return tuple(
        one for one in (_unsupported(claims), _unscored(claims), _fragile(claims)) if one is not None
    )


def _unsupported(claims: ClaimsAnalysis) -> Finding | None:
    q = claims.queries
    n, of = int(q["n_not_supported"].sum()), int((q["n_supported"] + q["n_not_supported"]).sum())
    if not n:
        return None
    # In the order of `unsupported`, which reads every ablated answer first.
    worst = q[q["n_not_supported"] > 0].sort_values(
        ["n_not_supported", "grounding"], ascending=[False, True], kind="stable"
    )
    advice = (
        "Read these answers first. Improve retrieval, or tell the model to answer only from the passages."
    )
    if claims.judge == OFFLINE:
        advice += (
            " The offline verifier is weak on hard claims: check a sample, or verify again with a judge."
        )
    return Finding(
        UNSUPPORTED,
        f"{n:,} of {count(of, 'verified claim')} in {count(len(worst), 'answer')} "
        f"{'has' if n == 1 else 'have'} no supporting passage.",
        n,
        of,
        wilson_interval(n / of, of),
        severity=_severity(n / of, 0.5, 0.2),
        advice=advice,
        query_ids=tuple(worst["query_id"]),
        clause=f"{part(n, of, 'claim')} in the answers have no supporting passage "
        f"({percent(n / of, wilson_interval(n / of, of))})",
    )


def _unscored(claims: ClaimsAnalysis) -> Finding | None:
    q = claims.queries
    n, of = int(q["n_cells_unscored"].sum()), int(q["n_cells"].sum())
    if not n:
        return None
    reasons = (step_facts(claims.run) or {}).get("unscored_reasons") or {}
    why = f" Most often: {max(reasons, key=lambda reason: reasons[reason])}" if reasons else ""
    worst = q[q["n_cells_unscored"] > 0].sort_values("n_cells_unscored", ascending=False, kind="stable")
    return Finding(
        UNSCORED,
        f"{n:,} of {count(of, 'pair')} of claim and passage {'has' if n == 1 else 'have'} no score.{why}",
        n,
        of,
        severity=_severity(n / of, 0.5, 0.05),
        advice="Verify the claims again: only what is missing is asked.",
        query_ids=tuple(worst["query_id"]),
    )


def _fragile(claims: ClaimsAnalysis) -> Finding | None:
    """Report that most supported claims depend on a single passage of several."""
    layout = claims.layout
    table = claims.scores.assign(query_id=layout.claims["query_id"].array)
    table = table[layout.of_answer & (table["n_passages"] > 1)]
    fragile = table[table["state"] == FRAGILE]
    n, of = len(fragile), int((table["verdict"] == "SUPPORTED").sum())
    if not n or n / of < _MOSTLY:
        return None
    return Finding(
        FRAGILE,
        f"{n:,} of {count(of, 'supported claim')} {'has' if n == 1 else 'have'} only one supporting passage.",
        n,
        of,
        wilson_interval(n / of, of),
        severity="low",
        advice="Nothing confirms that passage. Where it matters, retrieve a second source.",
        query_ids=tuple(fragile["query_id"].value_counts(sort=True).index),
    )


def _severity(share: float, high: float, medium: float) -> str:
    return "high" if share >= high else "medium" if share >= medium else "low"


def claims_csv(diagnosis: Diagnosis) -> bytes:
    """Return one row per claim of an answer and passage; no rows without claims.

    Each row has the claim's state, verdict and scores and the passage's probability, sentence and judge;
    ``causal`` is the leave-one-out effect. States and verdicts follow from ``support_threshold``. Claims of
    reference answers are not included.
    """
    claims = diagnosis["claims"]
    frame = claims.to_frame().assign(support_threshold=claims.threshold)
    return csv_bytes(frame, diagnosis.run.data_source)


def _analyse(diagnosis: Diagnosis) -> ClaimsAnalysis:
    layout = diagnosis.once(layout_of)
    return analyse_claims(layout, diagnosis["influence"], float(diagnosis.settings["support"]))


CLAIMS = Diagnostic(
    name="claims",
    title="Claims & evidence",
    question="What does each answer claim, and which passages support it?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
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
