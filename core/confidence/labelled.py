"""Labelled answers of a run with the signals of the confidence: what weights and maps are fitted on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.analyses import Analyses
from core.arrays import Floats
from core.calibration.in_use import in_use
from core.calibration.saved import digest
from core.errors import InputError


@dataclass(frozen=True, eq=False)
class Labelled:
    """Answers with a label (1, 0) and every signal that has a weight, in its own unit and finite.

    The same question may come several times. Left out are answers without a label, and with a label but
    without all signals.
    """

    questions: tuple[str, ...]
    signals: Mapping[str, Floats]
    correct: Floats
    n_unlabelled: int = 0
    n_without_signal: int = 0

    @property
    def n(self) -> int:
        """Labelled answers."""
        return self.correct.size

    def left_out(self, before: str) -> str:
        """Say behind ``before`` how many answers were left out and why; "" where none was."""
        left = {"without a label": self.n_unlabelled, "without all signals": self.n_without_signal}
        said = ", ".join(f"{n:,} {why}" for why, n in left.items() if n)
        return f"{before}{said} left out" if said else ""


def teaches(question: str) -> bool:
    """Tell whether a question is of the half that teaches weights and a map; the other calibrates."""
    return int(digest(question)[-1], 16) % 2 == 0


def labelled_run(diagnosis: Analyses, teaching: bool = False) -> Labelled:
    """Return the answers of a run that have a label and every signal of the confidence in use; no LLM calls.

    ``teaching``: only those to the half of the questions that teaches (`teaches`). InputError where nothing
    says which answers are correct.
    """
    used, run = in_use(diagnosis), diagnosis.run
    has_label = ~np.isnan(used.correct)
    if not has_label.any():
        raise InputError(f"The run {run.name!r} has no labelled answer; nothing can be learned.")
    names = [name for name, weight in used.method.weighting.weights.items() if weight]
    whole = has_label & np.all([np.isfinite(used.signals[name]) for name in names], axis=0)
    questions = run.queries["question"].astype(str)
    kept = whole & questions.map(teaches).to_numpy(dtype=np.bool_) if teaching else whole
    return Labelled(
        tuple(questions[kept]),
        {name: used.signals[name][kept] for name in names},
        used.correct[kept],
        int(np.count_nonzero(~has_label)),
        int(np.count_nonzero(has_label & ~whole)),
    )
