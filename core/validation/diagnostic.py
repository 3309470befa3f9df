"""The diagnostic *validation*: which answers should not be shown as they are, and why."""

from __future__ import annotations

import math

import numpy as np

from core.analyses import Analyses
from core.socket import REASON, Diagnostic, Export, Need, Number, QuestionColumn
from core.spreadsheet import csv_bytes
from core.text.display import number, p_text, share_interval
from core.validation.analysis import ValidationAnalysis, analyse_validation
from core.validation.definitions import BANDS, CODES, DEFINITIONS, METRICS
from core.validation.fallback import NAME, OURS
from core.validation.findings import findings
from core.validation.metrics import Average, Share
from core.validation.step import ValidationStep


def numbers(analysis: ValidationAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers."""
    q, found, stopped = analysis.queries, analysis.metrics, analysis.stopped
    codes = {str(code): n for code, n in found.reasons.items()}
    bands = q.loc[q["context_score"].notna(), "band"].value_counts().to_dict()
    critical = Share(int(q["critical"].fillna(False).sum()), analysis.n)
    return (
        _share("n_passed", found.passed, "passed", "Pass validation", "card",
            cases="queries.passed:True"),
        _share("n_stopped", critical, "stopped", "Answers stopped", "card", cases="queries.critical:True"),
        Number("incorrect_stopped", METRICS["incorrect_stopped"].title,
            stopped.wrong.count if stopped.wrong.n else None, of=stopped.wrong.n, define="incorrect_stopped",
            noun="incorrect answer", place="card", note=_told(stopped.p_value),
            chance=stopped.expected if stopped.n_flagged else None),
        Number("correct_stopped", METRICS["correct_stopped"].title,
            stopped.right.count if stopped.right.n else None, of=stopped.right.n, define="correct_stopped",
            noun="correct answer", place="row"),
        _mean("mean_context_score", found.confidence, "context_score", "Mean context score",
            _made_of(analysis)),
        _mean("mean_overlap", found.overlap, "overlap", "Mean evidence overlap"),
        _share("n_uncertain", found.uncertain, "uncertain", "Answers that express uncertainty", "row"),
        _share("n_fallbacks", found.fallback, "fallback", "Fallbacks", "row"),
        *(_flagged(analysis, name) for name in OURS),
        Number("context_bands", "Bands of the context score", bands, define=BANDS,
            noun="answer"),
        Number("validation_reasons", "Objections", codes, define=CODES, place="row",
            noun="answer"),
        Number("validation_undefined_reasons", "Not validated because",
            q["reason"].value_counts().to_dict(), define=REASON, place="row"),
    )  # fmt: skip


def _share(key: str, share: Share, define: str, title: str, place: str, cases: str = "") -> Number:
    note = share_interval(share.interval) if share.n else ""
    return Number(key, title, share.count if share.n else None, of=share.n, noun="answer", define=define,
        note=note, place=place, cases=cases)  # fmt: skip


def _made_of(analysis: ValidationAnalysis) -> str:
    """Say what part of the mean context score comes from the number of passages, and from validation."""
    bases = [one.context.reasons[0].change for one in analysis.outcomes.values()]
    if not bases:
        return ""
    base = sum(bases) / len(bases)
    change = number(analysis.metrics.confidence.mean - base, "{:+.2f}")
    return f"{number(base)} for the number of passages, {change} for validation"


def _mean(key: str, average: Average, define: str, title: str, note: str = "") -> Number:
    known = average.n > 0
    interval = (average.low, average.high) if known else None
    return Number(key, title, average.mean if known else None, n=average.n, noun="answer", interval=interval,
        define=define, note=note, place="row")  # fmt: skip


def _flagged(analysis: ValidationAnalysis, name: str) -> Number:
    """Return how many of the incorrect answers a validator flags."""
    key = f"flagged_by_{name}"
    title = f"Incorrect answers flagged by {name}"
    rows = analysis.validators[analysis.validators["validator"] == name]
    if rows.empty or not rows.iloc[0]["n_wrong"] or not rows.iloc[0]["n_applied"]:
        return Number(key, title, of=0, define="incorrect_flagged", place="row")
    row = rows.iloc[0]
    right = f"{row['right_flagged']:,} of {row['n_right']:,} correct ones"
    note = "; ".join(filter(None, [right, _told(row["p_value"])]))
    return Number(key, title, int(row["wrong_flagged"]), of=int(row["n_wrong"]), noun="incorrect answer",
        define="incorrect_flagged", chance=float(row["wrong_by_chance"]), note=note, place="row")  # fmt: skip


def _told(p_value: float) -> str:
    return "" if math.isnan(p_value) else p_text(p_value)


def verdicts_csv(diagnosis: Analyses) -> bytes:
    """Return one row per question and validator."""
    run = diagnosis.run
    questions = run.queries[["query_id", "question", "answer"]]
    return csv_bytes(questions.merge(run["verdicts"], on="query_id"), run.data_source)


def validators_csv(diagnosis: Analyses) -> bytes:
    """Return one row per validator."""
    return csv_bytes(diagnosis[NAME].validators, diagnosis.run.data_source)


def _analyse(diagnosis: Analyses) -> ValidationAnalysis:
    correct = diagnosis["answers"].queries["correct"]
    return analyse_validation(diagnosis.run, correct.astype("Float64").to_numpy(np.float64, na_value=np.nan))


VALIDATION = Diagnostic(
    name=NAME,
    title="Validation",
    question="Which answers should not be shown as they are, and what is wrong with them?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    reads=("answers",),
    needs=(Need("verdicts", "Not validated: no validator has checked the answers against their passages."),),
    exports=(
        Export(
            "verdicts-csv",
            "Verdicts of validators",
            ".csv",
            verdicts_csv,
            "One row per question and validator, with reason, number and spans.",
        ),
        Export(
            "validators-csv", "Validators", ".csv", validators_csv, "One row per validator, with its counts."
        ),
    ),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("passed", "Passes validation", "bool", higher_is="more confident"),
        QuestionColumn("context_score", "Context score", bounds=(0.0, 1.0), higher_is="more confident"),
    ),
    step=ValidationStep,
    icon=":material/rule:",
    group="trust",
)
