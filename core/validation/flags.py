"""Whether what flags answers flags the wrong ones: counts with intervals, and what chance gives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.stats import Interval
from core.validation.metrics import Share


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
        n = self.wrong.n + self.right.n
        return self.n_flagged * self.wrong.n / n if n else math.nan

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

        n = self.wrong.n + self.right.n
        low, high = hypergeom.ppf([0.025, 0.975], n, self.wrong.n, self.n_flagged) if n else [math.nan] * 2
        return float(low), float(high)


def flags_of(flagged: ArrayLike, wrong: ArrayLike) -> Flags:
    """Count flags on labelled answers.

    Parameters
    ----------
    flagged, wrong : array_like of bool, shape (n,)
        Whether each answer is flagged, and whether it is wrong.

    Examples
    --------
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
