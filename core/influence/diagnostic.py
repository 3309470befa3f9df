"""The diagnostic *influence*: whether the model uses the passages in the order of retrieval."""

from __future__ import annotations

from typing import Any

import pandas as pd

from core.analyses import Analyses
from core.influence.analysis import InfluenceAnalysis, analyse
from core.influence.definitions import DEFAULT_THRESHOLD, DEFINITIONS
from core.influence.findings import FINDS, findings
from core.influence.measures import MEASURES, ROUGE
from core.influence.recovery import recover
from core.influence.step import InfluenceStep
from core.influence.summary import numbers
from core.socket import Diagnostic, Export, Need, QuestionColumn, Setting
from core.spreadsheet import csv_bytes


def influence_csv(diagnosis: Analyses) -> bytes:
    """Return an influence CSV: the 14 published columns, then ``label, reason, data_source``.

    One row per question and passage, in the run's order, with the recomputed numbers.
    ``rouge_l`` is 1 - ``influence_score``. ``data_source`` is `core.run.Run.data_source`. Influence by another
    measure is no score of words: then that measure's ``exported`` columns take the place of both:
    ``logprob_drop`` with ``approximate_drop``, whether it is only estimated; ``surrogate`` or ``shapley`` with
    ``_low`` and ``_high``.
    """
    run, analysis = diagnosis.run, diagnosis["influence"]
    p, q, raw = analysis.passages, analysis.queries, run.queries
    row = pd.Index(q["query_id"]).get_indexer(p["query_id"])
    values = p.assign(rouge_l=1 - p["influence"], approximate_drop=run.passages["approximate_drop"])

    def of_question(values: pd.Series) -> Any:
        return values.take(row).array

    divergent = q["label"].map({"Divergent": True, "Aligned": False}).astype("boolean")
    frame = pd.DataFrame(
        {
            "query": of_question(raw["question"]),
            "baseline_answer": of_question(raw["answer"]),
            "spearman_rho": of_question(q["rho"]),
            "spearman_pvalue": of_question(q["p_value"]),
            "dominance_ratio": of_question(q["dominance"]),
            "influence_entropy": of_question(q["entropy"]),
            "is_divergent": of_question(divergent),
            "doc_id": p["passage_id"].array,
            "passage": run.passages["text"].array,
            "retrieval_rank": p["retrieval_rank"].array,
            "retrieval_score": p["retrieval_score"].array,
            **{name: values[source].array for name, source in analysis.measure.exported.items()},
            "influence_rank": p["influence_rank"].array,
            "label": of_question(q["label"]),
            "reason": of_question(q["reason"]),
        }
    )
    return csv_bytes(frame, run.data_source)


def questions_csv(diagnosis: Analyses) -> bytes:
    """Return one row per question: every number, label, reason and failure mode."""
    return csv_bytes(diagnosis["influence"].queries, diagnosis.run.data_source)


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
    "Each answers another question. "
    + " ".join(f"{m.title} ({m.name}): {m.asks}." for m in MEASURES.values()),
    choices=tuple(MEASURES),
    titles=tuple(one.title for one in MEASURES.values()),
)


def _analyse(diagnosis: Analyses) -> InfluenceAnalysis:
    settings = dict(diagnosis.settings)
    shared = settings | {one.name: one.default for one in (THRESHOLD, AS_PUBLISHED)}
    if settings != shared:  # only labels depend on these
        found: InfluenceAnalysis = diagnosis.at(shared)["influence"]
        return found.labelled(float(settings["influence_threshold"]), bool(settings["as_published"]))
    measure = MEASURES[str(settings["influence"])]
    losses = diagnosis["losses"] if len(diagnosis.run["arms"]) else None
    return analyse(
        diagnosis.run,
        measure=measure.name,
        attribution=diagnosis["attribution"] if measure.reads_attribution else None,
        # What another model makes of it says nothing of this one.
        by_placebo=None if losses is None or losses.model else losses.by_placebo(),
    )


INFLUENCE = Diagnostic(
    name="influence",
    title="Influence vs retrieval",
    question="Does the model use the passages in the order the retriever gave them?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    finds=FINDS,
    settings=(THRESHOLD, AS_PUBLISHED, MEASURE),
    reads=("attribution", "losses"),
    needs=(
        Need("passages", "The run has no passages."),
        Need(
            "passages",
            "No passage was left out of a prompt: load the questions on the Live page and run the influence "
            "step, or run the step likelihood to score the answers that are there.",
            ("ablated_answer", "influence_score", "logprob_drop"),
            step="influence",
            other="ablations",
        ),
    ),
    exports=(
        Export("csv", "Passages and influence", ".csv", influence_csv, "One row per question and passage."),
        Export("queries-csv", "Questions and influence", ".csv", questions_csv, "One row per question."),
    ),
    figures=("rank_against_rank", "influence_by_rank"),
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
