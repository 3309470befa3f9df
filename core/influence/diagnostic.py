"""The diagnostic *influence*: whether the model uses the passages in the order of retrieval."""

from __future__ import annotations

from core.influence.analysis import InfluenceAnalysis, analyse
from core.influence.definitions import DEFAULT_THRESHOLD, DEFINITIONS, LOGPROB, ROUGE
from core.influence.export import influence_csv, questions_csv
from core.influence.findings import findings
from core.influence.recovery import recover
from core.influence.step import InfluenceStep
from core.influence.summary import numbers
from core.run import Run
from core.socket import Analyses, Diagnostic, Export, Need, QuestionColumn, Setting

THRESHOLD = Setting(
    "influence_threshold",
    "Divergence threshold τ",
    DEFAULT_THRESHOLD,
    "Questions with rank agreement ρ ≥ τ are aligned, those below divergent.",
    low=-1.0,
)


AS_PUBLISHED = Setting(
    "as_published",
    "Labels as published",
    False,
    "Label by ρ < τ alone, as published figures do, even where tied influences keep every order below τ.",
)

MEASURE = Setting(
    "influence",
    "Influence measured by",
    ROUGE,
    "rouge: how much the words of the answer change without a passage. logprob: how much less likely the "
    "answer becomes, by the step likelihood.",
    choices=(ROUGE, LOGPROB),
)


def _by_logprob(run: Run) -> InfluenceAnalysis:
    return analyse(run, measure=LOGPROB)


def _analyse(diagnosis: Analyses) -> InfluenceAnalysis:
    settings = diagnosis.settings
    measured = _by_logprob if settings["influence"] == LOGPROB else analyse
    return diagnosis.once(measured).labelled(
        float(settings["influence_threshold"]), bool(settings["as_published"])
    )


INFLUENCE = Diagnostic(
    name="influence",
    title="Influence vs retrieval",
    question="Does the model use the passages in the order the retriever gave them?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    settings=(THRESHOLD, AS_PUBLISHED, MEASURE),
    needs=(
        Need("passages", "The run has no passages."),
        Need(
            "passages",
            "No passage was left out of a prompt: load the questions on the Live page and run the influence "
            "step, or run the step likelihood to score the answers that are there.",
            ("ablated_answer", "influence_score", "logprob_drop"),
            step="influence",
        ),
    ),
    exports=(
        Export("csv", "Passages and influence", ".csv", influence_csv, "One row per question and passage."),
        Export("queries-csv", "Questions and influence", ".csv", questions_csv, "One row per question."),
    ),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("label", "Label"),
        QuestionColumn("rho", "ρ", bounds=(-1.0, 1.0)),
        QuestionColumn("influence_ndcg", "nDCG by influence", bounds=(0.0, 1.0), by_passages=True),
        QuestionColumn("dominance", "Dominance", bounds=(0.0, 1.0), by_passages=True),
        QuestionColumn("influences", "Influence by retrieval rank", "list", (0.0, 1.0)),
    ),
    step=InfluenceStep,
    icon=":material/swap_vert:",
    recover=recover,
)
