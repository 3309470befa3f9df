"""The context test: whether each estimator moves the right way when the passages are changed.

Soudani et al. 2025 (ACL Findings, arXiv 2505.07459): text added to the prompt lowers what estimators report,
also where it is irrelevant. So each is tested on the model and the questions it is to be used for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.run import Run
from core.stats import cases_needed, holm, known_pairs, paired_interval, paired_permutation_test
from core.uncertainty.conditions import ADDED, GREEDY, UNCHANGED, WITHOUT
from core.uncertainty.definitions import COMPARED, CONTEXT_MARGIN, FAILS, PASSES, UNTOLD
from core.uncertainty.estimators import ESTIMATORS, TEXT_ONLY, EstimatorScores, score
from core.uncertainty.samples import Samples

CHANGED = (WITHOUT, ADDED)
_TESTED = tuple(name for name in COMPARED if name in TEXT_ONLY)
_ALPHA = 0.05


class Change(NamedTuple):
    """How one estimator moves under one condition, question by question.

    ``condition``: what was done to the passages; ``name`` of the estimator, which is defined before and after
    in ``n`` questions; of these, ``n_rising`` have more uncertainty after the change, ``n_falling`` less.
    ``mean`` change of uncertainty (whatever the estimator counts) with its 95 % interval, of it alone.
    ``p_value`` that the mean is 0, by exchanging within pairs, adjusted for all estimators tested with it.
    ``outcome``: see `judged`. ``needed``: about how many questions would tell, where it cannot be told
    (`core.stats.cases_needed`).
    """

    condition: str
    name: str
    n: int
    n_rising: int
    n_falling: int
    n_same: int
    mean: float
    low: float
    high: float
    p_value: float
    outcome: str
    needed: int | None


def changes(condition: str, before: Mapping[str, ArrayLike], after: Mapping[str, ArrayLike]) -> list[Change]:
    """Test how estimators move, and judge each; p-values are adjusted for all of them (Holm).

    ``condition``, what was done to the passages, decides which way is right, see `judged`. ``before`` and
    ``after``: uncertainty of the same questions by each estimator, (n,); higher = more uncertain, NaN =
    undefined.

    >>> calm = [0.0, 0.1, 0.0, 0.2, 0.1, 0.0, 0.1]
    >>> found = changes("without_support", {"a": calm}, {"a": [0.5, 0.9, 0.4, 0.9, 0.8, 0.6, 0.5]})[0]
    >>> found.n_rising, round(found.mean, 2), found.p_value, found.outcome
    (7, 0.59, 0.015625, 'Passes')
    """
    pairs = {name: _both_known(before[name], after[name]) for name in before}
    margins = {name: CONTEXT_MARGIN * _spread(first) for name, (first, _) in pairs.items()}
    p_moved = holm([paired_permutation_test(*pair) for pair in pairs.values()])
    p_held = holm(
        [
            paired_permutation_test(first, second + margins[name]) if margins[name] else np.nan
            for name, (first, second) in pairs.items()
        ]
    )
    # With fewer questions the adjusted p-value is above 5 % even where all of them move alike: 2 of 2ⁿ ways.
    least = 1 + math.ceil(math.log2(max(1, len(pairs)) / _ALPHA))
    found = []
    for (name, (first, second)), moved, held in zip(pairs.items(), p_moved, p_held, strict=True):
        change = second - first
        mean = float(change.mean()) if change.size else np.nan
        holds = bool(held <= _ALPHA and mean > -margins[name])
        outcome = judged(condition, mean, float(moved), holds)
        wanted = [cases_needed(change)]
        if condition == ADDED and margins[name]:
            wanted.append(cases_needed(change + margins[name]))
        needed = min((max(n, least) for n in wanted if n), default=None) if outcome == UNTOLD else None
        rising, falling = int((change > 0).sum()), int((change < 0).sum())
        low, high = paired_interval(first, second)
        found.append(
            Change(
                condition, name, change.size, rising, falling, change.size - rising - falling, mean, low,
                high, float(moved), outcome, needed,
            )
        )  # fmt: skip
    return found


def judged(condition: str, mean: float, p_value: float, holds: bool) -> str:
    """Judge a mean change of uncertainty.

    Without the support an estimator passes where uncertainty clearly rises. With unrelated passages added it
    passes where uncertainty clearly rises, or ``holds``: a fall by more than `CONTEXT_MARGIN` of the standard
    deviation between questions is excluded. Either way it fails where uncertainty clearly falls. Clearly: the
    adjusted p-value is at most 5 %.
    """
    clear = p_value <= _ALPHA
    if clear and mean < 0:
        return FAILS
    return PASSES if clear or (condition == ADDED and holds) else UNTOLD


@dataclass(frozen=True)
class ContextTest:
    """The context test of a run.

    ``query_ids`` were tested. ``before`` and ``after``, by condition, of each: the answers to the unchanged
    prompt and to the changed one; both begin with the answer at temperature 0, and go on with the samples
    that were drawn alike. ``passed_over``: questions that could not be tested, by reason; those before the
    last one tested.
    """

    query_ids: tuple[str, ...]
    before: Mapping[str, tuple[Samples, ...]]
    after: Mapping[str, tuple[Samples, ...]]
    passed_over: Mapping[str, int]

    @cached_property
    def compared(self) -> pd.DataFrame:
        """One row per condition and compared estimator: as `Change`, and ``title, is_baseline``."""
        return self._frame(_TESTED)

    @cached_property
    def others(self) -> pd.DataFrame:
        """The same of the other estimators that read nothing but texts, adjusted among themselves."""
        return self._frame([name for name in TEXT_ONLY if name not in _TESTED])

    def to_frame(self) -> pd.DataFrame:
        """Return the compared estimators and the others, by condition."""
        both = pd.concat([self.compared, self.others]) if self.query_ids else self.compared
        return both.sort_values(
            "condition", key=lambda of: of.map(CHANGED.index), kind="stable", ignore_index=True
        )

    def change(self, condition: str, name: str) -> Floats:
        """Return the change of uncertainty of each question; NaN where it is undefined."""
        before, after = self._scores(condition, [name])
        return after[name].uncertainty - before[name].uncertainty

    def declined(self, condition: str) -> int:
        """Return in how many questions every answer under a condition is a refusal or empty."""
        return sum(
            bool(one.sampled) and "answered" not in one.sampled_status for one in self.after[condition]
        )

    def lost(self, condition: str) -> int:
        """Return in how many questions fewer than two samples were answered under a condition."""
        return sum(len(one.sampled) < 2 for one in self.after[condition])

    def _frame(self, names: Sequence[str]) -> pd.DataFrame:
        rows: list[Change] = []
        for condition in CHANGED if self.query_ids else ():
            before, after = self._scores(condition, names)
            rows += changes(
                condition,
                {name: one.uncertainty for name, one in before.items()},
                {name: one.uncertainty for name, one in after.items()},
            )
        frame = pd.DataFrame(rows, columns=[*Change._fields]).astype({"needed": "Int64"})
        return frame.assign(
            title=[ESTIMATORS[name].title for name in frame["name"]],
            is_baseline=[ESTIMATORS[name].is_baseline for name in frame["name"]],
        )

    def _scores(
        self, condition: str, names: Sequence[str]
    ) -> tuple[Mapping[str, EstimatorScores], Mapping[str, EstimatorScores]]:
        return score(self.before[condition], names), score(self.after[condition], names)


def context_test(run: Run) -> ContextTest:
    """Return the context test of a run; without questions where it was not run. No model is called."""
    rows = run["context_samples"].dropna(subset="answer")
    given = _answers(rows, ["query_id", "condition"])
    tested = run.queries[run.queries["query_id"].isin(rows["query_id"])]
    samples = run["samples"].dropna(subset="answer")
    drawn = _answers(samples[samples["query_id"].isin(tested["query_id"])], "query_id")
    before: dict[str, tuple[Samples, ...]] = {}
    after: dict[str, tuple[Samples, ...]] = {}
    for condition in CHANGED:
        pairs = [
            _paired(
                {**drawn.get(query_id, {}), GREEDY: given.get((query_id, UNCHANGED), {}).get(GREEDY, "")},
                given.get((query_id, condition), {}),
                question,
            )
            for query_id, question in zip(tested["query_id"], tested["question"], strict=True)
        ]
        before[condition] = tuple(first for first, _ in pairs)
        after[condition] = tuple(second for _, second in pairs)
    facts = run.manifest.get("steps", {}).get("uncertainty", {})
    return ContextTest(
        tuple(tested["query_id"]), before, after, Counter(facts.get("context_passed_over") or {})
    )


def _answers(rows: pd.DataFrame, by: str | list[str]) -> dict[Any, dict[str, str]]:
    return {
        key: dict(zip(own["sample_id"], own["answer"], strict=True))
        for key, own in rows.groupby(by, sort=False)
    }


def _paired(first: Mapping[str, str], second: Mapping[str, str], question: str) -> tuple[Samples, Samples]:
    """Return the answers to two prompts, of the samples that both have: estimators grow with their number."""
    ids = [name for name in first if name in second and name != GREEDY]

    def of(given: Mapping[str, str]) -> Samples:
        return Samples(
            [given.get(GREEDY, ""), *(given[name] for name in ids)], baseline=True, question=question
        )

    return of(first), of(second)


def _both_known(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    a, b = known_pairs(first, second)
    # What differs by rounding alone is the same.
    return a, np.where(np.isclose(a, b, rtol=0, atol=1e-9), a, b)


def _spread(values: Floats) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else 0.0
