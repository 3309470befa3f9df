"""What each fix makes correct and what it breaks, tested against the answers as they are and the placebo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.socket import HARMS, HELPS, OPEN
from core.stats import cases_needed, holm, known_pairs, paired_interval, paired_permutation_test

_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Fix:
    """One arm against the answers as they are.

    Of ``n`` questions with both answers judged, ``asked`` had a prompt that the arm changes; ``fixed`` became
    correct, ``broken`` stopped being correct. ``low`` to ``high`` is the 95 % interval of ``net`` = fixed −
    broken (Bonett & Price 2012). ``p_value``: exact test of McNemar (1947), two-sided; ``p_placebo``: that
    against the placebo, on the questions that both change; ``p_nested``: that against the arm that already
    does most of it (`core.losses.arms.Arm.beyond`). Both are 1 where the arm differs from them the other way
    than from the run, NaN where there is none. ``p``: the largest, so that a fix must beat them all;
    ``p_adjusted`` by Holm over all arms. ``needed``: about how many questions would tell it from what it is
    hardest to tell from, where these do not (`core.stats.cases_needed`). ``tokens``: prompt tokens of a call,
    as a ratio to those of the run; None where not counted.
    """

    arm: str
    n: int
    asked: int
    fixed: int
    broken: int
    low: float
    high: float
    p_value: float
    p_placebo: float
    p_nested: float
    p_adjusted: float
    needed: int | None
    tokens: float | None

    @property
    def net(self) -> int:
        """Answers that become correct, less those that stop being correct."""
        return self.fixed - self.broken

    @property
    def p(self) -> float:
        """The largest p-value: it must differ from the run, from the placebo and from what it goes beyond."""
        return _largest(self.p_value, self.p_placebo, self.p_nested)

    @property
    def verdict(self) -> str:
        """Whether it helps, harms, or cannot be told, by ``p_adjusted``."""
        if not self.p_adjusted <= _ALPHA:
            return OPEN
        return HELPS if self.net > 0 else HARMS


def mcnemar(before: ArrayLike, after: ArrayLike) -> float:
    """Return the two-sided p-value of McNemar's exact test (1947) of pairs of 0 and 1.

    NaN is left out; 1 where no pair differs, NaN without pairs. No cost.

    >>> mcnemar([0] * 6 + [1, 0], [1] * 6 + [1, 0])
    0.03125
    """
    return paired_permutation_test(before, after)


def fixes(
    base: Floats,
    arms: Mapping[str, Floats],
    changed: Mapping[str, np.ndarray],
    placebo: Floats | None = None,
    tokens: Mapping[str, float] | None = None,
    beyond: Mapping[str, str] | None = None,
) -> tuple[Fix, ...]:
    """Judge every arm; gains and harms by the same function, on the same questions.

    Parameters
    ----------
    base : ndarray, shape (n,)
        1 where the answer of the run is correct, 0 where it is not, NaN where that is not known.
    arms : mapping of ndarray, shape (n,)
        The same of each arm; a question whose prompt it does not change has the value of ``base``.
    changed : mapping of ndarray of bool, shape (n,)
        Where the arm asked another prompt.
    placebo : ndarray, optional
        The same of the placebo, NaN where it was not asked.
    tokens : mapping, optional
        Prompt tokens of each arm, as a ratio to those of the run.
    beyond : mapping, optional
        By arm, the one that already does most of it, and that it must differ from as well.
    """
    compared: list[list[Floats | None]] = []
    for name in arms:
        of_placebo = None if placebo is None else np.where(changed[name], placebo, np.nan)
        compared.append([base, of_placebo, arms.get((beyond or {}).get(name, ""))])
    tests = [_p_values(with_, after) for with_, after in zip(compared, arms.values(), strict=True)]
    adjusted = holm([_largest(*of_arm) for of_arm in tests])
    found = []
    for i, (name, after) in enumerate(arms.items()):
        first, second = known_pairs(base, after)
        n = first.size
        low, high = paired_interval(first, second, share=True)
        needed = None
        if not adjusted[i] <= _ALPHA:  # as many as would tell it from what it is hardest to tell from
            hardest = compared[i][int(np.nanargmax(tests[i]))] if n else base
            before, now = known_pairs(base if hardest is None else hardest, after)
            needed = cases_needed(now - before)
        found.append(
            Fix(
                name, n, int(np.count_nonzero(changed[name] & ~np.isnan(base + after))),
                int((second > first).sum()), int((second < first).sum()), low * n, high * n, *tests[i],
                float(adjusted[i]), needed, (tokens or {}).get(name),
            )
        )  # fmt: skip
    return tuple(found)


def _p_values(compared: Sequence[Floats | None], after: Floats) -> tuple[float, float, float]:
    """Return the p-value against each; 1 where the arm differs from it the other way than from the run."""
    ways, found = [], []
    for before in compared:
        first, second = known_pairs(after if before is None else before, after)
        ways.append(float(np.sign((second - first).sum())))
        found.append(np.nan if before is None else mcnemar(first, second))
    of_run, of_placebo, of_nested = (
        1.0 if way == -ways[0] and way else p for way, p in zip(ways, found, strict=True)
    )
    return of_run, of_placebo, of_nested


def _largest(p_value: float, *others: float) -> float:
    return max([p_value, *(p for p in others if not np.isnan(p))])
