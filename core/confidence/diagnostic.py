"""The diagnostic *confidence*: how sure one may be of each answer, and whether that is true."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from core.analyses import Analyses
from core.arrays import Floats
from core.calibration.in_use import COLUMNS, THRESHOLD_SETTING, in_use, threshold_in_use
from core.calibration.weighted import RANGES, THRESHOLD
from core.confidence.analysis import ConfidenceAnalysis, analyse_confidence
from core.confidence.definitions import DEFINITIONS, FINDINGS, METRICS
from core.confidence.findings import findings, numbers
from core.confidence.step import ConfidenceStep
from core.errors import InputError
from core.socket import EARLIER, Diagnostic, Export, Need, QuestionColumn
from core.spreadsheet import csv_bytes


def confidence_csv(diagnosis: Analyses) -> bytes:
    """Return one row per question: confidence, band, combined uncertainty, and each signal in [0, 1]."""
    found = diagnosis["confidence"]
    weighted = [name for name in found.signals if name in found.weighting.weights]
    parts = {f"signal.{name}": found.signals[name] for name in weighted}
    return csv_bytes(found.queries.assign(**parts), diagnosis.run.data_source)


def reliability_csv(diagnosis: Analyses) -> bytes:
    """Return one row per bin of the reliability diagram."""
    columns = ["number", "low", "high", "n", "confidence", "accuracy", "accuracy_low", "accuracy_high"]
    return csv_bytes(pd.DataFrame(diagnosis["confidence"].bins, columns=columns), diagnosis.run.data_source)


def _analyse(diagnosis: Analyses) -> ConfidenceAnalysis:
    used = in_use(diagnosis)
    try:
        threshold = threshold_in_use(diagnosis.settings)
    except InputError as error:
        used, threshold = replace(used, reason=str(error)), THRESHOLD
    conformal, samples = diagnosis["conformal"].queries, diagnosis["uncertainty"].queries
    verdict = conformal["verdict"].map({"In line": True, "Flagged": False}).astype("boolean")
    sampling, variance = _unit(samples["agreement"]), _unit(samples["embedding_variance"])
    return analyse_confidence(
        diagnosis.run, used, threshold, sampling, 1 - variance, _unit(conformal["confidence"]), verdict
    )


def _unit(values: pd.Series) -> Floats:
    return np.clip(values.to_numpy(dtype=np.float64, na_value=math.nan), 0.0, 1.0)


CONFIDENCE = Diagnostic(
    name="confidence",
    title="Confidence",
    question="How confident can one be in each answer, and is that confidence justified?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    finds=tuple(FINDINGS),
    reads=EARLIER,
    settings=(THRESHOLD_SETTING,),
    needs=(
        Need(
            "signals",
            "No confidence signals: measure how well the passages fit the question, and ask the model how sure it is.",
            step="confidence",
            other="confidences",
        ),
    ),
    exports=(
        Export("confidence-csv", "Questions and confidence", ".csv", confidence_csv, "One row per question."),
        Export("reliability-csv", "Reliability diagram", ".csv", reliability_csv, "One row per bin."),
    ),
    figures=("reliability_diagram",),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("confidence", "Confidence", bounds=(0.0, 1.0), higher_is="more confident"),
        *(
            QuestionColumn(column, METRICS[column].title, bounds=RANGES[name], higher_is="more confident")
            for column, name in COLUMNS.items()
        ),
        QuestionColumn(
            "combined_uncertainty",
            "Combined uncertainty",
            bounds=(0.0, 1.0),
            higher_is="more uncertain",
            is_secondary=True,
        ),
    ),
    step=ConfidenceStep,
    icon=":material/speed:",
    group="trust",
)
