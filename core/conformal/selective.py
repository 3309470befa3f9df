"""From which confidence on to answer, so that few of the answers given are wrong."""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import bdtr, bdtrik, betainc, betaincinv

from core.arrays import Floats, Ints
from core.conformal.split import column, labels, rate, same_length
from core.errors import InputError
from core.text.display import count

GRID = tuple(step / 20 for step in range(19, -1, -1))
MANY = 1_000_000  # labels: more than anyone collects
# A start is worth its share of δ where a third of the risk allowed passes in 9 of 10 calibrations.
_BETTER, _POWER = 1 / 3, 0.9
_SECOND = Fraction(1, 10)  # of δ, for the second start
_CLEAR = 0.05  # outside the one-sided interval of a risk
_FEWEST = 20  # labels, and one in so many of them: of fewer nothing is said for good
_STEP = 1.25  # between numbers of labels that are tried first


class Tested(NamedTuple):
    """One threshold that was tested: of the grid, or a start (NaN for one within a tie).

    Of ``n_answered`` labelled answers with at least this confidence a share of ``risk`` (NaN of none) is
    wrong. ``p_value`` is P(Binomial(n_answered, α) ≤ n_wrong), 1 of none; ``certified`` where it is at most
    ``level``, and never where that is 0.
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
    """The lowest certified threshold, from which on to answer (None without one), and what led there.

    ``n`` labelled answers have a confidence; without a threshold ``n_answered, n_wrong, risk`` are 0, 0, NaN.
    No threshold can be certified with fewer than ``answers_needed`` answered labels. About ``labels_needed``
    more labels certify one if confidences and errors stay as they were seen: 0 with a threshold, None where
    no number up to a million does. ``out_of_reach``: of the surest answers, however many of them (from 1 in
    20 of at least 20 labels on), more than α are wrong even at the lower end of a one-sided 95 % interval.
    Where a threshold is in reach, this is said with a probability of at most 5 %; never at a higher α if not
    at a lower one. ``table`` has the highest threshold first.
    """

    threshold: float | None
    n: int
    n_answered: int
    n_wrong: int
    risk: float
    answers_needed: int
    out_of_reach: bool
    alpha: float
    delta: float
    table: tuple[Tested, ...]
    _more: Callable[[], int | None] | None = field(repr=False, compare=False)

    @cached_property
    def labels_needed(self) -> int | None:
        """Takes longer than all else, so only when it is asked for."""
        return self._more() if self._more else 0

    @property
    def missing(self) -> str:
        """What a threshold would take, in words; empty where there is one.

        >>> certify_threshold([0.9] * 10, [1] * 10, 0.1, 0.1).missing
        'about 13 more labels would certify one'
        """
        if self.threshold is not None:
            return ""
        if self.out_of_reach:
            return (
                "too many are wrong at every confidence that 1 answer in 20 reaches, and more labels would "
                "not change this"
            )
        if self.labels_needed is None:
            return "too many are wrong to say how many labels it would take"
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
        Thresholds of the grid that share δ equally, chosen without a look at these data. By default two
        numbers of surest answers: see Notes.

    Raises
    ------
    InputError
        An argument is outside its range, or a start is not on the grid.

    Notes
    -----
    The grid is tested from the highest threshold down by the fallback procedure (Wiens & Dmitrienko 2005), a
    fixed sequence with several starts: a start is tested at its share of δ, a threshold of the grid at 0, and
    to this comes the whole level of the test before, if that passed. At the highest threshold too few are
    answered for a test to pass, so the sequence begins at the m surest answers, ties in random order. α, δ
    and the number of labels alone choose m: the smallest of at most a third of the labels with which a third
    of the risk allowed passes in 9 of 10 calibrations, or else the most powerful; it gets 0.9 δ. A second
    start, at half of the labels or more, gets 0.1 δ, for a confidence that is worth little at its top. Where
    so many could not pass even without an error, the first start gets all of δ.

    Why it is exact: order the population by confidence, ties at random; let R(x) be the risk from x upwards,
    and x bad where R(x) > α. At the ends of a bad stretch R is α, so given how many labels lie above each end
    the wrong ones above it are binomial with α, and within the stretch there are more. The first threshold of
    the grid in a stretch is fixed; a start in it is the place of a certain label, and given that place the
    labels above it are a random sample of what lies above. So given these numbers each p-value is at most u
    with a probability of at most u, and the levels with which the sequence enters the bad stretches add up to
    at most δ. A start *at a threshold of the grid* where enough are answered would not do: given that too few
    exceed the threshold above it, the answered hold fewer of the surest, which may be the risky ones.

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
    # Ties in a random order, whatever the order of the data: the same labels give the same certificate.
    order = np.lexsort((right, -score))
    score, right = score[order], right[order]
    seed = hashlib.sha256(score.tobytes() + right.tobytes()).digest()
    drawn = np.random.default_rng(list(seed)).permutation(score.size)
    order = drawn[np.argsort(-score[drawn], kind="stable")]
    score, wrong = score[order], np.r_[0, np.cumsum(1 - right[order])].astype(int)
    nodes = _nodes(score, grid, starts, error, total)
    table, level, certified = [], Fraction(0), False
    for threshold, n, budget in nodes:
        level = budget + (level if certified else 0)
        p = float(bdtr(wrong[n], n, float(error))) if n else 1.0
        certified = bool(level and p <= float(level))  # a p-value may underflow to 0
        risk = wrong[n] / n if n else math.nan
        table.append(Tested(threshold, n, int(wrong[n]), float(risk), p, float(level), certified))
    most = max([budget for *_, budget in nodes if budget], default=total) if starts is not None else total
    least = _answers_needed(float(error), float(most))
    best = next((row for row in reversed(table) if row.certified and not math.isnan(row.threshold)), None)
    if best is not None:
        found = (best.threshold, score.size, best.n_answered, best.n_wrong, best.risk)
        return Certificate(*found, least, False, alpha, delta, tuple(table), None)
    more = partial(_labels_needed, score, wrong, [*_grid(grid)], starts, error, total)
    hopeless = _hopeless(score, wrong, float(error), least)
    return Certificate(None, score.size, 0, 0, math.nan, least, hopeless, alpha, delta, tuple(table), more)


class _Node(NamedTuple):
    """A test of the sequence: the labels from a threshold on (NaN: within a tie), and its own share of δ."""

    threshold: float
    n_answered: int
    budget: Fraction


def _grid(grid: Sequence[float]) -> list[float]:
    """Return the thresholds, the highest first."""
    thresholds = np.unique(column("grid", grid))[::-1].tolist()
    if not thresholds or math.isnan(thresholds[0]):
        raise InputError("grid must hold at least one threshold and no NaN.")
    return thresholds


def _nodes(
    score: Floats, grid: Sequence[float], starts: Sequence[float] | None, alpha: Fraction, delta: Fraction
) -> list[_Node]:
    """Return the tests in their order, for falling confidences."""
    thresholds = _grid(grid)
    budgets = dict.fromkeys(thresholds, Fraction(0))
    if starts is not None:
        first = set(column("starts", starts).tolist())
        if not first or not first <= set(thresholds):
            raise InputError(f"starts must be thresholds of the grid, at least one; got {starts}.")
        budgets |= dict.fromkeys(first, delta / len(first))
    answered = np.searchsorted(-score, -np.array(thresholds), side="right").tolist()
    nodes = [_Node(one, n, budgets[one]) for one, n in zip(thresholds, answered, strict=True)]
    for m, budget in _starts(score.size, alpha, delta).items() if starts is None else ():
        # Above the place of the next label: a threshold unless that ties with the last of these.
        tied = score[m - 1] == score[m]
        nodes.append(_Node(math.nan if tied else float(np.nextafter(score[m], math.inf)), m, budget))
    # A threshold that lets just those of a start through lies above it.
    return sorted(nodes, key=lambda node: (node.n_answered, node.budget > 0 and starts is None))


@lru_cache(maxsize=1024)
def _starts(n: int, alpha: Fraction, delta: Fraction) -> Mapping[int, Fraction]:
    """Return the numbers of surest answers to start from, below n, and their shares of δ, without labels."""
    error, second = float(alpha), delta * _SECOND
    if _answers_needed(error, float(second)) < n:
        later = max(n // 2, _start(error, float(second), n - 1))
        return {_first(n, error, float(delta - second)): delta - second, later: second}
    return {_first(n, error, float(delta)): delta} if _answers_needed(error, float(delta)) < n else {}


def _first(n: int, alpha: float, level: float) -> int:
    return _start(alpha, level, max(n // 3, _answers_needed(alpha, level)))


def _start(alpha: float, level: float, most: int) -> int:
    """Return the smallest number of answers, up to ``most``, with enough power; else that with most."""
    power = _powers(alpha, level)[:most]
    return 1 + int(np.argmax(power))


@lru_cache(maxsize=64)
def _powers(alpha: float, level: float) -> Floats:
    """Return how likely a third of α passes with 1, 2 … answers, up to the first number that is enough."""
    size = 256
    while True:
        m = np.arange(1, size + 1)
        allowed = np.floor(bdtrik(level, m, alpha))
        # Rounded down from where the probability is the level; a number that exceeds it never passes.
        allowed = np.where(bdtr(np.maximum(allowed, 0), m, alpha) <= level, allowed, allowed - 1)
        power = np.where(allowed >= 0, bdtr(np.maximum(allowed, 0), m, alpha * _BETTER), 0.0)
        enough = np.flatnonzero(power >= _POWER)
        if enough.size or size >= MANY:
            return power[: enough[0] + 1] if enough.size else power
        size *= 4


def _hopeless(score: Floats, wrong: Ints, alpha: float, least: int) -> bool:
    """Return whether the risk of the surest is clearly above α, however many of them are answered.

    Where a threshold is in reach, its one-sided exact interval (Clopper & Pearson 1934) lies above α with a
    probability of at most 5 %, so all of them do with no more.
    """
    if score.size < _FEWEST:
        return False
    m = np.flatnonzero(np.r_[score[1:] < score[:-1], True]) + 1
    m = m[m >= min(math.ceil(score.size / _FEWEST), least)]
    w = wrong[m]
    low = np.where(w > 0, betaincinv(np.maximum(w, 1), m - w + 1, _CLEAR), 0.0)
    return bool((low > alpha).all())


def _labels_needed(
    score: Floats,
    wrong: Ints,
    grid: Sequence[float],
    starts: Sequence[float] | None,
    alpha: Fraction,
    delta: Fraction,
) -> int | None:
    """Return about how many more labels certify a threshold, if they are like those that are there."""
    n, error = score.size, float(alpha)
    share = delta if starts is None else delta / len(set(starts))
    if not n:
        return _answers_needed(error, float(share)) + (starts is None)
    ends = np.r_[0, np.flatnonzero(np.r_[score[1:] < score[:-1], True]) + 1]
    answered = np.searchsorted(-score, -np.array(grid), side="right")
    chosen = answered[np.isin(grid, list(starts or ()))]
    given = sorted({*zip(chosen.tolist(), wrong[chosen].tolist(), strict=True)})

    def passes(m: float, n_wrong: float, level: Fraction) -> bool:
        # The binomial probability as a beta integral, which also has a value between whole numbers.
        return m > 0 and bool(betainc(max(m - n_wrong, 1e-9), n_wrong + 1, 1 - error) <= float(level))

    def follows(seen: float) -> Ints:
        # Several that tie will be more of them: then a threshold of the grid must follow a start among them.
        block = int(np.searchsorted(ends, seen))
        alone = seen == ends[block] or ends[block] - ends[block - 1] == 1
        return np.array([seen]) if alone else answered[answered > seen][:1]

    def certified(total: int) -> bool:
        more = total / n

        def n_wrong(seen: float) -> float:
            return more * float(np.interp(seen, ends, wrong[ends]))

        if starts is not None:
            return any(passes(more * m, more * w, share) for m, w in given)
        at = [(m / more, level) for m, level in _starts(total, alpha, delta).items()]
        tests = [(seen, follows(seen).tolist(), level) for seen, level in at]
        return any(
            passes(more * seen, n_wrong(seen), level)
            and any(passes(more * m, n_wrong(m), level) for m in after)
            for seen, after, level in tests
        )

    total = n
    while total < MANY:
        before, total = total, max(total + 1, int(total * _STEP))
        if certified(total):
            return bisect_left(range(total), True, lo=before + 1, key=certified) - n
    return None


@lru_cache(maxsize=64)
def _answers_needed(alpha: float, level: float) -> int:
    """Return the smallest number of answers that pass if none of them is wrong."""
    return bisect_left(range(MANY), True, lo=1, key=lambda m: bool(bdtr(0, m, alpha) <= level))
