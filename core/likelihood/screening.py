"""How exactly drops of log-probability are read: all, the first after a quick screen, or by the screen only.

The screen is `core.llm.embedded.screen`. Where it is followed by exact reading, so is a random sample of the
passages that it did not put first: how far it is off on them is what it is off on the user's own data.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from core.stats import Interval, bootstrap_interval, wilson_interval
from core.text.display import count, percent

EXACT, CHECKED, SCREENED = "exact", "screen+3", "screen"
CHOICES = (
    (EXACT, "Exact"),
    (CHECKED, "Quick screen, then the first 3 exactly"),
    (SCREENED, "Quick screen only (approximate)"),
)
# What to expect, measured by bench/screen.py with the packaged model and ten passages a question.
EXPECTED = {
    EXACT: "",
    CHECKED: "the first 3 as exact, the others as the screen; agreement is measured on the way",
    SCREENED: "approximate: ρ with exact drops about 0.9, the same first passage in 18 of 20 questions",
}
FIRST, CONTROL = 3, 2  # passages of a question that are read exactly after the screen, and others as a check


class Agreement(NamedTuple):
    """How far the screen is off on passages that were also read exactly, drawn at random.

    ``apart`` is the mean absolute difference in nats over ``n`` passages of ``n_questions`` questions, with a
    95 % interval; ``same_order`` the share of ``n_pairs`` pairs of one question that both put in the same
    order, in [0, 1], by chance 0.5, with its interval. NaN without such passages.
    """

    n: int
    n_questions: int
    apart: float
    apart_interval: Interval
    n_pairs: int
    same_order: float
    order_interval: Interval

    def __str__(self) -> str:
        others = count(self.n, "other")
        checked = f"{others}, drawn at random and read exactly, it is off by {self.apart:.2f} nats"
        if not self.n_pairs:
            return checked
        pairs = f"{percent(self.same_order)} of {count(self.n_pairs, 'pair')}"
        return f"{checked}; in the same order: {pairs} (by chance 50 %)"

    @property
    def facts(self) -> dict[str, object]:
        """The same as plain JSON; null where there is no such passage."""
        return {
            "n": self.n,
            "mean_absolute_difference": self.apart if self.n else None,
            "n_pairs": self.n_pairs,
            "same_order": self.same_order if self.n_pairs else None,
        }


def to_check(estimates: Sequence[float], query_id: str) -> list[int]:
    """Return which passages to read exactly: those of the largest estimates, and a random sample of the rest.

    The same passages for the same question.
    """
    order = sorted(range(len(estimates)), key=lambda i: -estimates[i])
    rest = sorted(order[FIRST:])
    return sorted(order[:FIRST] + random.Random(query_id).sample(rest, min(CONTROL, len(rest))))


def agreement(passages: pd.DataFrame) -> Agreement:
    """Compare the screen with exact drops where both are known and the screen did not choose the passage."""
    p = passages[["query_id", "logprob_drop", "screened_drop"]].copy()
    place = p.groupby("query_id")["screened_drop"].rank(method="first", ascending=False)
    exact = ~passages["approximate_drop"].fillna(value=True).astype(bool)
    p = p[exact & p["logprob_drop"].notna() & (place > FIRST)]
    off = (p["logprob_drop"] - p["screened_drop"]).abs().to_numpy(dtype=np.float64)
    pairs = [
        (one["logprob_drop"].iloc[1] > one["logprob_drop"].iloc[0])
        == (one["screened_drop"].iloc[1] > one["screened_drop"].iloc[0])
        for _, one in p.groupby("query_id")
        if len(one) == CONTROL
    ]
    share = float(np.mean(pairs)) if pairs else float("nan")
    return Agreement(
        len(off),
        p["query_id"].nunique(),
        float(off.mean()) if len(off) else float("nan"),
        bootstrap_interval(off, lambda values: float(values.mean()), groups=p["query_id"]),
        len(pairs),
        share,
        wilson_interval(share, len(pairs)),
    )


def n_approximate(passages: pd.DataFrame) -> int:
    """Return how many passages have a drop that is only estimated."""
    return int(passages["approximate_drop"].fillna(value=False).astype(bool).sum())


class Cost(NamedTuple):
    """The forward passes of one way to read a question, and the prompt tokens read in them."""

    passes: int
    tokens: int


def costs(lengths: Sequence[int], n_texts: int, tail: int) -> Mapping[str, Cost]:
    """Return the cost of each of `CHOICES` for a question.

    ``lengths``: tokens of the prompt with all passages, then of each without one; ``n_texts``: answers to
    read after each prompt, 0 to 2; ``tail``: tokens behind the last passage, with an answer.
    """
    if not n_texts:
        return dict.fromkeys((EXACT, CHECKED, SCREENED), Cost(0, 0))
    n, full = len(lengths), lengths[0]
    screen = Cost(2, full + n * n_texts * tail)
    # What stands before a passage is read once: without it, only what follows is new.
    passages = [full - one for one in lengths[1:]]
    behind = [sum(passages[i:]) + tail for i in range(1, n)]
    checked = min(n - 1, FIRST + CONTROL)
    some = round(checked * sum(behind) / max(1, n - 1))
    return {
        EXACT: Cost(n * n_texts, full + sum(behind)),
        CHECKED: Cost(2 + (1 + checked) * n_texts, screen.tokens + full + some),
        SCREENED: screen,
    }
