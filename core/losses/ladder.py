"""The ladder: the one stage at which every incorrect answer is lost, and what correct answers rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.losses.arms import ADDED, FIRST, GOLD_ALONE, SENTENCES
from core.stats import wilson_interval

DOUBTFUL, ABSENT, RETRIEVAL, PLACE, DISTRACTED, BURIED, READING, UNKNOWN = LOST = (
    "judged wrong?", "not in the documents", "not retrieved", "placed too late", "distracted",
    "buried in its passage", "not read", "not known",
)  # fmt: skip
GROUNDED, WITHOUT, LUCK, UNSPLIT = KEPT = (
    "grounded", "without the passages too", "by luck", "correct, not split",
)  # fmt: skip
STAGES = (*LOST, *KEPT)
# The first of these arms that makes an incorrect answer correct is where it was lost.
PIPELINE: Mapping[str, str] = {ADDED: RETRIEVAL, FIRST: PLACE, GOLD_ALONE: DISTRACTED, SENTENCES: BURIED}
CHANGED, UNCHANGED, NONE = "changed", "unchanged", "none"  # what an arm did to the prompt


def stages(
    base: Floats,
    arms: Mapping[str, Floats],
    prompts: Mapping[str, np.ndarray],
    doubtful: np.ndarray,
    absent: np.ndarray,
    closed_book: Floats,
    placebo: Floats,
) -> np.ndarray:
    """Assign every judged answer to one stage.

    Parameters
    ----------
    base : ndarray, shape (n,)
        1 where the answer is correct, 0 where it is not (also abstained or empty), NaN where not known.
    arms, prompts : mappings of ndarray, shape (n,)
        By arm of `PIPELINE`: whether the answer was then correct, as in ``base``; and what the arm did to the
        prompt: "changed", "unchanged" (there was nothing to fix), "none" (it could not be made), or "".
    doubtful, absent : ndarray of bool, shape (n,)
        Answers that seem to be judged wrongly; questions with no gold passage in the documents.
    closed_book, placebo : ndarray, shape (n,)
        Whether the answer without passages, and that to the placebo, is correct, as in ``base``.

    Returns
    -------
    ndarray of str, shape (n,)
        One of `STAGES`; "" where ``base`` is NaN.

    >>> one = lambda value: np.array([value])
    >>> stages(one(0.0), {"gold_added": one(1.0)}, {"gold_added": one("changed")}, one(False), one(False),
    ...        one(np.nan), one(np.nan)).tolist()
    ['not retrieved']
    """
    n = len(base)
    found = np.full(n, "", dtype=object)
    open_ = base == 0
    for stage, mask in ((DOUBTFUL, doubtful), (ABSENT, absent)):
        found[open_ & mask] = stage
        open_ &= ~mask
    for arm, stage in PIPELINE.items():
        outcome = np.where(prompts[arm] == UNCHANGED, 0.0, arms[arm]) if arm in arms else np.full(n, np.nan)
        found[open_ & (outcome == 1)] = stage
        found[open_ & np.isnan(outcome)] = UNKNOWN
        open_ &= outcome == 0
    found[open_] = READING
    right = base == 1
    found[right] = GROUNDED
    found[right & np.isnan(placebo)] = UNSPLIT
    found[right & (placebo == 0)] = LUCK
    found[right & (closed_book == 1)] = WITHOUT
    return found


@dataclass(frozen=True, slots=True)
class Step:
    """One bar of the ladder.

    ``n`` of ``of`` judged questions, with the 95 % interval of that count; ``expected`` is how many of them a
    change of the prompt that fixes nothing would assign here, None where it assigns none.
    """

    stage: str
    n: int
    of: int
    low: float
    high: float
    expected: float | None

    @property
    def net(self) -> float:
        """The count beyond what any change of the prompt does, at least 0."""
        return max(0.0, self.n - (self.expected or 0.0))


def ladder(
    stage: np.ndarray, base: Floats, prompts: Mapping[str, np.ndarray], placebo: Floats
) -> tuple[Step, ...]:
    """Count the stages; see `stages` for the arguments. All judged questions are in exactly one."""
    of = int(np.count_nonzero(~np.isnan(base)))
    known = (base == 0) & ~np.isnan(placebo)
    rate = float(placebo[known].mean()) if known.any() else None
    found = []
    reached = np.isin(stage.astype(str), [*PIPELINE.values(), READING])
    for name in STAGES:
        n = int(np.count_nonzero(stage == name))
        expected = None
        arm = next((arm for arm, into in PIPELINE.items() if into == name), None)
        if arm is not None and arm in prompts and rate is not None:
            expected = rate * int(np.count_nonzero(reached & (prompts[arm] == CHANGED)))
            reached = reached & (stage != name)
        low, high = wilson_interval(n / of, of) if of else (np.nan, np.nan)
        found.append(Step(name, n, of, low * of, high * of, expected))
    return tuple(found)


def to_frame(steps: tuple[Step, ...]) -> pd.DataFrame:
    """Return one row per stage: ``stage, n, of, low, high, expected, net``."""
    names = ("stage", "n", "of", "low", "high", "expected", "net")
    return pd.DataFrame([[getattr(one, name) for name in names] for one in steps], columns=[*names])
