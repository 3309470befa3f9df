"""The diagnostic *conformal*: which answers to withhold, and what can be promised of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from core.calibration.saved import Snapshot
from core.conformal.analysis import OWN, ConformalAnalysis, analyse_conformal, nothing_known, truth_of
from core.conformal.definitions import DEFAULT_ALPHA, DEFINITIONS
from core.conformal.findings import findings
from core.conformal.numbers import numbers
from core.conformal.promises import Calibration
from core.conformal.recovery import recover
from core.conformal.scores import AUTO, chosen
from core.conformal.step import ConformalStep
from core.diagnosis import EARLIER, Diagnosis, Diagnostic, Export, Need, QuestionColumn, Setting
from core.signals import label_free, signals_of
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
SCORE = Setting(
    "score",
    "Score",
    AUTO,
    "Signal that says without a reference answer how typical an answer is: <diagnostic>.<column>, or auto.",
)


_NOTHING = Calibration(np.empty(0), np.empty(0), ())


def conformal_csv(diagnosis: Diagnosis) -> bytes:
    """Return one row per question: role, score, p-value, verdict, set and reason."""
    return csv_bytes(diagnosis["conformal"].queries, diagnosis.run.data_source)


def risk_csv(diagnosis: Diagnosis) -> bytes:
    """Return one row per threshold that was tested for the certificate."""
    return csv_bytes(diagnosis["conformal"].certificate.to_frame(), diagnosis.run.data_source)


def _claims(claims: Any) -> pd.DataFrame:
    """Return the claims of the answers with what the reference answer says of them."""
    table, label = claims.layout.claims, claims.layout.claims["counterpart"]
    frame = table[["query_id"]].assign(
        support_maximum=claims.scores["support_maximum"].array,
        correct=np.where(label.isna(), np.nan, (label == "Entailment").astype("float64")),
    )
    return frame[claims.layout.of_answer].reset_index(drop=True)


def _analyse(diagnosis: Diagnosis) -> ConformalAnalysis:
    run = diagnosis.run
    earlier = [diagnosis.diagnostic(name) for name in diagnosis.read_by("conformal")]
    signals = signals_of(diagnosis, earlier, secondary=True)
    scores = label_free(signals)
    outcome = next((one for one in signals if one.is_outcome), None)
    name, origin = str(diagnosis.settings["score"]), OWN
    store: Calibration | None = None
    stale: tuple[str, ...] = ()
    options = run.manifest.get("steps", {}).get("conformal", {}).get("options", {})
    saved = options.get("calibration")
    if saved is not None:
        origin, store, stale = "store", _NOTHING, ("what the run keeps of it cannot be read",)
        kept = Snapshot.from_json(saved)
        if kept is not None:
            name, origin, stale = kept.score if name == AUTO else name, kept.store, kept.misfits(run.manifest)
            if name != kept.score:
                stale = (*stale, f"calibrated with the score {kept.score}, chosen is {name}")
            # What does not fit calibrates nothing.
            store = _NOTHING if stale else Calibration(kept.scores, kept.correct, kept.kinds)
    elif not run.queries["calibrates"].fillna(False).any():
        origin = ""
    return analyse_conformal(
        run,
        diagnosis.once(truth_of if origin else nothing_known),
        np.full(len(run.queries), np.nan) if outcome is None else outcome.values,
        chosen(scores, name),
        scores,
        float(diagnosis.settings["alpha"]),
        meanings=diagnosis["uncertainty"].samples,
        claims=_claims(diagnosis["claims"]),
        store=store,
        origin=origin,
        stale=stale,
        # A file may say itself which questions calibrate; the step draws a half.
        is_random_half=saved is None and "seed" in options,
    )


CONFORMAL = Diagnostic(
    name="conformal",
    title="Conformal",
    question="Which answers should be withheld, and what can be promised of the others?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    reads=EARLIER,
    settings=(ALPHA, SCORE),
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
