"""The diagnostic *confidence*: how sure one may be of each answer, and whether that is true."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.confidence.analysis import (
    CALIBRATED,
    DEFAULT,
    GIVEN,
    SETTING,
    ConfidenceAnalysis,
    analyse_confidence,
    shares_of,
)
from core.confidence.definitions import DEFINITIONS, METRICS
from core.confidence.findings import findings
from core.confidence.labelled import COLUMNS
from core.confidence.learning import held_out
from core.confidence.mapping import ConfidenceMap
from core.confidence.numbers import numbers
from core.confidence.saved import SavedCalibration, from_json
from core.confidence.step import ConfidenceStep
from core.confidence.weighted import RANGES, THRESHOLD, Weighting, configured
from core.diagnosis import EARLIER, Diagnosis, Diagnostic, Export, Need, QuestionColumn, Setting
from core.errors import InputError
from core.run import Run
from core.signals import confidence, label_free, names_of_file, signals_of
from core.spreadsheet import csv_bytes
from core.text.display import shorten

AUTO = "auto"
THRESHOLD_SETTING = Setting(
    "confidence_threshold",
    "Confidence threshold",
    THRESHOLD,
    "An answer passes from this confidence on. At the default, that of the run's calibration counts, or of the "
    "environment variable RAG_CONFIDENCE_THRESHOLD.",
)
WEIGHTS_SETTING = Setting(
    "weights",
    "Weights of the signals",
    AUTO,
    "Weights of the confidence, as similarity=0.45,lexical=0.35,llm=0.2; also of other signals, as "
    "<diagnostic>.<column>=0.3. auto: those of the run's calibration, else the confidence in its file, else the default.",
)


def confidence_csv(diagnosis: Diagnosis) -> bytes:
    """Return one row per question: confidence, band, combined uncertainty, and each signal in [0, 1]."""
    found = diagnosis["confidence"]
    weighted = [name for name in found.signals if name in found.weighting.weights]
    parts = {f"signal.{name}": found.signals[name] for name in weighted}
    return csv_bytes(found.queries.assign(**parts), diagnosis.run.data_source)


def reliability_csv(diagnosis: Diagnosis) -> bytes:
    """Return one row per bin of the reliability diagram."""
    columns = ["number", "low", "high", "n", "confidence", "accuracy", "accuracy_low", "accuracy_high"]
    return csv_bytes(pd.DataFrame(diagnosis["confidence"].bins, columns=columns), diagnosis.run.data_source)


def read_weights(text: str) -> dict[str, float]:
    """Return weights written as ``name=number,…`` as shares of their sum; InputError for anything else."""
    found: dict[str, float] = {}
    for one in text.split(","):
        name, _, value = (part.strip() for part in one.partition("="))
        try:
            weight = float(value)
        except ValueError:
            weight = math.nan
        if not name or name in found or not (math.isfinite(weight) and weight >= 0):
            raise InputError(
                f"Weights must read name=number,name=number with numbers of at least 0, got {shorten(text)!r}."
            )
        found[name] = weight
    return shares_of(found)


def write_weights(weights: Mapping[str, float]) -> str:
    """Return weights as `read_weights` reads them."""
    return ",".join(f"{name}={weight:.4g}" for name, weight in weights.items())


def _saved(run: Run) -> SavedCalibration | None:
    """Return the calibration that the run keeps; InputError where it cannot be read."""
    options = run.manifest.get("steps", {}).get("confidence", {}).get("options", {})
    content = options.get("calibration")
    return None if content is None else from_json(str(content).encode())


def _weighting(
    settings: Mapping[str, Any], saved: SavedCalibration | None, names: Iterable[str], given: str | None
) -> tuple[Weighting, ConfidenceMap, str]:
    """Return the weighting and the map of some settings, and where they come from.

    ``given`` is the confidence that the run's file gives: without weights, it is the confidence.
    """
    text, threshold = str(settings["weights"]), float(settings["confidence_threshold"])
    least = None if threshold == THRESHOLD else threshold
    kept = None if saved is None else saved.weighting
    weights, mapped, origin = None, ConfidenceMap(), DEFAULT
    if text.strip() != AUTO:
        weights, origin = read_weights(text), SETTING
    elif saved is not None and kept is not None:
        weights, mapped, origin = dict(kept.weights), saved.map, CALIBRATED
    elif given is not None:
        weights, origin = {given: 1.0}, GIVEN
    if least is None and kept is not None:
        least = kept.threshold
    unit = dict.fromkeys((*names, *(weights or ())), (0.0, 1.0))
    ranges = {**unit, **RANGES, **({} if kept is None else kept.ranges)}
    return configured(weights, ranges, least), mapped, origin


def _analyse(diagnosis: Diagnosis) -> ConfidenceAnalysis:
    run = diagnosis.run
    earlier = [diagnosis.diagnostic(name) for name in diagnosis.read_by("confidence")]
    every = signals_of(diagnosis, earlier, secondary=True)
    nothing = np.full(len(run.queries), math.nan)
    own = {COLUMNS[one.name]: one.values for one in every if one.name in COLUMNS}
    # More confidence without a limit has no place in [0, 1].
    choices = tuple(
        one
        for one in label_free(every)
        if one.name not in COLUMNS and (one.bounds is not None or one.way < 0)
    )
    signals: dict[str, Floats] = {name: own.get(name, nothing) for name in COLUMNS.values()}
    signals |= {one.key: confidence(one) for one in choices}
    titles = {name: METRICS[column].title for column, name in COLUMNS.items()}
    titles |= {one.key: one.title for one in choices}
    reason, saved = "", None
    try:
        saved = _saved(run)
        in_file = names_of_file(diagnosis)
        given = next((one.key for one in choices if one.name in in_file), None)
        weighting, mapped, origin = _weighting(diagnosis.settings, saved, signals, given)
    except InputError as error:
        weighting, mapped, origin, reason = Weighting(), ConfidenceMap(), DEFAULT, str(error)
    unknown = [name for name, weight in weighting.weights.items() if weight and name not in signals]
    if unknown:
        reason = f"The run has no signal {shorten(', '.join(unknown))}; it has {', '.join(signals)}."
    signals |= {name: nothing for name in weighting.weights if name not in signals}
    ranges = {name: weighting.ranges.get(name, (0.0, 1.0)) for name in signals}
    outcome = next((one for one in every if one.is_outcome), None)
    correct = nothing if outcome is None else outcome.values
    kept = saved if origin == CALIBRATED else None
    cross_fitted, n_cross_fitted = held_out(run.queries["question"], signals, correct, kept)
    conformal, samples = diagnosis["conformal"].queries, diagnosis["uncertainty"].queries
    verdict = conformal["verdict"].map({"In line": True, "Flagged": False}).astype("boolean")
    return analyse_confidence(
        run,
        signals,
        {name: titles.get(name, name) for name in signals},
        correct,
        Weighting(weighting.weights, ranges, weighting.threshold),
        mapped,
        _unit(samples["agreement"]),
        _unit(conformal["confidence"]),
        verdict,
        mc_confidence=1 - _unit(samples["embedding_variance"]),
        cross_fitted=cross_fitted,
        n_cross_fitted=n_cross_fitted,
        choices=choices,
        origin=origin,
        reason=reason,
    )


def _unit(values: pd.Series) -> Floats:
    return np.clip(values.to_numpy(dtype=np.float64, na_value=math.nan), 0.0, 1.0)


CONFIDENCE = Diagnostic(
    name="confidence",
    title="Confidence",
    question="How sure may one be of each answer, and is that true?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    reads=EARLIER,
    settings=(THRESHOLD_SETTING, WEIGHTS_SETTING),
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
