"""The step that chooses the questions on which thresholds are calibrated; no model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from core.pipeline.asking import Asker
from core.pipeline.rows import Rows
from core.pipeline.steps import ModelChoice, Option, StepWork, check_ranges
from core.run import Run


@dataclass(frozen=True)
class ConformalStep:
    """Calibrate on half of the questions with reference answers; the other half tests.

    Attributes
    ----------
    seed : int
        Of the random choice; same questions and seed, same half.

    Raises
    ------
    InputError
        A value outside its range.
    """

    name: ClassVar[str] = "conformal"
    title: ClassVar[str] = "Calibrate on half of the labelled questions"
    noun: ClassVar[str] = "question"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"queries": ("calibrates",)}

    seed: Annotated[
        int, Option("--calibration-seed", "Seed of the half that calibrates.", title="Seed of the split")
    ] = 0

    def __post_init__(self) -> None:
        check_ranges(self, {"seed": (0, 2**31 - 1)})

    @property
    def needs_llm(self) -> bool:
        """No model is called."""
        return False

    def model(self, live: ModelChoice) -> ModelChoice | None:
        """Return None: no model is called."""
        return None

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work."""
        return _Work(self, run)


class _Work(StepWork):
    batch = 1_000_000  # the choice is made once for all

    def __init__(self, step: ConformalStep, run: Run) -> None:
        self.settings: Mapping[str, Any] = {"seed": step.seed}
        queries = run.queries
        labelled = np.sort(
            queries.loc[queries["reference_answers"].notna(), "query_id"].to_numpy(dtype=object)
        )
        chosen = np.random.default_rng(step.seed).permutation(labelled)[: (len(labelled) + 1) // 2]
        self._calibrating = frozenset(chosen)

    def todo(self, run: Run) -> Sequence[str]:
        """Return the questions that have no side yet."""
        return run.queries.loc[run.queries["calibrates"].isna(), "query_id"].to_list()

    def work(self, ids: Sequence[str]) -> Rows:
        """Return the side of each question."""
        return {"queries": [{"query_id": one, "calibrates": one in self._calibrating} for one in ids]}

    def facts(self, run: Run) -> Mapping[str, Any]:
        """Return how many questions calibrate and how many test."""
        calibrates = run.queries["calibrates"].fillna(False)
        labelled = run.queries["reference_answers"].notna()
        n = int(calibrates.sum())
        notes = [] if n else ["No question has a reference answer: nothing can be calibrated."]
        return {"n_calibration": n, "n_test": int((labelled & ~calibrates).sum()), "notes": notes}
