"""The step that says what thresholds are calibrated on: some of the run's questions, or a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from core.calibration.in_use import provenance
from core.calibration.saved import SavedCalibration, read_store
from core.conformal.labelled import hash_of
from core.errors import InputError, check_ranges
from core.pipeline.asking import Asker
from core.pipeline.rows import Rows, questions_of
from core.pipeline.steps import Option, Step, StepWork
from core.run import Run
from core.text.matching import labelled


@dataclass(frozen=True)
class ConformalStep(Step):
    """Calibrate on half of the labelled questions, or on a store; the others test.

    With a ``store`` only questions of the run that are in it calibrate: its scores must be those of this
    run's model, prompt and retriever. InputError for a value outside its range and, on opening, for a store
    that is not there or fits another run.
    """

    name: ClassVar[str] = "conformal"
    title: ClassVar[str] = "Calibrate conformal thresholds"
    noun: ClassVar[str] = "question"
    n_labelled: ClassVar[int] = 20  # with fewer, the half that calibrates can promise nothing at α = 0.1
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"queries": ("calibrates",)}

    store: Annotated[
        str | None,
        Option(
            "--store",
            "Calibration store; else half of the labelled questions calibrates.",
            title="Calibration store (empty: half of the labelled questions)",
            names="stores",
        ),
    ] = None
    seed: Annotated[
        int, Option("--calibration-seed", "Seed of the half that calibrates.", title="Seed of the half")
    ] = 0

    def __post_init__(self) -> None:
        check_ranges(self, {"seed": (0, 2**31 - 1)})

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work."""
        return _Work(self, run)


class _Work(StepWork):
    batch = 1_000_000  # the choice is made once for all

    def __init__(self, step: ConformalStep, run: Run) -> None:
        self._saved: SavedCalibration | None = None
        hashes = frozenset[str]()
        if step.store is not None:
            self._saved, hashes = read_store(step.store)
            misfits = self._misfits(run)
            if misfits:
                raise InputError(
                    f"The calibration store {step.store} does not fit this run: {'; '.join(misfits)}. "
                    "Calibrate with the set-up of the run."
                )
        # A store that has grown calibrates anew.
        stored = None if self._saved is None else self._saved.to_json()
        self.settings: Mapping[str, Any] = {"seed": step.seed, "calibration": stored}
        queries = run.queries
        ids = np.sort(queries.loc[labelled(queries), "query_id"].to_numpy(dtype=object))
        chosen = np.random.default_rng(step.seed).permutation(ids)[: (len(ids) + 1) // 2]
        self._calibrating = frozenset(_stored(run, hashes) if stored else chosen)

    def _misfits(self, run: Run) -> tuple[str, ...]:
        """Say in which parts the run's own score, as far as it is there, is another one."""
        saved = self._saved
        assert saved is not None
        own = provenance(run.manifest, saved.score, saved.method)
        is_yet = saved.score.partition(".")[0] not in run.manifest.get("steps", {})
        return saved.provenance.differences(own, ("score",) if is_yet else ())

    def todo(self, run: Run) -> Sequence[str]:
        """Return the questions that have no side yet; none where nothing can calibrate."""
        if self._saved is None and not self._calibrating:
            return []
        return run.queries.loc[run.queries["calibrates"].isna(), "query_id"].to_list()

    def work(self, ids: Sequence[str]) -> Rows:
        """Return the side of each question."""
        return {"queries": [{"query_id": one, "calibrates": one in self._calibrating} for one in ids]}

    def facts(self, run: Run) -> Mapping[str, Any]:
        """Return how many questions calibrate and how many test."""
        calibrates = run.queries["calibrates"].fillna(False)
        n = int(calibrates.sum())
        nothing = self._saved is None and not self._calibrating
        notes = ["No answer has a label or a reference answer: nothing can be calibrated."] if nothing else []
        return {
            "n_calibration": n,
            "n_test": int((labelled(run.queries) & ~calibrates).sum()),
            "notes": notes,
        }


def _stored(run: Run, hashes: frozenset[str]) -> list[str]:
    """Return the questions of a run that a store holds with the same passages."""
    question = questions_of(run)
    return [query_id for query_id in run.queries["query_id"] if hash_of(question(query_id)) in hashes]
