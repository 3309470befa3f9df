"""What validation did over time, and what it changes: counts, windows of days, validators on against off."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
from numpy.typing import ArrayLike

from core.stats import Interval, mean_in_unit, paired_interval, paired_permutation_test, wilson_interval
from core.validation.types import Code, ValidationOutcome

WINDOWS = (1, 7, 30)  # days


@dataclass(frozen=True)
class Observation:
    """What is kept of one validated answer, without its text; one with a ``key`` counts once in a store."""

    at: datetime
    passed: bool
    critical: bool
    confidence: float
    overlap: float | None
    used_fallback: bool
    expressed_uncertainty: bool
    reasons: tuple[Code, ...]
    key: str | None = None


@dataclass(frozen=True)
class Share:
    """``count`` of ``n``, with its rate and Wilson's interval; NaN for n = 0."""

    count: int
    n: int

    @property
    def rate(self) -> float:
        """The share, in [0, 1]."""
        return self.count / self.n if self.n else math.nan

    @property
    def interval(self) -> Interval:
        """Its interval at 95 %."""
        return wilson_interval(self.rate, self.n)


@dataclass(frozen=True)
class Average:
    """Mean of ``n`` values in [0, 1] with its interval; NaN without values."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Metrics:
    """What validation did to some answers.

    ``prevented``: answers that a validator called critical and a fallback replaced, each once. ``uncertain``:
    answers that said themselves that they are not certain. ``overlap``: over the answers that could be
    compared, 0 among them. ``reasons``: how many answers failed for each reason.
    """

    passed: Share
    fallback: Share
    prevented: Share
    uncertain: Share
    confidence: Average
    overlap: Average
    reasons: Mapping[Code, int]


@dataclass(frozen=True)
class Trial:
    """Validators on against off on the same labelled answers.

    ``off``, ``on``: hallucinated answers that reach the user, among all. ``difference`` is on − off, with an
    interval and the p-value of a paired randomisation test. ``reduction``: share of the hallucinated answers
    that were stopped. ``lost``: share of the others that were stopped as well.
    """

    off: Share
    on: Share
    difference: float
    interval: Interval
    p_value: float
    reduction: Share
    lost: Share


def observe(
    outcome: ValidationOutcome, at: datetime, used_fallback: bool, key: str | None = None
) -> Observation | None:
    """Return what to keep of an outcome; None where validators were switched off."""
    if outcome.passed is None:
        return None
    return Observation(
        at,
        outcome.passed,
        outcome.critical,
        outcome.confidence_score,
        outcome.overlap,
        used_fallback,
        outcome.expressed_uncertainty,
        tuple(dict.fromkeys(verdict.reason.code for verdict in outcome.failed)),
        key,
    )


def metrics(observations: Iterable[Observation]) -> Metrics:
    """Return the metrics of some validated answers."""
    seen = list(observations)
    n = len(seen)
    overlaps = [one.overlap for one in seen if one.overlap is not None]
    return Metrics(
        Share(sum(one.passed for one in seen), n),
        Share(sum(one.used_fallback for one in seen), n),
        Share(sum(one.critical and one.used_fallback for one in seen), n),
        Share(sum(one.expressed_uncertainty for one in seen), n),
        _average([one.confidence for one in seen]),
        _average(overlaps),
        Counter(code for one in seen for code in one.reasons),
    )


def windowed(
    observations: Iterable[Observation], now: datetime, days: Sequence[int] = WINDOWS
) -> dict[int, Metrics]:
    """Return the metrics of the last days before ``now``: those after ``now`` − days and not after ``now``.

    All times either have a time zone or have none.
    """
    seen = list(observations)
    return {day: metrics(one for one in seen if now - timedelta(days=day) < one.at <= now) for day in days}


def daily(observations: Iterable[Observation], now: datetime, days: int) -> dict[date, Metrics]:
    """Return the metrics of each of the last days, the oldest first and ``now``'s last, in UTC.

    A day without answers is there, with metrics of none.
    """
    today = now.astimezone(UTC).date()
    by_day: dict[date, list[Observation]] = {today - timedelta(days=i): [] for i in reversed(range(days))}
    for one in observations:
        if one.at <= now and (day := one.at.astimezone(UTC).date()) in by_day:
            by_day[day].append(one)
    return {day: metrics(seen) for day, seen in by_day.items()}


def trial(hallucinated: ArrayLike, stopped: ArrayLike) -> Trial:
    """Compare validators on with validators off on the same labelled answers.

    Parameters
    ----------
    hallucinated : array_like of bool, shape (n,)
        The label of each answer.
    stopped : array_like of bool, shape (n,)
        Whether validation replaces it.

    Raises
    ------
    ValueError
        The two differ in length.

    Examples
    --------
    >>> found = trial([True, True, False, False], [True, False, False, False])
    >>> found.off.rate, found.on.rate, found.reduction.rate, found.lost.rate
    (0.5, 0.25, 0.5, 0.0)
    """
    label, stop = np.asarray(hallucinated, dtype=bool), np.asarray(stopped, dtype=bool)
    if label.shape != stop.shape:
        raise ValueError(f"one label for each answer, got {label.size} labels and {stop.size} answers")
    served = label & ~stop
    n, bad = label.size, int(label.sum())
    off, on = Share(bad, n), Share(int(served.sum()), n)
    return Trial(
        off,
        on,
        on.rate - off.rate,
        paired_interval(label, served, share=True),
        paired_permutation_test(label, served),
        Share(bad - on.count, bad),
        Share(int((~label & stop).sum()), n - bad),
    )


def _average(values: Sequence[float]) -> Average:
    return Average(*mean_in_unit(values), len(values))
