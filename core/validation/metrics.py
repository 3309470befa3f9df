"""What validation did over time, what it changes, and whether its flags meet the wrong answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
from numpy.typing import ArrayLike

from core.stats import Interval, mean_in_unit, paired_interval, wilson_interval
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


def _average(values: Sequence[float]) -> Average:
    return Average(*mean_in_unit(values), len(values))


@dataclass(frozen=True)
class Flags:
    """How many of the wrong and of the right answers something flags.

    ``wrong.rate`` is its recall, ``right.rate`` its false-positive rate. ``p_value``: how likely so many of
    the flagged answers would be wrong, or so few, if the same number of flags were spread at random (Fisher's
    exact test, two-sided); NaN where no such test is possible.
    """

    wrong: Share
    right: Share
    p_value: float

    @property
    def n(self) -> int:
        """Labelled answers."""
        return self.wrong.n + self.right.n

    @property
    def off(self) -> Share:
        """Wrong answers that reach the user, among all."""
        return Share(self.wrong.n, self.n)

    @property
    def on(self) -> Share:
        """Wrong answers that reach the user where those that are flagged do not."""
        return Share(self.wrong.n - self.wrong.count, self.n)

    @property
    def change(self) -> Interval:
        """The 95 % interval of the share of wrong answers that reach the user, on − off, paired."""
        answers = np.arange(self.n)
        return paired_interval(answers < self.off.count, answers < self.on.count, share=True)

    @property
    def n_flagged(self) -> int:
        """Labelled answers that are flagged."""
        return self.wrong.count + self.right.count

    @property
    def precision(self) -> Share:
        """Wrong answers among those flagged; by chance as many as among all."""
        return Share(self.wrong.count, self.n_flagged)

    @property
    def expected(self) -> float:
        """Wrong answers that as many flags at random would hit; NaN without answers."""
        return self.n_flagged * self.wrong.n / self.n if self.n else math.nan

    @property
    def advantage(self) -> Interval:
        """The 95 % interval of recall − false-positive rate (Newcombe 1998, method 10).

        Without correct answers the rate is taken for 0, as the best that can be; NaN without wrong ones.
        """
        wrong, right = (
            (0.0, 0.0, 0.0) if not one.n else (one.rate, *one.interval) for one in (self.wrong, self.right)
        )
        if not self.wrong.n:
            return math.nan, math.nan
        gain = wrong[0] - right[0]
        low = gain - math.hypot(wrong[0] - wrong[1], right[2] - right[0])
        return low, gain + math.hypot(wrong[2] - wrong[0], right[0] - right[1])

    @property
    def expected_interval(self) -> Interval:
        """The middle 95 % of the wrong answers that as many flags at random hit; NaN without answers."""
        from scipy.stats import hypergeom

        if not self.n:
            return math.nan, math.nan
        low, high = hypergeom.ppf([0.025, 0.975], self.n, self.wrong.n, self.n_flagged)
        return float(low), float(high)


def flags_of(flagged: ArrayLike, wrong: ArrayLike) -> Flags:
    """Count flags on labelled answers: whether each is flagged, and whether it is wrong.

    >>> found = flags_of([True, True, False, False], [True, True, False, False])
    >>> found.wrong, found.right, found.expected, round(found.p_value, 3)
    (Share(count=2, n=2), Share(count=0, n=2), 1.0, 0.333)
    """
    from scipy.stats import fisher_exact

    flag, bad = np.asarray(flagged, dtype=bool), np.asarray(wrong, dtype=bool)
    n, n_bad, n_flagged, hit = flag.size, int(bad.sum()), int(flag.sum()), int((flag & bad).sum())
    tests = 0 < n_bad < n and 0 < n_flagged < n
    table = [[hit, n_bad - hit], [n_flagged - hit, n - n_bad - (n_flagged - hit)]]
    p_value = float(fisher_exact(table).pvalue) if tests else math.nan
    return Flags(Share(hit, n_bad), Share(n_flagged - hit, n - n_bad), p_value)
