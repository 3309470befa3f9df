"""Each promise calibrated on one side of the labelled questions and tested on the other, once and often."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.arrays import Bools, Floats, Ints
from core.conformal.definitions import OF_CORRECT, OF_SETS
from core.conformal.sets import Backoff, SetRule, calibrate_sets, factuality_backoff, rarity
from core.conformal.split import (
    column,
    conformal_threshold,
    coverage_band,
    covered_by_chance,
    group_p_values,
    group_thresholds,
    label_shortage,
    labels_needed,
    threshold_rank,
)

OTHERS = "the other groups"  # those that share a threshold
N_SPLITS = 200
MOST = 1_000  # cases that are split; of more, some are drawn
ALPHAS = tuple(round(step / 50, 2) for step in range(1, 26))
_UNKNOWN = (math.nan, math.nan)


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """Scores of calibration cases, with whether each is correct (1, 0 or NaN) and its group (or None)."""

    scores: Floats
    correct: Floats
    kinds: Sequence[str | None]


@dataclass(frozen=True, eq=False, slots=True)
class Splits:
    """Half of the labels calibrates, the other half tests, many times: (n_splits, n_alphas).

    ``coverage`` is the share of the tested half that is covered, ``finite`` whether the threshold is,
    ``size`` the mean size of the sets in the tested half, ``largest`` that with an infinite threshold.
    """

    n_calibration: int
    n_test: int
    alphas: tuple[float, ...]
    coverage: Floats
    finite: Bools
    size: Floats | None = None
    largest: float = math.nan

    def to_frame(self) -> pd.DataFrame:
        """Return one row per error rate.

        ``low, high`` is the exact band (95 %) for scores without ties; ``finite`` the share of splits with a
        finite threshold; ``mean, mean_low, mean_high`` the mean coverage and the middle 95 % of the splits,
        and so ``size`` (missing without sets).
        """
        bands = [coverage_band(self.n_calibration, alpha, n_test=self.n_test) for alpha in self.alphas]
        low, high = np.array(bands, dtype=np.float64).reshape(-1, 2).T
        frame = pd.DataFrame({"alpha": self.alphas, "low": low, "high": high})
        frame["finite"] = self.finite.mean(axis=0)
        sizes = np.full(self.coverage.shape, math.nan) if self.size is None else self.size
        for name, found in (("mean", self.coverage), ("size", sizes)):
            frame[name] = found.mean(axis=0)
            frame[f"{name}_low"], frame[f"{name}_high"] = np.quantile(found, [0.025, 0.975], axis=0)
        return frame


def repeated_splits(
    scores: ArrayLike,
    groups: Sequence[ArrayLike] | None = None,
    alphas: Sequence[float] = ALPHAS,
    n_splits: int = N_SPLITS,
    seed: int = 0,
) -> Splits | None:
    """Calibrate on a random half of the labelled cases and test on the other; None for fewer than two cases.

    Both halves are exchangeable, so without ties the number covered is exactly beta-binomial: a coverage
    within the band shows that the threshold is right, not that new questions will be like these
    (`core.conformal.drift`). Of ``scores`` (n,) +inf is never covered and NaN is left out. ``groups`` has the
    scores of all groups of samples of each case: the size of a set is the number that score at most the
    threshold. Of more than 1,000 cases as many are drawn once. Cost: n_splits · n · the number of different
    thresholds.

    >>> found = repeated_splits(range(40), alphas=[0.25], n_splits=50)
    >>> found.n_calibration, found.n_test, bool(0.7 < found.coverage.mean() < 0.85)
    (20, 20, True)
    """
    values = column("scores", scores)
    known = np.flatnonzero(~np.isnan(values))
    rng = np.random.default_rng(seed)
    if known.size > MOST:
        known = rng.choice(known, MOST, replace=False)
    if known.size < 2:
        return None
    n, half = known.size, known.size // 2
    order = rng.permuted(np.tile(np.arange(n), (n_splits, 1)), axis=1)
    own = values[known]
    calibrating = np.sort(own[order[:, :half]], axis=1)
    tested = np.zeros((n_splits, n))
    np.put_along_axis(tested, order[:, half:], 1, axis=1)
    # Whatever the split, a threshold is one of the scores, or infinite.
    levels = np.unique([*own, math.inf])
    ranks = [threshold_rank(half, alpha) for alpha in alphas]
    found = [calibrating[:, k - 1] if k <= half else np.full(n_splits, math.inf) for k in ranks]
    thresholds = np.column_stack(found)
    places = np.searchsorted(levels, thresholds)

    def at_thresholds(of_case: Floats) -> Floats:
        return np.take_along_axis(tested @ of_case / (n - half), places, axis=1)

    covered = (own[:, None] <= levels) & (own < math.inf)[:, None]
    coverage = at_thresholds(covered.astype(np.float64))
    size, largest = None, math.nan
    if groups is not None:
        sizes = np.array([np.searchsorted(np.sort(groups[i]), levels, "right") for i in known.tolist()])
        size, largest = at_thresholds(sizes), float(sizes[:, -1].mean())
    return Splits(half, n - half, tuple(alphas), coverage, thresholds < math.inf, size, largest)


@dataclass(frozen=True, eq=False)
class Coverage:
    """One promise: a new case scores at most a threshold with probability at least 1 − α.

    ``name`` is that of a definition. ``threshold`` is +inf where nothing can be promised, with a ``reason``,
    and NaN where groups have one each. ``band`` is where the tested share lies in 95 of 100 calibrations,
    (nan, nan) without a promise; ``parts`` the labels and the tested cases of each finite threshold.
    """

    name: str
    threshold: float
    reason: str
    n_calibration: int
    n_test: int
    n_covered: int
    band: tuple[float, float]
    parts: tuple[tuple[int, int], ...]
    _scores: Floats = field(repr=False)
    _groups: Sequence[Floats] | None = field(repr=False, default=None)

    @cached_property
    def splits(self) -> Splits | None:
        """The same over many random splits of the labelled cases; None where there are fewer than two."""
        return repeated_splits(self._scores, self._groups)


def coverage_of(
    name: str,
    calibrating: Floats,
    testing: Floats,
    alpha: float,
    pool: Floats | None = None,
    rule: SetRule | None = None,
    groups: Sequence[Floats] | None = None,
) -> Coverage:
    """Calibrate a threshold on some scores and count how many others it covers.

    NaN is left out, +inf is never covered. ``pool`` has the scores of all labelled cases, for random splits,
    and ``groups`` the sets of each (`repeated_splits`); ``rule`` is the threshold where it is known already.
    """
    n = int(np.count_nonzero(~np.isnan(calibrating)))
    n_test = int(np.count_nonzero(~np.isnan(testing)))
    if rule is None:
        found = conformal_threshold(calibrating, alpha)
        why = label_shortage(n, alpha, "correct answer" if name == OF_CORRECT else "label")
    else:
        found, why = rule.threshold, rule.reason
    covered = int(np.count_nonzero((testing <= found) & (testing < math.inf)))
    tested = n_test and not why
    band = coverage_band(n, alpha, n_test=n_test) if tested else _UNKNOWN
    scores = np.full(1, math.nan) if pool is None else pool
    parts = ((n, n_test),) if tested else ()
    return Coverage(name, found, why, n, n_test, covered, band, parts, scores, groups)


@dataclass(frozen=True, eq=False, slots=True)
class Verdicts:
    """P-values of answers among the correct ones of their group (``members``, where there are several).

    NaN without a score or a finite threshold; ``parts`` are labels and answers of each such threshold.
    """

    p_values: Floats
    groups: pd.DataFrame
    members: Sequence[str]
    parts: tuple[tuple[int, int], ...]


def verdicts_of(
    calibrating: Floats,
    kinds: Sequence[str | None],
    values: Floats,
    asked: Sequence[str | None],
    alpha: float,
) -> Verdicts:
    """Return the p-value of each score (``values``, of the groups ``asked``) among those of its own group.

    ``calibrating`` is NaN for answers that are not correct. Groups with too few labels for a threshold of
    their own share one; where that leaves a single one, it is for all answers, else an answer of a group
    without a label has no p-value.
    """
    names = [one if isinstance(one, str) else "" for one in asked]
    own = np.array([one if isinstance(one, str) else "" for one in kinds], dtype=object)
    sizes = pd.Series(own[~np.isnan(calibrating)], dtype=object).value_counts(sort=False)
    few = [one for one, n in sizes.items() if n < labels_needed(alpha)]
    # One that would share with none keeps its name.
    shared = {str(one): OTHERS if one in few and len(few) > 1 else str(one) for one in sizes.index}
    shared = shared if any(names) else {}
    several = (
        len(few) < len(shared) and len({*shared.values(), *(one for one in names if one not in shared)}) > 1
    )
    of_case = [shared.get(one, one) for one in own] if several else [""] * len(own)
    members = [shared.get(one, one) for one in names] if several else [""] * len(names)
    # In the order of the run, the shared one last.
    order = sorted({**dict.fromkeys(of_case), **dict.fromkeys(members)}, key=lambda one: one == OTHERS)
    found = group_thresholds(calibrating, of_case, alpha, order)
    place = group_p_values(calibrating, of_case, values, members)
    finite = np.array([found[one].threshold < math.inf for one in members], dtype=np.bool_)
    judged = pd.Series(members, dtype=object)[finite & ~np.isnan(values)].value_counts(sort=False)
    parts = tuple((found[one].n, int(n)) for one, n in judged.items())
    rows = [(one, *found[one]) for one in order] if several else []
    groups = pd.DataFrame(rows, columns=["group", "n_calibration", "threshold", "reason"])
    return Verdicts(np.where(finite, place, math.nan), groups, members, parts)


def with_groups(
    one: Coverage, verdicts: Verdicts, right: Bools, alpha: float
) -> tuple[Coverage, pd.DataFrame]:
    """Return the coverage of all groups' thresholds, and of each, given which answers are correct."""
    covered, members = verdicts.p_values > alpha, np.array(verdicts.members, dtype=object)
    rows: list[tuple[Any, ...]] = []
    for group, n, threshold, *_ in verdicts.groups.itertuples(index=False):
        tested = right & (members == group)
        n_test = int(tested.sum())
        known = n_test and threshold < math.inf
        band = coverage_band(n, alpha, n_test=n_test) if known else _UNKNOWN
        rows.append((n_test, int((tested & covered).sum()), *band))
    counts = pd.DataFrame(rows, columns=["n_test", "n_covered", "low", "high"])
    frame = verdicts.groups.join(counts)
    if frame.empty:
        return one, frame
    finite = frame[frame["threshold"] < math.inf]
    n_calibration, n_test, n_covered = finite[["n_calibration", "n_test", "n_covered"]].sum().tolist()
    pairs = finite.loc[finite["n_test"] > 0, ["n_calibration", "n_test"]].astype(int)
    parts = tuple((n, m) for n, m in pairs.to_numpy().tolist())
    band = _UNKNOWN
    if n_test:
        total = covered_by_chance(parts, alpha).cumsum()
        low, high = (np.searchsorted(total, [0.025, 0.975]) / n_test).tolist()
        band = (low, high)
    changed = replace(
        one, threshold=math.nan, n_calibration=int(n_calibration), n_test=int(n_test),
        n_covered=int(n_covered), band=band, parts=parts,
    )  # fmt: skip
    return changed, frame


class Meanings(NamedTuple):
    """Meanings of a question's samples: their samples and `rarity`. A refusal is no answer, in no set."""

    sizes: Ints
    scores: Floats
    is_answer: Bools
    correct: Bools


def meanings_of(numbers: ArrayLike, answered: ArrayLike, correct: ArrayLike | None = None) -> Meanings:
    """Return the meanings of samples; one is an answer, or correct, where one of its samples is.

    >>> found = meanings_of([1, 1, 2, 1], [True, True, False, True])
    >>> found.scores.tolist(), found.is_answer.tolist()
    ([0.25, 0.75], [True, False])
    """
    _, number = np.unique(np.asarray(numbers), return_inverse=True)
    sizes = np.bincount(number)
    right = np.zeros(number.size) if correct is None else np.asarray(correct, dtype=np.float64)
    any_answer = np.bincount(number, np.asarray(answered, dtype=np.float64), sizes.size) > 0
    return Meanings(sizes, rarity(sizes), any_answer, np.bincount(number, right, sizes.size) > 0)


@dataclass(frozen=True, eq=False, slots=True)
class Sets:
    """Prediction sets over the sampled answers; mean (NaN of none) and count are of tested questions."""

    rule: SetRule
    mean_size: float
    n_without_correct: int


def sets_of(
    frame: pd.DataFrame, meanings: pd.DataFrame, right: Floats, own: Bools, tested: Bools, alpha: float
) -> tuple[Sets, Coverage]:
    """Calibrate the sets, and fill in those of the questions that do not calibrate.

    ``meanings`` has one row per sample, ``query_id, status, meaning``; ``right`` is 1 where it is correct.
    """
    nothing = Meanings(np.empty(0, dtype=np.int64), np.empty(0), *[np.empty(0, dtype=np.bool_)] * 2)
    told = [nothing] * len(frame)
    place = {query_id: i for i, query_id in enumerate(frame["query_id"])}
    groups = meanings["meaning"].astype("Float64").to_numpy(dtype=np.float64, na_value=math.nan)
    answered = (meanings["status"] == "answered").to_numpy()
    for query_id, rows in meanings.groupby("query_id", sort=False).indices.items():
        rows = rows[~np.isnan(groups[rows])]
        if rows.size:
            told[place[str(query_id)]] = meanings_of(groups[rows], answered[rows], right[rows] == 1)
    sampled = np.array([one.sizes.size > 0 for one in told], dtype=np.bool_)
    scores = [one.scores[one.is_answer] for one in told]
    labels = [one.correct[one.is_answer].astype(np.float64) for one in told]
    calibrating, testing = (np.flatnonzero(role & sampled).tolist() for role in (own, tested))
    rule = calibrate_sets([scores[i] for i in calibrating], [labels[i] for i in calibrating], alpha)
    best = np.full(len(frame), math.nan)
    for i in calibrating + testing:
        best[i] = min(scores[i][labels[i] == 1], default=math.inf)
    size = np.array([np.count_nonzero(rule.holds(one)) for one in scores], dtype=np.float64)
    frame["set_size"] = size = np.where(sampled & ~own, size, math.nan)
    covers = (best <= rule.threshold) & (best < math.inf)
    frame["set_covers"] = pd.Series(covers, frame.index).astype("boolean").mask(~(sampled & tested))
    coverage = coverage_of(OF_SETS, best[calibrating], best[testing], alpha, best, rule, scores)
    mean = float(size[testing].mean()) if testing else math.nan
    return Sets(rule, mean, int(np.isinf(best[testing]).sum())), coverage


@dataclass(frozen=True, eq=False, slots=True)
class KeptClaims:
    """Of ``n`` tested answers ``n_right`` keep no wrong claim, of ``n_claims`` claims ``n_kept`` are kept."""

    rule: Backoff
    n: int
    n_right: int
    n_claims: int
    n_kept: int


def kept_claims_of(
    claims: pd.DataFrame | None, frame: pd.DataFrame, own: Bools, tested: Bools, alpha: float
) -> KeptClaims | None:
    """Calibrate the back-off and count what it keeps of tested answers; None where no claim has a label."""
    if claims is None or claims["correct"].isna().all():
        return None
    rows = claims.groupby("query_id", sort=False).indices
    score, right = (claims[name].to_numpy(dtype=np.float64) for name in ("support_maximum", "correct"))
    halves = [
        [rows[query_id] for query_id in frame.loc[role, "query_id"] if query_id in rows]
        for role in (own, tested)
    ]
    rule = factuality_backoff([score[one] for one in halves[0]], [right[one] for one in halves[0]], alpha)
    judged = [one for one in halves[1] if not np.isnan(right[one]).any()]
    kept = [rule.kept(score[one]) for one in judged]
    return KeptClaims(
        rule,
        len(judged),
        sum(bool((right[one][keep] == 1).all()) for one, keep in zip(judged, kept, strict=True)),
        sum(one.size for one in judged),
        sum(int(keep.sum()) for keep in kept),
    )
