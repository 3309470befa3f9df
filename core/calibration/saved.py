"""The calibration of a store as a run keeps it: the run says the same when the store has moved on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.arrays import Floats
from core.calibration.provenance import Provenance, provenance_of
from core.calibration.store import CalibrationStore
from core.errors import InputError


@dataclass(frozen=True, eq=False, slots=True)
class Snapshot:
    """Scores of a calibration store, with whether each answer is correct (1, 0, NaN) and its group.

    ``store`` is the name of the file; ``n_excluded`` rows of it calibrate nothing.
    """

    store: str
    provenance: Provenance
    scores: Floats
    correct: Floats
    kinds: tuple[str | None, ...]
    n_excluded: int

    @property
    def score(self) -> str:
        """Name of the score: ``<diagnostic>.<column>``."""
        return self.provenance.score.partition(" · ")[0]

    @property
    def source(self) -> str:
        """The diagnostic of the score, and its step."""
        return self.score.partition(".")[0]

    def misfits(self, manifest: Mapping[str, Any]) -> tuple[str, ...]:
        """Say in which parts a run's own score is another than the calibrated one; empty where it fits."""
        return self.provenance.differences(provenance_of(manifest, self.score, self.source))

    def misfits_so_far(self, manifest: Mapping[str, Any]) -> tuple[str, ...]:
        """Say the same of a run whose score may be yet to be computed: then of the other parts."""
        ignore = () if self.source in manifest.get("steps", {}) else ("score",)
        return self.provenance.differences(provenance_of(manifest, self.score, self.source), ignore)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "store": self.store,
            "provenance": asdict(self.provenance),
            "scores": self.scores.tolist(),
            "correct": [None if math.isnan(one) else int(one) for one in self.correct],
            "kinds": list(self.kinds),
            "n_excluded": self.n_excluded,
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Snapshot | None:
        """Read `to_json`; None for something else, which a run made elsewhere may hold."""
        try:
            scores = np.array(saved["scores"], dtype=np.float64)
            correct = np.array(
                [math.nan if one is None else one for one in saved["correct"]], dtype=np.float64
            )
            kinds = tuple(one if isinstance(one, str) else None for one in saved["kinds"])
            source = Provenance(**{name: str(value) for name, value in saved["provenance"].items()})
            found = cls(str(saved["store"]), source, scores, correct, kinds, int(saved["n_excluded"]))
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        labels = set(correct[~np.isnan(correct)].tolist())
        whole = scores.ndim == 1 and len(scores) == len(correct) == len(kinds) and labels <= {0.0, 1.0}
        return found if whole else None


def snapshot(path: str) -> tuple[Snapshot, frozenset[str]]:
    """Read the scores of a calibration store.

    Returns
    -------
    Snapshot
        Its rows that are not excluded.
    frozenset of str
        The `core.calibration.store.query_hash` of each.

    Raises
    ------
    InputError
        There is no such file, or no score in it.
    StoreError
        The store cannot be read.
    """
    if not Path(path).is_file():
        raise InputError(f"There is no calibration store {path}; make one with python -m core calibrate.")
    with CalibrationStore(path) as store:
        provenance, rows, n = store.provenance, store.usable(), len(store)
    if provenance is None or not len(rows):
        raise InputError(f"The calibration store {path} holds no score that is used.")
    kept = Snapshot(
        Path(path).name,
        provenance,
        rows["nonconformity_score"].to_numpy(dtype=np.float64),
        rows["correct"].to_numpy(dtype=np.float64, na_value=math.nan),
        tuple(one if isinstance(one, str) else None for one in rows["kind"]),
        n - len(rows),
    )
    return kept, frozenset(rows["query_hash"])
