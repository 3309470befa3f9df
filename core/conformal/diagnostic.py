"""The diagnostic *conformal*: which answers to withhold, and what can be promised of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from core.analyses import Analyses
from core.calibration.in_use import WEIGHTS_SETTING, in_use
from core.conformal.analysis import OWN, ConformalAnalysis, analyse_conformal, nothing_known, truth_of
from core.conformal.definitions import DEFAULT_ALPHA, DEFINITIONS, FINDINGS
from core.conformal.findings import findings, numbers, recover
from core.conformal.promises import Calibration
from core.conformal.step import ConformalStep
from core.socket import EARLIER, Diagnostic, Export, Need, QuestionColumn, Setting
from core.spreadsheet import csv_bytes

ALPHA = Setting(
    "alpha",
    "Error rate α",
    DEFAULT_ALPHA,
    "How often a conformal promise may be broken: 0.1 promises 9 in 10.",
    0.01,
    0.5,
    0.01,
)
_NOTHING = Calibration(np.empty(0), np.empty(0), ())


def conformal_csv(diagnosis: Analyses) -> bytes:
    """Return one row per question: role, score, p-value, verdict, set and reason."""
    return csv_bytes(diagnosis["conformal"].queries, diagnosis.run.data_source)


def risk_csv(diagnosis: Analyses) -> bytes:
    """Return one row per threshold that was tested for the certificate."""
    return csv_bytes(diagnosis["conformal"].certificate.to_frame(), diagnosis.run.data_source)


def _claims(claims: Any) -> pd.DataFrame:
    """Return the claims of the answers with what the reference answer says of them."""
    table, label = claims.layout.claims, claims.layout.claims["counterpart"]
    frame = table[["query_id"]].assign(
        support_maximum=claims.scores["support_maximum"].array,
        correct=np.where(label.isna(), np.nan, (label == "Entailment").astype("float64")),
    )
    return frame[claims.layout.of_answer]


def _analyse(diagnosis: Analyses) -> ConformalAnalysis:
    run, used = diagnosis.run, in_use(diagnosis)
    options = run.manifest.get("steps", {}).get("conformal", {}).get("options", {})
    origin, store = OWN, None
    if options.get("calibration") is not None:
        origin = "store" if used.saved is None else used.saved.store
        # What does not fit calibrates nothing.
        store = _NOTHING
        if used.saved is not None and not used.stale:
            store = Calibration(used.saved.scores, used.saved.correct, used.saved.kinds)
    elif not run.queries["calibrates"].fillna(False).any():
        origin = ""
    return analyse_conformal(
        run,
        diagnosis.once(truth_of if origin else nothing_known),
        used.correct,
        used.score,
        used.choices,
        float(diagnosis.settings["alpha"]),
        meanings=diagnosis["uncertainty"].samples,
        claims=_claims(diagnosis["claims"]),
        store=store,
        origin=origin,
        stale=used.stale,
        # A file may say itself which questions calibrate; the step draws a half.
        is_random_half=store is None and "seed" in options,
    )


CONFORMAL = Diagnostic(
    name="conformal",
    title="Conformal",
    question="Which answers should be withheld, and what can be promised of the others?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    finds=tuple(FINDINGS),
    reads=EARLIER,
    settings=(ALPHA, WEIGHTS_SETTING),
    needs=(
        Need(
            "queries",
            "Not calibrated: choose labelled questions to calibrate on, and see what can be promised of the others.",
            "calibrates",
        ),
    ),
    exports=(
        Export("conformal-csv", "Questions and verdicts", ".csv", conformal_csv, "One row per question."),
        Export("risk-csv", "Thresholds tested", ".csv", risk_csv, "One row per confidence, with its risk."),
    ),
    figures=("certified_risk", "score_histogram"),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("verdict", "Conformal verdict"),
        QuestionColumn(
            "p_value", "Conformal p", bounds=(0.0, 1.0), higher_is="more confident", is_secondary=True
        ),
        QuestionColumn(
            "set_size", "Answers in the set", "{:g}", higher_is="more uncertain", is_secondary=True
        ),
    ),
    step=ConformalStep,
    icon=":material/verified_user:",
    group="trust",
    recover=recover,
)
