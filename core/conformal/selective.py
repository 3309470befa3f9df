"""From which confidence on to answer, so that few of the answers given are wrong."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import bdtr, bdtrc, betainc

from core.conformal.arguments import column, labels, rate, same_length
from core.errors import InputError
from core.text.display import count

GRID = tuple(step / 20 for step in range(19, -1, -1))
STARTS = 5
_CLEAR = 0.05
MANY = 1_000_000  # labels: more than anyone collects


class Tested(NamedTuple):
    """One threshold of the grid.

    Attributes
    ----------
    threshold : float
        Answer from this confidence on.
    n_answered, n_wrong : int
        Labelled answers with at least this confidence; wrong ones among them.
    risk : float
        Their share of wrong answers; NaN where none is answered.
    p_value : float
        P(Binomial(n_answered, α) ≤ n_wrong): how likely so few are wrong if the true risk is α. 1 where none
        is answered.
    level : float
        Certified where the p-value is at most this; never where it is 0.
    certified : bool
        Whether it is.
    """

    threshold: float
    n_answered: int
    n_wrong: int
    risk: float
    p_value: float
    level: float
    certified: bool


@dataclass(frozen=True)
class Certificate:
    """The lowest certified threshold, and what led there.

    Attributes
    ----------
    threshold : float or None
        Answer from this confidence on; None where nothing can be certified.
    n : int
        Labelled answers with a confidence.
    n_answered, n_wrong : int
        Those from the threshold on, and the wrong ones among them; 0 without a threshold.
    risk : float
        Share wrong among the answered; NaN without a threshold.
    answers_needed : int
        Answered labels without which no threshold can be certified, even if none is wrong.
    labels_needed : int or None
        About how many more labels certify a threshold, if confidences and errors stay as they were seen; 0
        with a threshold. None where no number does: at every start nothing is answered, or the error rate is
        at α or above, or so close below it that more than a million would be needed.
    alpha, delta : float
        As asked.
    table : tuple of Tested
        Every threshold of the grid, the highest first.
    """

    threshold: float | None
    n: int
    n_answered: int
    n_wrong: int
    risk: float
    answers_needed: int
    labels_needed: int | None
    alpha: float
    delta: float
    table: tuple[Tested, ...]

    @property
    def out_of_reach(self) -> bool:
        """Whether the risk is clearly above α wherever enough is answered: more labels would not help.

        Clearly: as many wrong ones or more with a probability of at most 5 % if the risk were α.
        """
        enough = [row for row in self.table if row.n_answered >= self.answers_needed]
        clear = [bdtrc(row.n_wrong - 1, row.n_answered, self.alpha) <= _CLEAR for row in enough]
        return self.threshold is None and bool(enough) and all(clear)

    @property
    def missing(self) -> str:
        """What a threshold would take, in words; empty where there is one.

        Examples
        --------
        >>> certify_threshold([0.9] * 30, [1] * 30, 0.1, 0.1).missing
        'about 8 more labels would certify one'
        """
        if self.threshold is not None:
            return ""
        if self.out_of_reach:
            return "too many are wrong at every confidence, so that more labels would not help"
        if self.labels_needed is None:
            return "too many of them are wrong to say how many labels would do"
        return f"about {count(self.labels_needed, 'more label')} would certify one"

    def to_frame(self) -> pd.DataFrame:
        """Return the table, one row per threshold, with the columns of `Tested`."""
        return pd.DataFrame(self.table, columns=list(Tested._fields))


def certify_threshold(
    confidence: ArrayLike,
    correct: ArrayLike,
    alpha: float,
    delta: float,
    grid: Sequence[float] = GRID,
    starts: Sequence[float] | None = None,
) -> Certificate:
    """Return the lowest confidence from which on at most α of the answers are wrong, certified.

    With probability at least 1 − δ over the labelled questions, P(wrong | confidence ≥ threshold) ≤ α for
    every certified threshold. Nothing is assumed of the confidence: the risk may rise with it.

    Parameters
    ----------
    confidence : array_like, shape (n,)
        Higher = answered rather; NaN (no confidence) is left out.
    correct : array_like, shape (n,)
        1 correct, 0 wrong; NaN (unknown) is left out.
    alpha, delta : float
        The risk allowed and the probability of a wrong certificate; between 0 and 1.
    grid : sequence of float
        Thresholds that may be certified, in any order. Must be chosen without a look at these data; the
        default is for a confidence in [0, 1].
    starts : sequence of float, optional
        Thresholds of the grid that share δ equally; by default five spread evenly, from the highest on. One,
        such as the confidence from which on an earlier set answered half of its questions, gives the plain
        fixed-sequence test from there downwards: fewest labels, if the guess is good.

    Returns
    -------
    Certificate
        Cost: one pass over the grid.

    Raises
    ------
    InputError
        An argument is outside its range, or a start is not on the grid.

    Notes
    -----
    The grid is tested from the highest threshold down. Each threshold λ has a budget, δ divided by the number
    of starts (0 where none starts), and is certified where its p-value is at most its level: its own budget
    plus, if the threshold before it was certified, the whole level of that one. This is the fallback
    procedure (Wiens & Dmitrienko 2005), a fixed sequence with several starts.

    Why several starts: a sequence that begins at the highest threshold and stops at the first failure would
    stop at once, since too few are answered there. A start where enough are answered depends on the data, and
    the proof below fails for it: given that too few exceed the threshold above, the answered hold fewer of
    the most confident than usual, and where those are the risky ones, they look better than they are. The
    same goes for a start at a share answered, since its threshold is a quantile of the same data.

    Why it is exact: call a threshold bad if its true risk exceeds α. Given how many are answered from it on,
    the number of wrong ones is binomial, so its p-value is at most u with a probability of at most u. The
    first bad threshold that is certified got its level from thresholds that are not bad, so that level is at
    most the sum of the budgets after the bad threshold before it. These sums overlap nowhere, so all of them
    together are at most δ, and so is the probability that any bad threshold's p-value is below its own,
    however the p-values depend on each other. A jump of the risk between two thresholds does no harm: only
    thresholds of the grid are answered from.

    References
    ----------
    Angelopoulos et al. 2021, arXiv 2110.01052; Wiens & Dmitrienko 2005, J. Biopharm. Stat. 15, 929.

    Examples
    --------
    >>> found = certify_threshold([0.9] * 60 + [0.3] * 40, [1] * 60 + [0] * 40, 0.1, 0.1)
    >>> found.threshold, found.n_answered, found.risk
    (0.35, 60, 0.0)
    """
    error, total = rate("alpha", alpha), rate("delta", delta)
    score, right = column("confidence", confidence), labels("correct", correct)
    same_length("confidence", score.size, "correct", right.size)
    known = ~np.isnan(score + right)
    score, right = score[known], right[known]
    budgets = _budgets(grid, starts, total)
    table, level, certified = [], Fraction(0), False
    for threshold, budget in budgets.items():
        level = budget + (level if certified else 0)
        answered = score >= threshold
        n, wrong = int(answered.sum()), int((1 - right[answered]).sum())
        p = float(bdtr(wrong, n, float(error))) if n else 1.0
        certified = bool(level and p <= float(level))  # a p-value may underflow to 0
        table.append(Tested(threshold, n, wrong, wrong / n if n else math.nan, p, float(level), certified))
    least = _answers_needed(0.0, float(error), float(max(budgets.values())), 1)
    best = next((row for row in reversed(table) if row.certified), None)
    if best is None:
        more = _labels_needed(table, score.size, float(error), least)
        return Certificate(None, score.size, 0, 0, math.nan, least, more, alpha, delta, tuple(table))
    found = (best.threshold, score.size, best.n_answered, best.n_wrong, best.risk)
    return Certificate(*found, least, 0, alpha, delta, tuple(table))


def _budgets(grid: Sequence[float], starts: Sequence[float] | None, delta: Fraction) -> dict[float, Fraction]:
    """Return the share of δ of each threshold, the highest first."""
    thresholds = np.unique(column("grid", grid))[::-1].tolist()
    if not thresholds or math.isnan(thresholds[0]):
        raise InputError("grid must hold at least one threshold and no NaN.")
    if starts is None:
        first = {thresholds[i * len(thresholds) // STARTS] for i in range(STARTS)}
    else:
        first = set(column("starts", starts).tolist())
    if not first or not first <= set(thresholds):
        raise InputError(f"starts must be thresholds of the grid, at least one; got {starts}.")
    return {one: delta / len(first) if one in first else Fraction(0) for one in thresholds}


def _labels_needed(table: Sequence[Tested], n: int, alpha: float, least: int) -> int | None:
    """Return about how many more labels certify one threshold, by the shares seen."""
    if not n:
        return least
    needed = []
    for row in table:
        if row.n_answered and row.level > 0 and row.risk < alpha:
            answered = _answers_needed(row.risk, alpha, row.level, least)
            needed.append(math.ceil(answered * n / row.n_answered))
    fewest = min(needed, default=MANY)
    return max(1, fewest - n) if fewest < MANY else None


def _answers_needed(risk: float, alpha: float, level: float, least: int) -> int:
    """Return the smallest number m of answers, at least ``least``, that pass with m · risk errors."""
    # The binomial probability as a beta integral, which also has a value between whole numbers of errors.
    return bisect_left(
        range(MANY),
        True,
        lo=least,
        key=lambda m: bool(betainc(m * (1 - risk), m * risk + 1, 1 - alpha) <= level),
    )
