"""Everything that labelled answers teach: weights, a map, what both change, and the file to keep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.confidence.compare import Compared, compare_confidences
from core.confidence.labelled import COLUMNS, Labelled
from core.confidence.mapping import KINDS, ConfidenceMap, Mapped, calibrate_map
from core.confidence.saved import SavedCalibration, digest
from core.confidence.weighted import RANGES, WEIGHTS, Weighting, confidences
from core.confidence.weights import LearnedWeights, WeightCalibration, calibrate_weights, cross_validated
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.signals import signals_of


@dataclass(frozen=True)
class Learned:
    """What labelled answers teach.

    Attributes
    ----------
    weights : WeightCalibration
        The weights of each method beside the default, and whether to keep the default.
    proposed : LearnedWeights or None
        The method that is compared with the default: the best one, else the one of the highest AUROC; None
        where nothing could be learned.
    compared : tuple of Compared
        The default and `proposed` on answers that neither was learned from, before any map; empty without it.
    maps : mapping of str to Mapped
        ``platt`` and ``isotonic``, fitted to the confidence by the weights to be kept: of learned ones, the
        cross-validated confidence.
    saved : SavedCalibration
        The weights to be kept, and the map with the lowest cross-validated Brier score if that is lower than
        without a map.
    """

    weights: WeightCalibration
    proposed: LearnedWeights | None
    compared: tuple[Compared, ...]
    maps: Mapping[str, Mapped]
    saved: SavedCalibration


def learn(rows: Labelled, default: Weighting, n_resamples: int = 2_000, n_refits: int = 500) -> Learned:
    """Learn weights and a map from labelled answers.

    Parameters
    ----------
    rows : Labelled
        The order of its answers does not matter.
    default : Weighting
        The weights to be beaten; its ranges and its threshold are kept.
    n_resamples, n_refits : int
        As for `calibrate_weights`, which is nearly all of the cost.

    Returns
    -------
    Learned
        Without enough answers the default without a map, and the reason in ``weights``.
    """
    weights = calibrate_weights(rows, default, n_resamples, n_refits)
    start = confidences(rows.signals, default)
    proposed = weights.best or max(weights.learned, key=lambda one: one.auroc, default=None)
    compared: tuple[Compared, ...] = ()
    if proposed is not None:
        both = default.threshold, default.threshold
        compared = compare_confidences(start, proposed.confidences, rows.correct, both)
    # A map fitted to confidences that know their own labels would promise too much.
    kept = start if weights.best is None else weights.best.confidences
    maps = {kind: calibrate_map(kept, rows.correct, kind) for kind in KINDS if kind != "none"}
    chosen = weights.best.weights if weights.best is not None else default.weights
    weighting = Weighting(chosen, default.ranges, default.threshold)
    method = "" if weights.best is None else weights.best.method
    learned_from = frozenset(map(digest, rows.questions))
    saved = SavedCalibration(weighting, _best_map(maps), weights.n, weights.n_correct, method, learned_from)
    return Learned(weights, proposed, compared, MappingProxyType(maps), saved)


def cross_fitted(rows: Labelled, saved: SavedCalibration) -> Floats:
    """Return the confidence of each answer by weights and a map learned, as the saved ones, from others.

    Labels that a calibration was learned from make it look better than it is: on them an isotonic map has a
    calibration error of 0.

    Parameters
    ----------
    rows : Labelled
        The answers that it was learned from; their order does not matter.
    saved : SavedCalibration
        Its ranges, its method and the kind of its map are used.

    Returns
    -------
    ndarray, shape (n,)
        In [0, 1], as in `Learned.maps`; NaN with too few labels. Cost: at most ten fits.
    """
    way = saved.weighting
    start = Weighting(WEIGHTS, {**RANGES, **way.ranges})
    found = cross_validated(rows, start, saved.method) if saved.method else confidences(rows.signals, way)
    return found if saved.map.kind == "none" else calibrate_map(found, rows.correct, saved.map.kind).tested


def held_out(
    questions: pd.Series, signals: Mapping[str, Floats], correct: Floats, saved: SavedCalibration | None
) -> tuple[Floats | None, int | None]:
    """Return what answers whose label a calibration was learned from are to be judged by.

    Parameters
    ----------
    questions : Series of str, length n
        Of a run.
    signals : mapping of str to ndarray, each of shape (n,)
        In their own units.
    correct : ndarray, shape (n,)
        1, 0 or NaN.
    saved : SavedCalibration or None
        None: no calibration is in use.

    Returns
    -------
    confidence : ndarray, shape (n,), or None
        `cross_fitted`, infinite for all other answers; None where there is nothing to replace.
    n_used : int or None
        Labels of the run that it was learned from; None where the file does not say.
    """
    if saved is None or saved.learned_from is None:
        return None, 0 if saved is None else None
    own = {name: signals[name] for name in COLUMNS.values() if name in signals}
    weighed = [np.isfinite(own[name]) for name in saved.weighting.weights if name in own]
    known = questions.astype(str).map(digest).isin(saved.learned_from).to_numpy()
    used = np.all([known, ~np.isnan(correct), *weighed], axis=0)
    found = np.full(used.size, math.inf)
    if used.any():
        asked = tuple(questions[used].astype(str))
        rows = Labelled(
            asked, {name: one[used] for name, one in own.items()}, correct[used], len(asked), 0, 0
        )
        found[used] = cross_fitted(rows, saved)
    return found, int(used.sum())


def labelled_run(diagnosis: Diagnosis) -> Labelled:
    """Return the answers of a run that have every confidence signal and a label.

    Raises
    ------
    InputError
        The run has no confidence signals, or nothing says which of its answers are correct.
    """
    signals = signals_of(diagnosis)
    by_name = {one.name: one.values for one in signals}
    outcome = next((one.values for one in signals if one.is_outcome), None)
    if not all(column in by_name for column in COLUMNS):
        raise InputError(f"The run {diagnosis.run.name!r} has no confidence signals.")
    if outcome is None or np.isnan(outcome).all():
        raise InputError(
            f"The run {diagnosis.run.name!r} has no answer with a label or a reference answer; "
            "nothing can be learned."
        )
    values = {name: by_name[column] for column, name in COLUMNS.items()}
    has_label = ~np.isnan(outcome)
    whole = has_label & np.all([np.isfinite(one) for one in values.values()], axis=0)
    return Labelled(
        tuple(diagnosis.run.queries["question"][whole].astype(str)),
        {name: one[whole] for name, one in values.items()},
        outcome[whole],
        int(np.count_nonzero(whole)),
        int(np.count_nonzero(~has_label)),
        int(np.count_nonzero(has_label & ~whole)),
    )


def _best_map(maps: Mapping[str, Mapped]) -> ConfidenceMap:
    """Return the map with the lowest Brier score; none where that is not lower than without."""
    better = [one for one in maps.values() if one.after.brier < one.before.brier]
    best = min(better, key=lambda one: one.after.brier, default=None)
    return ConfidenceMap() if best is None else best.map
