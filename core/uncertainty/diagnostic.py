"""The diagnostic *uncertainty*: whether the model says the same when it is asked again."""

from __future__ import annotations

import pandas as pd

from core.analyses import RECOVERED, Analyses
from core.llm.embeddings import shared_embedder
from core.run import Run
from core.socket import Diagnostic, Export, Need, QuestionColumn, Setting
from core.spreadsheet import csv_bytes
from core.stats import mean_in_unit
from core.uncertainty.analysis import Measured, UncertaintyAnalysis, measure
from core.uncertainty.definitions import DEFAULT_STABLE, DEFINITIONS
from core.uncertainty.findings import findings
from core.uncertainty.numbers import numbers
from core.uncertainty.step import UncertaintyStep


def recover(diagnosis: Analyses) -> pd.DataFrame:
    """Return how many questions have their samples in the planted groups, as `Analyses.recovered` has it."""
    samples = diagnosis["uncertainty"].samples
    frame = samples[["query_id", "meaning"]].assign(planted=diagnosis.run["samples"]["planted_meaning"])
    frame = frame[frame["planted"].notna() & frame["meaning"].notna()]
    if frame.empty:
        return pd.DataFrame(columns=[*RECOVERED])
    # The groups are the same where no group of one kind meets two of the other.
    pairs = frame.drop_duplicates().groupby("query_id", sort=False)
    same = pairs.size().eq(pairs["meaning"].nunique()) & pairs.size().eq(pairs["planted"].nunique())
    meaning = "Share of the questions whose samples are grouped by exactly the planted meanings."
    row = ("Meanings as planted", 1.0, *mean_in_unit(same, share=True), len(same), meaning, "")
    return pd.DataFrame([row], columns=[*RECOVERED])


STABLE_FROM = Setting(
    "stable_from",
    "Stable from",
    DEFAULT_STABLE,
    "A question is stable where at least this share of its samples has one meaning, unstable where no meaning "
    "holds half of them.",
    low=0.5,
)
BY_EMBEDDING = Setting(
    "by_embedding",
    "Measure embeddings too",
    False,
    "Embeds every different answer and sample with a small model on this machine: some seconds for a thousand "
    "texts. Adds the estimators by cosine and the plane of the embeddings.",
)


def samples_csv(diagnosis: Analyses) -> bytes:
    """Return one row per sampled answer, with its question and its meaning."""
    frame = diagnosis["uncertainty"].samples.copy()
    questions = diagnosis.run.queries.set_index("query_id")["question"]
    frame.insert(1, "question", frame["query_id"].map(questions))
    return csv_bytes(frame, diagnosis.run.data_source)


def context_csv(diagnosis: Analyses) -> bytes:
    """Return one row per estimator and condition of the context test."""
    return csv_bytes(diagnosis["uncertainty"].context.to_frame(), diagnosis.run.data_source)


def questions_csv(diagnosis: Analyses) -> bytes:
    """Return one row per question: every number, label and reason."""
    return csv_bytes(diagnosis["uncertainty"].queries, diagnosis.run.data_source)


def measure_embedded(run: Run) -> Measured:
    """Measure as `measure` does, with the packaged embedding model."""
    return measure(run, shared_embedder().embed)


def _analyse(diagnosis: Analyses) -> UncertaintyAnalysis:
    claims = diagnosis["claims"]
    grounding = claims.queries["grounding"] if claims.extracted else None
    measured = diagnosis.once(measure_embedded if diagnosis.settings["by_embedding"] else measure)
    return measured.labelled(float(diagnosis.settings["stable_from"]), grounding)


UNCERTAINTY = Diagnostic(
    name="uncertainty",
    title="Uncertainty",
    question="Does the model say the same when asked again?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    reads=("claims",),
    settings=(STABLE_FROM, BY_EMBEDDING),
    needs=(
        Need(
            "samples",
            "Not sampled: ask each question several times to see whether the answers agree.",
            step="uncertainty",
        ),
    ),
    exports=(
        Export(
            "uncertainty-csv", "Questions and uncertainty", ".csv", questions_csv, "One row per question."
        ),
        Export("samples-csv", "Sampled answers", ".csv", samples_csv, "One row per sampled answer."),
        Export(
            "context-csv",
            "Context test",
            ".csv",
            context_csv,
            "How each estimator moves when passages are left out or added, one row per estimator and condition.",
        ),
    ),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("stability", "Stability"),
        QuestionColumn(
            "agreement", "Agreement with the samples", bounds=(0.0, 1.0), higher_is="more confident"
        ),
        QuestionColumn(
            "agreement_rouge_l",
            "Word overlap with the samples",
            bounds=(0.0, 1.0),
            higher_is="more confident",
            is_secondary=True,
        ),
        QuestionColumn("entropy", "Semantic entropy", higher_is="more uncertain"),
        QuestionColumn("sum_eigen", "SumEigen", higher_is="more uncertain"),
    ),
    step=UncertaintyStep,
    icon=":material/casino:",
    group="trust",
    recover=recover,
)
