"""The one confidence of a run: which signals it is made of, with which weights, and where these come from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.analyses import Analyses
from core.arrays import Floats
from core.calibration.provenance import Provenance, provenance_of
from core.calibration.saved import Method, SavedCalibration
from core.calibration.weighted import RANGES, THRESHOLD, WEIGHTS, Weighting, confidences, configured
from core.errors import InputError
from core.signals import OF_TABLE, Signal, confidence, label_free, signals_of
from core.socket import Setting
from core.text.display import shorten

# Columns of the run's signals that have a weight by default, by their names among weights, and for people.
COLUMNS: Mapping[str, str] = {"similarity": "similarity", "lexical": "lexical", "llm_score": "llm"}
TITLES = {"similarity": "Similarity", "lexical": "Lexical score", "llm": "Stated confidence"}
AUTO = "auto"
DEFAULT, SETTING, CALIBRATED = "default", "setting", "calibration"
# Without a choice, a confidence in the file or the three signals of the default: the agreement of the answer
# with its own samples, else how weakly its claims are supported, else the first signal there is.
PREFERRED = ("uncertainty.agreement_rouge_l", "claims.mean_uncertainty")
WEIGHTED = "confidence.confidence"  # the key of several signals in one
_READER = "conformal"  # what it may read, the confidence may be made of
_STEP = "confidence"  # measures the signals of `COLUMNS`
WITHOUT_ANSWER = ("abstained", "empty", "error")
_DECIMALS = 9

WEIGHTS_SETTING = Setting(
    "weights",
    "Signals of the confidence",
    AUTO,
    "What the confidence is made of: one signal, as <diagnostic>.<column>, or several with their weights, as "
    "similarity=0.45,lexical=0.35,llm=0.2. auto: that of the run's calibration; else the confidence in the "
    "run's file; else these three where the run has them; else the agreement of the answer with its samples, "
    "or the first signal there is.",
)


THRESHOLD_SETTING = Setting(
    "confidence_threshold",
    "Confidence threshold",
    THRESHOLD,
    "An answer passes from this confidence on. At the default, the environment variable "
    "RAG_CONFIDENCE_THRESHOLD counts where it is set.",
)


@dataclass(frozen=True, eq=False)
class InUse:
    """The confidence in use.

    ``signals`` are all that have or could have a weight, each (n_questions,) in its own unit, NaN where
    missing; ``method`` declares a range for each of them, ``titles`` are their names for people. ``origin``
    of the weights is `DEFAULT`, `SETTING` or `CALIBRATED`; ``reason`` says why there is no confidence at all.
    ``score`` is the confidence as one signal: the chosen one of ``choices`` as it is (those of `COLUMNS` have
    another name among weights), or the weighted sum after the map. ``correct`` is 1, 0 or NaN. ``stale`` says
    why ``saved``, what the run keeps of a calibration store, no longer fits.
    """

    method: Method
    origin: str
    reason: str
    signals: Mapping[str, Floats]
    titles: Mapping[str, str]
    choices: tuple[Signal, ...]
    correct: Floats
    score: Signal | None
    saved: SavedCalibration | None
    stale: tuple[str, ...]


def in_use(diagnosis: Analyses, method: Method | None = None) -> InUse:
    """Return the confidence of a run by ``method`` or its settings, and the labels; no LLM calls."""
    run = diagnosis.run
    every = signals_of(
        diagnosis, [diagnosis.diagnostic(name) for name in diagnosis.read_by(_READER)], secondary=True
    )
    # More confidence without a limit has no place in [0, 1].
    choices = tuple(one for one in label_free(every) if one.bounds is not None or one.way < 0)
    names = {one.key: COLUMNS.get(one.name, one.key) for one in choices}
    nothing = np.full(len(run.queries), math.nan)
    signals = dict.fromkeys(COLUMNS.values(), nothing)
    signals |= {names[one.key]: one.values if one.name in COLUMNS else confidence(one) for one in choices}
    titles = {**TITLES, **{one.key: one.title for one in choices if one.name not in COLUMNS}}
    saved, stale = _kept(diagnosis)
    origin, reason, found = DEFAULT, "", method
    try:
        if found is not None:
            origin = CALIBRATED
        elif str(diagnosis.settings[WEIGHTS_SETTING.name]).strip() != AUTO:
            origin, given = SETTING, read_weights(str(diagnosis.settings[WEIGHTS_SETTING.name]))
            ranges = None if saved is None or saved.method is None else saved.method.weighting.ranges
            found = _method({names.get(name, name): weight for name, weight in given.items()}, ranges)
        elif saved is not None:
            origin, found = CALIBRATED, saved.method or _method({names.get(saved.score, saved.score): 1.0})
    except InputError as error:
        reason = str(error)
    if found is None:
        found = _method(_automatic(choices, names))
    used = {name: weight for name, weight in found.weighting.weights.items() if weight}
    unknown = [name for name in used if name not in signals]
    if unknown and not reason:
        reason = f"The run has no signal {shorten(', '.join(unknown))}; it has {', '.join(signals)}."
    signals |= {name: nothing for name in found.weighting.weights if name not in signals}
    titles |= {name: name for name in signals if name not in titles}
    every_range = {**dict.fromkeys(signals, (0.0, 1.0)), **RANGES, **found.weighting.ranges}
    found = Method(Weighting(found.weighting.weights, every_range), found.map, found.learned_from)
    score = None if reason else _score(found, choices, names, signals, run.queries["answer_status"])
    if saved is not None:
        here = run.manifest
        if score is not None and score.key != saved.score:
            stale = (*stale, f"calibrated with the score {saved.score}, chosen is {score.key}")
        else:
            stale = (*stale, *saved.provenance.differences(provenance(here, saved.score, found)))
    outcome = next((one.values for one in every if one.is_outcome), nothing)
    return InUse(found, origin, reason, signals, titles, choices, outcome, score, saved, stale)


def kept_method(used: InUse) -> str | None:
    """Return what a store keeps of a confidence that is no signal as it is; None for one that is."""
    weighted = used.score is not None and used.score.key == WEIGHTED
    return json.dumps(used.method.used().to_json()) if weighted else None


def threshold_in_use(settings: Mapping[str, object]) -> float:
    """Return the threshold of the setting, else that of `configured`; InputError where that is unusable."""
    given = float(str(settings[THRESHOLD_SETTING.name]))
    return configured(threshold=None if given == THRESHOLD else given).threshold


def provenance(manifest: Mapping[str, object], score: str, method: Method | None) -> Provenance:
    """Return what identifies the scores of a run: of a signal, or of the weighted confidence."""
    if score != WEIGHTED or method is None:
        return provenance_of(manifest, score, score.partition(".")[0])
    record = method.used().to_json()
    steps = [(name, name.partition(".")[0] if "." in name else _STEP) for name in record["weights"]]
    signals = [provenance_of(manifest, name, step).score for name, step in steps]
    return provenance_of(manifest, score, method={**record, "learned_from": None, "signals": signals})


def read_weights(text: str) -> dict[str, float]:
    """Return ``name=number,…``, or one signal's name, as shares of their sum; else InputError."""
    found: dict[str, float] = {}
    for one in text.split(",") if "=" in text or "," in text else [f"{text}=1"]:
        name, _, value = (part.strip() for part in one.partition("="))
        try:
            weight = float(value)
        except ValueError:
            weight = math.nan
        if not name or name in found or not (math.isfinite(weight) and weight >= 0):
            raise InputError(
                f"Weights must read name=number,name=number, numbers of at least 0; got {shorten(text)!r}."
            )
        found[name] = weight
    # Nothing can be learned of a signal without a weight, which may have no value either.
    return {name: share for name, share in shares_of(found).items() if share}


def write_weights(weights: Mapping[str, float]) -> str:
    """Return weights as `read_weights` reads them."""
    return ",".join(f"{name}={weight:.4g}" for name, weight in weights.items())


def shares_of(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights as shares of their sum; InputError where that is not a number above 0."""
    total = sum(weights.values())
    if not (math.isfinite(total) and total > 0 and min(weights.values()) >= 0):
        raise InputError("Weights must be numbers of at least 0, and one of them above 0.")
    return {name: weight / total for name, weight in weights.items()}


def _method(weights: Mapping[str, float], ranges: Mapping[str, tuple[float, float]] | None = None) -> Method:
    return Method(Weighting(weights, {**dict.fromkeys(weights, (0.0, 1.0)), **RANGES, **(ranges or {})}))


def _automatic(choices: tuple[Signal, ...], names: Mapping[str, str]) -> Mapping[str, float]:
    """Return the weights without a choice. It must not look at labels: the best on them breaks a promise."""
    there = [*names.values()]
    own = [one.key for one in choices if one.owner == OF_TABLE and one.name not in COLUMNS]
    if not own and all(name in there for name in WEIGHTS):
        return WEIGHTS
    first = next((key for key in (*own, *PREFERRED, *there) if key in there), None)
    return WEIGHTS if first is None else {first: 1.0}


def _score(
    method: Method,
    choices: tuple[Signal, ...],
    names: Mapping[str, str],
    signals: Mapping[str, Floats],
    status: object,
) -> Signal | None:
    """Return the confidence as one signal; None where no answer has one."""
    used = [name for name, weight in method.weighting.weights.items() if weight]
    plain = method.map.kind == "none" and all(
        method.weighting.ranges[name] == RANGES.get(name, (0.0, 1.0)) for name in used
    )
    if len(used) == 1 and plain:
        return next((one for one in choices if names[one.key] == used[0]), None)
    values = method.map(confidences(signals, method.weighting)).round(_DECIMALS)
    values[np.isin(np.asarray(status, dtype=object), WITHOUT_ANSWER)] = math.nan
    if np.isnan(values).all():
        return None
    source, _, name = WEIGHTED.partition(".")
    return Signal(
        source, name, "Confidence", "Confidence", "{:.2f}", "more confident", values, bounds=(0.0, 1.0)
    )


def _kept(diagnosis: Analyses) -> tuple[SavedCalibration | None, tuple[str, ...]]:
    """Return the calibration that the run keeps, and why it cannot be used."""
    options = diagnosis.run.manifest.get("steps", {}).get(_READER, {}).get("options", {})
    kept = options.get("calibration")
    if kept is None:
        return None, ()
    found = SavedCalibration.from_json(kept)
    return found, () if found is not None else ("what the run keeps of it cannot be read",)
