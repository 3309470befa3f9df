"""The diagnostic *influence*: whether the model uses the passages in the order of retrieval."""

from __future__ import annotations

from core.diagnosis import MODE, REASON, Diagnosis, Diagnostic, Export, Need, Number, QuestionColumn, Setting
from core.influence.analysis import InfluenceAnalysis, analyse
from core.influence.definitions import DEFAULT_THRESHOLD, DEFINITIONS
from core.influence.export import influence_csv, questions_csv
from core.influence.step import InfluenceStep
from core.influence.summary import summary

THRESHOLD = Setting(
    "threshold",
    "Divergence threshold τ",
    DEFAULT_THRESHOLD,
    "Questions with rank agreement ρ ≥ τ are aligned, those below divergent.",
    low=-1.0,
)


def numbers(analysis: InfluenceAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers of influence; see `core.influence.summary.summary` for the values."""
    facts = summary(analysis)
    n = facts["n_defined"]
    chance = facts["p_random_divergent"]
    by_chance = f"of random orders {100 * chance:.0f} % are" if chance is not None else ""
    shown = (
        Number("mean_rho", "Mean ρ", facts["mean_rho"], n=n, interval=facts["rho_ci"], define="rho", place="card"),
        Number("median_rho", "Median ρ", facts["median_rho"], n=n, define="rho", place="row"),
        Number("n_divergent", "Divergent", facts["n_divergent"], of=n, define="label", note=by_chance, place="card"),
        Number(
            "mean_dominance", "Mean dominance", facts["mean_dominance"], n=facts["n_dominance"],
            define="dominance", place="row",
        ),
        Number(
            "mean_entropy", "Mean entropy (nats)", facts["mean_entropy"], n=facts["n_dominance"],
            define="entropy", place="row",
        ),
        Number(
            "mean_noise_quantile", "Mean noise floor", facts["mean_noise_quantile"],
            n=facts["n_noise_quantile"], define="noise_quantile", place="row",
        ),
        Number("undefined_reasons", "Without ρ", facts["undefined_reasons"], define=REASON, place="row"),
        Number("failure_modes", "Failure modes", facts["failure_modes"], define=MODE, place="row"),
    )  # fmt: skip
    keys = {number.key for number in shown}
    return (*shown, *(Number(key, value=value) for key, value in facts.items() if key not in keys))


def _analyse(diagnosis: Diagnosis) -> InfluenceAnalysis:
    return analyse(diagnosis.run, float(diagnosis.settings["threshold"]))


INFLUENCE = Diagnostic(
    name="influence",
    title="Influence vs retrieval",
    question="Does the model use the passages in the order the retriever gave them?",
    analyse=_analyse,
    numbers=numbers,
    settings=(THRESHOLD,),
    needs=(Need("passages", "The run has no passages."),),
    exports=(
        Export(
            "csv", "Passages and influence (CSV)", ".csv", influence_csv, "One row per question and passage."
        ),
        Export(
            "queries-csv", "Questions and influence (CSV)", ".csv", questions_csv, "One row per question."
        ),
    ),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("label", "Label"),
        QuestionColumn("rho", "ρ"),
        QuestionColumn("dominance", "Dominance"),
    ),
    step=InfluenceStep,
    icon=":material/swap_vert:",
)
