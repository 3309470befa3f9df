"""What is wrong with retrieval, or in order: whether the gold passage comes first, and whether it is used."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from core.diagnosis import BAD, GOOD, UNCLEAR, Finding
from core.retrieval_quality.analysis import RetrievalQuality
from core.retrieval_quality.definitions import FINDINGS, METRICS
from core.stats import cases_needed, poisson_binomial_tail, wilson_interval
from core.text.display import count, needed, number, part, percent

_ALPHA = 0.05
_MOSTLY = 0.5  # share of the questions


class _Share(NamedTuple):
    """How many questions show something, and how many would by chance."""

    n: int
    of: int
    interval: tuple[float, float]
    expected: float
    p_value: float
    needed: int | None

    @property
    def tone(self) -> str:
        """Good in most questions, bad in few; not to be told where the interval holds both."""
        low, high = self.interval
        return GOOD if low > _MOSTLY else BAD if high < _MOSTLY else UNCLEAR

    @property
    def is_chance(self) -> bool:
        """Whether chance explains as many."""
        return self.p_value > _ALPHA

    def words(self, noun: str = "") -> str:
        """Return ``only 20 % of 54 (12–33 %; 6 % by chance)``; ``noun`` is what is counted."""
        told = f"; {needed(self.needed)}" if self.is_chance and self.n > self.expected else ""
        only = "only " if self.tone == BAD and self.n else ""
        basis = f"{percent(self.n / self.of, self.interval)}; {percent(self.expected / self.of)} by chance"
        return f"{only}{part(self.n, self.of, noun)} ({basis}{told})"


def findings(quality: RetrievalQuality) -> tuple[Finding, ...]:
    """Return how often a gold passage comes first, and how often the answer leans on it most.

    Each is good news where it holds in more than half of the questions, bad in less than half, and unclear
    where the 95 % interval of the share holds one half; chance is a random order of the same passages.
    """
    first, used = _first(quality), _used(quality)
    return tuple(one for one in (first, used) if one is not None)


def _first(quality: RetrievalQuality) -> Finding | None:
    q = quality.queries
    found = _share(q["hit_at_1"], q["hit_at_1_by_chance"])
    if found is None:
        return None
    missed = q[q["hit_at_1"] == 0].sort_values("first_gold_rank", ascending=False, na_position="first")
    return Finding(
        "hit_at_1",
        f"A gold passage comes first in {found.n:,} of {count(found.of, 'question')}; "
        f"a random order gives {number(found.expected, '{:.0f}')}.",
        found.n,
        found.of,
        found.interval,
        found.expected,
        found.p_value,
        "low" if found.tone == GOOD else "high" if found.is_chance and found.tone == BAD else "medium",
        "" if found.tone == GOOD else FINDINGS["hit_at_1"].advice,
        tuple(missed["query_id"]),
        found.tone,
        f"retrieval puts a gold passage first in {found.words('question')}",
        "gold",
    )


def _used(quality: RetrievalQuality) -> Finding | None:
    q = quality.queries
    used = q["gold_most_influential"].astype("Float64")
    found = _share(used, q["gold_most_influential_by_chance"])
    if found is None:
        return None
    others = q[(used == 0).fillna(False)].sort_values(
        ["first_gold_rank", "gold_influence_rank"], ascending=[True, False]
    )
    it = "it" if q["hit_at_1"].notna().any() else "a gold passage"
    return Finding(
        "gold_most_influential",
        f"The answer leans most on a gold passage in {found.n:,} of {count(found.of, 'question')}, and on "
        f"another passage in {found.of - found.n:,}; chance alone gives {number(found.expected, '{:.0f}')}.",
        found.n,
        found.of,
        found.interval,
        found.expected,
        found.p_value,
        {GOOD: "low", BAD: "high", UNCLEAR: "medium"}[found.tone],
        "" if found.tone == GOOD else METRICS["gold_most_influential"].advice,
        tuple(others["query_id"]),
        found.tone,
        f"the answer leans on {it} most in {found.words()}",
        "gold",
    )


def _share(values: pd.Series, by_chance: pd.Series) -> _Share | None:
    """Count the ones among values that are 0, 1 or missing; None where all are missing."""
    known = values.to_numpy(dtype=np.float64, na_value=np.nan)
    defined = ~np.isnan(known)
    n, of, chance = int(np.nansum(known)), int(defined.sum()), by_chance.to_numpy()[defined]
    if not of:
        return None
    p_value = poisson_binomial_tail(np.clip(chance, 0, 1), n)
    enough = cases_needed(known[defined] - chance)
    return _Share(n, of, wilson_interval(n / of, of), float(chance.sum()), p_value, enough)
