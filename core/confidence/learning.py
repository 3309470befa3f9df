"""Everything that labelled answers teach: weights, a map, and what both change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from core.arrays import Floats
from core.calibration.mapping import KINDS, ConfidenceMap, Mapped, calibrate_map
from core.calibration.saved import Method, digest
from core.calibration.weighted import Weighting, confidences, half_up
from core.confidence.labelled import Labelled
from core.confidence.weights import LearnedWeights, WeightCalibration, calibrate_weights
from core.stats import auroc, auroc_difference, holm, paired_interval, paired_permutation_test


class Compared(NamedTuple):
    """One measure of two confidences; the difference is ``b`` − ``a``, with its 95 % interval.

    ``accuracy`` is the share of answers that pass and are correct, or do not pass and are wrong. ``p_value``:
    randomisation within pairs for accuracy and Brier score, DeLong's test for AUROC; ``p_adjusted`` is
    Holm's, over the three.
    """

    measure: str
    n: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    p_adjusted: float


@dataclass(frozen=True)
class Learned:
    """What labelled answers teach: ``method``, the weights to be kept and the map, and what led there.

    ``proposed`` is the method compared with the default: the best one, else that of the highest AUROC; None
    where nothing could be learned. ``compared`` is of both on answers that neither was learned from, before
    any map. ``maps`` are fitted to the confidence by the weights to be kept, of learned ones the
    cross-validated one; one with a lower cross-validated Brier score than without a map is kept.
    """

    weights: WeightCalibration
    proposed: LearnedWeights | None
    compared: tuple[Compared, ...]
    maps: Mapping[str, Mapped]
    method: Method


def learn(rows: Labelled, default: Weighting, n_resamples: int = 2_000, n_refits: int = 500) -> Learned:
    """Learn weights and a map from labelled answers; nearly all of the cost is that of `calibrate_weights`.

    ``default`` has the weights to be beaten; its ranges and threshold are kept. Without enough answers it
    stays, without a map, and the reason is in ``weights``.
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


def compare_confidences(
    a: Floats, b: Floats, correct: Floats, thresholds: tuple[float, float]
) -> tuple[Compared, ...]:
    """Compare two confidences in [0, 1] of the same answers, each with its own threshold.

    Neither may be learned from these answers, or the comparison favours it. Accuracy at the threshold (higher
    is better), Brier score (lower) and AUROC (higher); undefined without answers, AUROC also where all or
    none are correct.
    """
    right = correct == 1
    hit_a, hit_b = (half_up(a) >= thresholds[0]) == right, (half_up(b) >= thresholds[1]) == right
    tests = [
        _paired("accuracy", hit_a.astype(float), hit_b.astype(float), share=True),
        _paired("brier", (a - correct) ** 2, (b - correct) ** 2, share=False),
    ]
    scores = np.round(a, 9), np.round(b, 9)
    difference, low, high, p = auroc_difference(correct, scores[1], scores[0])
    ranked = auroc(correct, scores[0]), auroc(correct, scores[1])
    tests.append(Compared("auroc", correct.size, *ranked, difference, low, high, p, math.nan))
    adjusted = holm([one.p_value for one in tests]).tolist()
    return tuple(one._replace(p_adjusted=p) for one, p in zip(tests, adjusted, strict=True))


def _paired(measure: str, a: Floats, b: Floats, share: bool) -> Compared:
    means = (float(a.mean()), float(b.mean())) if a.size else (math.nan, math.nan)
    interval = paired_interval(a, b, share=share)
    p = paired_permutation_test(a, b)
    return Compared(measure, a.size, *means, means[1] - means[0], *interval, p, math.nan)
