"""A calibration as it is kept: how signals become one confidence, and the scores of labelled answers.

A store keeps it for all runs. A run keeps a copy, so that it says the same when the store has moved on.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.arrays import Floats
from core.calibration.mapping import NO_MAP, ConfidenceMap
from core.calibration.provenance import Provenance
from core.calibration.store import CalibrationStore, exists
from core.calibration.weighted import Weighting
from core.errors import InputError
from core.text.strict import read_json

_DIGITS = 10  # of the digest of a question: enough to recognise it, too few to be worth guessing at
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, OverflowError, InputError)


@dataclass(frozen=True)
class Method:
    """Weights and ranges of the signals that are calibrated, then a map to a probability.

    The questions of which ``learned_from`` has the `digest` must not calibrate or test.
    """

    weighting: Weighting
    map: ConfidenceMap = NO_MAP
    learned_from: frozenset[str] = frozenset()

    def used(self) -> Method:
        """Return it with the signals alone that have a weight."""
        way = self.weighting
        weights = {name: weight for name, weight in way.weights.items() if weight}
        ranges = {name: way.ranges[name] for name in weights}
        return replace(self, weighting=Weighting(weights, ranges, way.threshold))

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        way = self.weighting
        return {
            "weights": dict(way.weights),
            "ranges": {name: [*way.ranges[name]] for name in way.weights},
            "map": {**asdict(self.map), "x": [*self.map.x], "y": [*self.map.y]},
            "learned_from": " ".join(sorted(self.learned_from)),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Method:
        """Read `to_json`; an error of any kind for something else."""
        ranges = {name: (float(low), float(high)) for name, (low, high) in saved["ranges"].items()}
        weights = {str(name): float(weight) for name, weight in saved["weights"].items()}
        knots = {name: tuple(map(float, saved["map"][name])) for name in ("x", "y")}
        mapped = ConfidenceMap(**{**saved["map"], **knots})
        return cls(Weighting(weights, ranges), mapped, frozenset(str(saved["learned_from"]).split()))


def digest(question: str) -> str:
    """Return what identifies a question without giving it away."""
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


@dataclass(frozen=True, eq=False, slots=True)
class SavedCalibration:
    """The scores of a store, with labels (1, 0, NaN) and groups; without ``method``: a signal as it is."""

    store: str
    provenance: Provenance
    scores: Floats
    correct: Floats
    kinds: tuple[str | None, ...]
    n_excluded: int
    method: Method | None = None

    @property
    def score(self) -> str:
        """Name of the score: the key of a signal, or that of the weighted confidence."""
        return self.provenance.score.partition(" · ")[0]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "store": self.store,
            "provenance": asdict(self.provenance),
            "scores": self.scores.tolist(),
            "correct": [None if math.isnan(one) else int(one) for one in self.correct],
            "kinds": list(self.kinds),
            "n_excluded": self.n_excluded,
            "method": None if self.method is None else self.method.to_json(),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> SavedCalibration | None:
        """Read `to_json`; None for something else, which a run made elsewhere may hold."""
        try:
            scores = np.array(saved["scores"], dtype=np.float64)
            correct = np.array(saved["correct"], dtype=np.float64)  # None becomes NaN
            kinds = tuple(one if isinstance(one, str) else None for one in saved["kinds"])
            source = Provenance(**{name: str(value) for name, value in saved["provenance"].items()})
            method = None if saved.get("method") is None else Method.from_json(saved["method"])
            found = cls(str(saved["store"]), source, scores, correct, kinds, int(saved["n_excluded"]), method)
        except _UNREADABLE:
            return None
        labels = set(correct[~np.isnan(correct)].tolist())
        whole = scores.ndim == 1 and len(scores) == len(correct) == len(kinds) and labels <= {0.0, 1.0}
        return found if whole else None


def read_store(path: str) -> tuple[SavedCalibration, frozenset[str]]:
    """Return the scores of a store that are not excluded, and the `query_hash` of each.

    InputError where there is no such file or no score in it, StoreError where it cannot be read.
    """
    if not exists(path):
        raise InputError(f"There is no calibration store {path}; make one with python -m core calibrate.")
    with CalibrationStore(path) as store:
        provenance, rows, n, method = store.provenance, store.usable(texts=False), len(store), store.method
    if provenance is None or not len(rows):
        raise InputError(f"The calibration store {path} holds no score that is used.")
    try:
        found = None if method is None else Method.from_json(read_json(method))
    except _UNREADABLE as error:
        raise InputError(f"The weights in the calibration store {path} cannot be read.") from error
    kept = SavedCalibration(
        Path(path).name,
        provenance,
        rows["nonconformity_score"].to_numpy(dtype=np.float64),
        rows["correct"].to_numpy(dtype=np.float64, na_value=math.nan),
        tuple(one if isinstance(one, str) else None for one in rows["kind"]),
        n - len(rows),
        found,
    )
    return kept, frozenset(rows["query_hash"])
