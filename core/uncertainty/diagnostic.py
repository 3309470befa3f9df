"""The diagnostic *uncertainty*: whether the model says the same when it is asked again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from core.analyses import RECOVERED, Analyses
from core.llm.embeddings import shared_embedder
from core.run import Run
from core.socket import REASON, Diagnostic, Export, Need, Number, QuestionColumn, Setting
from core.spreadsheet import csv_bytes
from core.stats import mean_in_unit, mean_interval, wilson_interval
from core.text.display import count, share_interval
from core.uncertainty.analysis import UncertaintyAnalysis, measure
from core.uncertainty.definitions import (
    DEFAULT_STABLE,
    DEFINITIONS,
    FAILS,
    FINDINGS,
    PASSES,
    STABLE,
    UNDEFINED,
    UNSTABLE,
    VARIES,
)
from core.uncertainty.findings import comparable, findings
from core.uncertainty.step import UncertaintyStep


def numbers(analysis: UncertaintyAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers.

    Stable, varying and unstable answers add up to the questions with a label.
    """
    q = analysis.queries
    label = q["stability"].value_counts()
    of = len(q) - int(label.get(UNDEFINED, 0))
    compared = comparable(q)
    expected = compared["differs_by_chance"]
    n_other = int((~compared["baseline_in_largest"].astype(bool)).sum())
    agreement, entropy, share = (q[name].dropna() for name in ("agreement", "entropy", "meaning_share"))
    confidence = 1 - q["embedding_variance"].dropna()
    auroc = analysis.quality("agreement_text")
    stable = int(label.get(STABLE, 0))
    context = analysis.context
    tests = context.compared
    return (
        Number("n_stable", "Stable answers", stable, of=of, define="stability", place="card",
            note=share_interval(wilson_interval(stable / of, of)) if of else "",
            cases=f"queries.stability:{STABLE}"),
        Number("n_varies", "Varying answers", int(label.get(VARIES, 0)), of=of, define="stability",
            place="row", cases=f"queries.stability:{VARIES}"),
        Number("n_unstable", "Unstable answers", int(label.get(UNSTABLE, 0)), of=of, define="stability",
            place="row", cases=f"queries.stability:{UNSTABLE}"),
        Number("n_baseline_disagrees", "Answers that differ from most samples", n_other, of=len(compared),
            define="baseline_disagrees", chance=float(expected.sum()) if len(compared) else None, place="row",
            cases="queries.baseline_in_largest:False"),
        _mean("mean_agreement", "Mean agreement with the samples", agreement, mean_in_unit(agreement),
            "agreement"),
        _mean("mean_meaning_share", "Mean share of the largest meaning", share, mean_in_unit(share),
            "meaning_share"),
        _mean("mean_semantic_entropy", "Mean semantic entropy", entropy,
            (entropy.mean(), *mean_interval(entropy, lower=0.0)), "entropy"),
        replace(
            _mean("mean_mc_confidence", "Mean MC dropout confidence", confidence, mean_in_unit(confidence),
                "mc_confidence"),
            place="card" if len(confidence) else "row"),
        Number("agreement_auroc", "AUROC of agreement at finding incorrect answers",
            auroc and auroc.auroc[0], n=auroc.n if auroc else 0, noun="answer",
            interval=auroc and auroc.auroc[1:], chance=0.5, define="agreement",
            note=analysis.not_judged or "", place="row"),
        Number("context_failures", "Context tests failed",
            int((tests["outcome"] == FAILS).sum()), of=len(tests), define="context_test", place="row",
            note=f"{count(len(context.query_ids), 'question')}; "
            f"{(tests['outcome'] == PASSES).sum():,} passed; chance gives any failure at most 1 time in 10"
            if len(tests) else ""),
        Number("n_order_dependent", "Number of meanings depends on the order of the samples",
            int((q["meanings_low"] < q["meanings_high"]).sum()), of=int((q["n_samples"] > 1).sum()),
            define="meanings_low", place="row"),
        Number("uncertainty_undefined_reasons", "Uncertainty undefined because",
            q["reason"].value_counts().to_dict(), define=REASON, place="row"),
        Number("n_samples", "Samples per question", _range(q["n_samples"]), place="setup"),
        Number("n_sampled", value=int((q["n_samples"] > 0).sum())),
        Number("n_context_questions", value=len(context.query_ids)),
        Number("meaning_rule", value=analysis.rule),
        Number("stable_from", value=analysis.stable_from),
    )  # fmt: skip


def _range(values: pd.Series) -> str | None:
    """Return the smallest and the largest number above 0; one where they are the same."""
    some = values[values > 0]
    return "–".join(f"{n}" for n in dict.fromkeys([some.min(), some.max()])) if len(some) else None


def _mean(key: str, title: str, values: Any, found: tuple[float, float, float], define: str) -> Number:
    value, *interval = found
    return Number(
        key, title, float(value) if len(values) else None, n=len(values),
        interval=None if np.isnan(interval).any() else (float(interval[0]), float(interval[1])),
        define=define, place="row",
    )  # fmt: skip


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


def measure_embedded(run: Run) -> UncertaintyAnalysis:
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
    finds=tuple(FINDINGS),
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
    figures=("entropy_agreement", "estimator_leaderboard"),
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
