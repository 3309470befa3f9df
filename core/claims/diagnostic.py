"""The diagnostic *claims*: what each answer claims, and which passages support it."""

from __future__ import annotations

from core.claims.definitions import DEFINITIONS, QUADRANT
from core.claims.export import claims_csv
from core.claims.known import DEFAULT_SUPPORT
from core.claims.of_run.analysis import ClaimsAnalysis, analyse_claims
from core.claims.of_run.summary import claims_summary
from core.diagnosis import REASON, Diagnosis, Diagnostic, Export, Need, Number, QuestionColumn, Setting

SUPPORT = Setting(
    "support",
    "Support threshold",
    DEFAULT_SUPPORT,
    "A passage supports a claim from this probability on; the probabilities themselves stay.",
    low=0.05,
)


def numbers(claims: ClaimsAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers of claims; see `core.claims.of_run.summary` for the values."""
    facts = claims_summary(claims)
    n, judged = facts["n_claims"], (facts["n_claims_supported"] or 0) + (facts["n_claims_not_supported"] or 0)
    shown = (
        Number("n_claims", "Claims", n, n=facts["n_with_claims"], noun="answer", place="row"),
        Number(
            "n_claims_supported", "Supported claims", facts["n_claims_supported"], of=judged,
            note=f"{facts['n_claims_joint']:,} of them by two passages together only" if n else "", place="card",
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
        Number("claims_undefined_reasons", "Without grounding", facts["claims_undefined_reasons"], define=REASON, place="row"),
        Number("quadrants", "Passages, influence vs support", facts["quadrants"], define=QUADRANT, place="row"),
        Number("claims_judge", "Claims verified by", facts["claims_judge"], place="setup"),
    )  # fmt: skip
    keys = {number.key for number in shown}
    return (*shown, *(Number(key, value=value) for key, value in facts.items() if key not in keys))


def _analyse(diagnosis: Diagnosis) -> ClaimsAnalysis:
    return analyse_claims(diagnosis.run, diagnosis["influence"], float(diagnosis.settings["support"]))


CLAIMS = Diagnostic(
    name="claims",
    title="Claims & evidence",
    question="What does each answer claim, and which passage supports it?",
    analyse=_analyse,
    numbers=numbers,
    reads=("influence",),
    settings=(SUPPORT,),
    needs=(
        Need("claims", "Claims not extracted: extract and verify them to see which passages support them."),
    ),
    exports=(
        Export("claims-csv", "Claims × passages (CSV)", ".csv", claims_csv, "One row per claim and passage."),
    ),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("grounding", "Grounding", bounds=(0.0, 1.0)),
        QuestionColumn("n_claims", "Claims", "{:g}"),
    ),
    icon=":material/fact_check:",
)
