"""The diagnostic *validation*: which answers should not be shown as they are, and why."""

from __future__ import annotations

import numpy as np

from core.analyses import Analyses
from core.socket import Diagnostic, Export, Need, QuestionColumn
from core.spreadsheet import csv_bytes
from core.validation.analysis import ValidationAnalysis, analyse_validation
from core.validation.definitions import DEFINITIONS
from core.validation.findings import findings
from core.validation.numbers import numbers
from core.validation.rows import NAME
from core.validation.step import ValidationStep


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
