"""The gate against a baseline: whether fewer answers are correct than before, and its power."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import bdtrc

from core.errors import InputError
from core.report.compare import normal
from core.run import Run
from core.text.display import count, number, one_line, p_text, percent, shorten
from core.text.matching import correctness

ALPHA = 0.05  # one-sided
_POWER = 0.8
_DROP = 0.05  # whose power is told where no loss is allowed
_SHOWN = 20  # regressed questions in a text
_MOST = 1_000_000  # questions beyond which nobody is told how many would be needed


def outcomes(run: Run) -> pd.Series:
    """Return for every question whether it was answered correctly: 1, 0, or NaN where that is not known.

    As `core.text.matching.correctness`; besides, an abstention or an empty answer is 0 where there are
    reference answers: a run that answers nothing must not pass. A failed model call stays unknown.
    """
    queries = run.queries
    found = correctness(queries).astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    silent = queries["answer_status"].isin(["abstained", "empty"]).to_numpy(dtype=bool)
    asked = queries["reference_answers"].map(lambda given: isinstance(given, list) and bool(given))
    found[np.isnan(found) & silent & asked.to_numpy(dtype=bool)] = 0.0
    return pd.Series(found, index=queries["query_id"])


def loss_p_value(n_broken: int, n_fixed: int) -> float:
    """Return the one-sided p-value that no more answers broke than were fixed (exact McNemar 1947).

    P(X ≥ n_broken) for X of n_broken + n_fixed trials with probability 1/2.

    >>> loss_p_value(5, 0), loss_p_value(0, 0)
    (0.03125, 1.0)
    """
    return float(bdtrc(n_broken - 1, n_broken + n_fixed, 0.5))


def power(n: int, drop: float, changed: float) -> float:
    """Return how often a true drop is significant (`ALPHA`) with n questions.

    ``changed`` is the share of questions whose outcome differs; at least ``drop`` of them must. Exact and
    unconditional (Duffy 1984): the number of changed questions is binomial, and so is that of the broken ones
    among these, with probability (1 + drop / changed) / 2.
    """
    from scipy.stats import binom

    changed = min(1.0, max(changed, drop))
    if not n or not drop:
        return math.nan
    spread = 8 * math.sqrt(n * changed * (1 - changed)) + 2
    m = np.arange(max(0, math.floor(n * changed - spread)), min(n, math.ceil(n * changed + spread)) + 1)
    least = binom.isf(ALPHA, m, 0.5) + 1  # the smallest number of broken ones that is significant
    seen = binom.sf(least - 1, m, (1 + drop / changed) / 2)
    return float(np.sum(binom.pmf(m, n, changed) * seen))


def questions_needed(drop: float, changed: float) -> int | None:
    """Return from about how many questions on a drop is seen in 80 % of cases; None beyond a million.

    The normal approximation (Connor 1987) brackets it, `power` decides.
    """
    changed = min(1.0, max(changed, drop))
    rough = (1.645 * math.sqrt(changed) + 0.842 * math.sqrt(max(0.0, changed - drop**2))) ** 2 / drop**2
    if rough > _MOST:
        return None
    low, high = 1, 2 * math.ceil(rough) + 20
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle, drop, changed) >= _POWER else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class Regression:
    """A run against its baseline, over the ``n`` questions whose outcome is known in both.

    ``broken`` has a row per question that was correct and no longer is: ``query_id, question, before, now``
    (the answers); ``n_fixed`` became correct. ``n_shared`` questions have the same id and text, of ``of`` in
    the run.
    """

    broken: pd.DataFrame
    n_fixed: int
    n_correct: int
    n: int
    n_shared: int
    of: int
    max_loss: float

    @property
    def loss(self) -> float:
        """Share of the questions that are lost on balance; negative where more are correct than before."""
        return (len(self.broken) - self.n_fixed) / self.n

    @property
    def p_value(self) -> float:
        """`loss_p_value`."""
        return loss_p_value(len(self.broken), self.n_fixed)

    @property
    def passed(self) -> bool:
        """Whether the loss is not significant, or not larger than allowed."""
        return self.p_value > ALPHA or self.loss <= self.max_loss + 1e-12

    @property
    def drop(self) -> float:
        """The true drop whose power is told: what is allowed, or 5 points where nothing is."""
        return self.max_loss or _DROP

    @property
    def changed(self) -> float:
        """Share of the questions whose outcome changed."""
        return (len(self.broken) + self.n_fixed) / self.n

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, why it passes or fails, and what could have been seen; for people."""
        before = self.n_correct + len(self.broken) - self.n_fixed
        facts = (
            f"{self.n_correct:,} of {count(self.n, 'question')} correct, {before:,} in the baseline: "
            f"{len(self.broken):,} no longer correct, {self.n_fixed:,} newly correct "
            f"(exact McNemar test, one-sided, {p_text(self.p_value)})."
        )
        return tuple(filter(None, (self._outcome, facts, self._left_out, self._power)))

    @property
    def _outcome(self) -> str:
        points, allowed = _points(self.loss), f"{_points(self.max_loss)} allowed"
        if not self.passed:
            return f"Failed: the loss of {points} is significant and larger than the {allowed}."
        if self.loss <= 0:
            return f"Passed: no loss, {allowed}."
        if self.loss <= self.max_loss + 1e-12:
            return f"Passed: the loss of {points} is not larger than the {allowed}."
        return (
            f"Passed: the loss of {points} is larger than the {allowed}, but not significant: chance alone "
            "could explain it."
        )

    @property
    def _left_out(self) -> str:
        parts = []
        if self.of > self.n_shared:
            parts.append(f"{count(self.of - self.n_shared, 'question')} of this run not in the baseline")
        if self.n_shared > self.n:
            parts.append(
                f"{count(self.n_shared - self.n, 'shared question')} without a known outcome in both (no "
                "reference answer or label, or a failed model call)"
            )
        return f"Left out: {'; '.join(parts)}." if parts else ""

    @property
    def _power(self) -> str:
        seen, needed = power(self.n, self.drop, self.changed), questions_needed(self.drop, self.changed)
        said = (
            f"With {count(self.n, 'question')} a true drop of {_points(self.drop)} is significant in "
            f"{percent(seen)} of cases"
        )
        if seen >= _POWER:
            return f"{said}."
        rest = "more than a million" if needed is None else f"about {_rounded(needed):,}"
        return f"{said}; {rest} would be needed for {percent(_POWER)}."

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain JSON."""
        return {
            "passed": self.passed, "n": self.n, "n_shared": self.n_shared, "n_correct": self.n_correct,
            "n_broken": len(self.broken), "n_fixed": self.n_fixed, "loss": self.loss,
            "max_loss": self.max_loss, "p_value": self.p_value, "drop": self.drop,
            "power": power(self.n, self.drop, self.changed),
            "n_needed": questions_needed(self.drop, self.changed), "sentences": list(self.sentences),
            "broken": self.broken.to_dict("records"),
        }  # fmt: skip

    def to_text(self) -> str:
        """Return the outcome in lines for a terminal, with the first questions that broke."""
        lines = [self.sentences[0], *(f"  {one}" for one in self.sentences[1:])]
        if len(self.broken):
            lines.append("No longer correct:")
        for row in self.broken.head(_SHOWN).itertuples():
            lines += [f"  {row.query_id}: {shorten(row.question)}"]
            lines += [f"    baseline: {shorten(row.before)}", f"    now:      {shorten(row.now)}"]
        if len(self.broken) > _SHOWN:
            lines.append(f"  and {len(self.broken) - _SHOWN:,} more")
        return "\n".join(map(one_line, lines))


def regression(run: Run, baseline: Run, max_loss: float) -> Regression:
    """Compare a run with its baseline, question by question.

    A question is the same under the same id and with the same text. InputError where ``max_loss`` is no
    share, no question is shared, or no shared question has a known outcome in both.
    """
    if not 0 <= max_loss < 1:
        raise InputError(
            f"--max-loss must be a share from 0 to below 1, such as 0.05 for 5 points, got {max_loss:g}."
        )
    now, before = (_known(one) for one in (run, baseline))
    shared = now.merge(before, on=["query_id", "text"], suffixes=("", "_before"))
    if shared.empty:
        raise InputError(
            "The run has no question in common with the baseline (same id and same text): compare runs of "
            "the same data set."
        )
    known = shared[shared["outcome"].notna() & shared["outcome_before"].notna()]
    if known.empty:
        raise InputError(
            f"None of the {count(len(shared), 'shared question')} has a known outcome in both runs: add "
            "reference answers or labels to the data set."
        )
    broken = known[(known["outcome_before"] == 1) & (known["outcome"] == 0)]
    fixed = (known["outcome_before"] == 0) & (known["outcome"] == 1)
    listed = broken[["query_id", "question", "answer_before", "answer"]]
    return Regression(
        listed.set_axis(["query_id", "question", "before", "now"], axis=1).reset_index(drop=True),
        int(fixed.sum()), int(known["outcome"].sum()), len(known), len(shared), len(now), max_loss,
    )  # fmt: skip


def _known(run: Run) -> pd.DataFrame:
    found = run.queries[["query_id", "question", "answer"]].copy()
    found["text"] = normal(found["question"])
    return found.assign(answer=found["answer"].fillna(""), outcome=outcomes(run).to_numpy())


def _points(share: float) -> str:
    value = round(100 * share, 1)
    said = number(value, "{:.0f}" if value == int(value) else "{:.1f}")
    return f"{said} {'point' if abs(value) == 1 else 'points'}"


def _rounded(n: int) -> int:
    """Return a number of questions with two digits that count, rounded up."""
    unit = 10 ** max(0, len(str(n)) - 2)
    return -(-n // unit) * unit
