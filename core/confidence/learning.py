"""Everything that labelled answers teach: weights, a map, and what both change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.calibration.mapping import KINDS, ConfidenceMap, Mapped, calibrate_map
from core.calibration.saved import Method, digest
from core.calibration.weighted import Weighting, confidences
from core.confidence.compare import Compared, compare_confidences
from core.confidence.labelled import Labelled
from core.confidence.weights import LearnedWeights, WeightCalibration, calibrate_weights


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
    method : Method
        The weights to be kept, and the map with the lowest cross-validated Brier score if that is lower than
        without a map.
    """

    weights: WeightCalibration
    proposed: LearnedWeights | None
    compared: tuple[Compared, ...]
    maps: Mapping[str, Mapped]
    method: Method


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
    learned_from = frozenset(map(digest, rows.questions))
    return Learned(
        weights, proposed, compared, MappingProxyType(maps), Method(weighting, _best_map(maps), learned_from)
    )


def _best_map(maps: Mapping[str, Mapped]) -> ConfidenceMap:
    """Return the map with the lowest Brier score; none where that is not lower than without."""
    better = [one for one in maps.values() if one.after.brier < one.before.brier]
    best = min(better, key=lambda one: one.after.brier, default=None)
    return ConfidenceMap() if best is None else best.map
