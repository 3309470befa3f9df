"""Each promise calibrated on one side of the labelled questions and tested on the other."""

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
from core.conformal.coverage import coverage_band, covered_by_chance, shortfall
from core.conformal.definitions import OF_CORRECT, OF_SETS
from core.conformal.mondrian import group_p_values, group_thresholds
from core.conformal.risk_control import Backoff, factuality_backoff
from core.conformal.sets import SetRule, calibrate_sets, rarity
from core.conformal.split import conformal_threshold, label_shortage, labels_needed
from core.conformal.splits import Splits, repeated_splits
from core.text.display import count

OTHERS = "the other groups"  # those that share a threshold


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """Scores of calibration cases, with whether each is correct (1, 0 or NaN) and its group (or None)."""

    scores: Floats
    correct: Floats
    kinds: Sequence[str | None]


@dataclass(frozen=True, eq=False)
class Coverage:
    """One promise: a new case scores at most a threshold with probability at least 1 − α.

    Attributes
    ----------
    name : str
        A definition of that name says what is promised.
    threshold : float
        +inf where nothing can be promised.
    reason : str
        Why it is infinite; empty where it is not.
    n_calibration, n_test, n_covered : int
        Labelled cases on either side, and those of the tested that the threshold covers.
    band : (float, float)
        Where the tested share lies in 95 of 100 calibrations; (nan, nan) where nothing is promised.
    alpha : float
        As asked.
    parts : tuple of (int, int)
        Labels and tested cases of each finite threshold: of one, or of every group.
    """

    name: str
    threshold: float
    reason: str
    n_calibration: int
    n_test: int
    n_covered: int
    band: tuple[float, float]
    alpha: float
    parts: tuple[tuple[int, int], ...]
    _scores: Floats = field(repr=False)
    _groups: Sequence[Floats] | None = field(repr=False, default=None)

    @cached_property
    def p_value(self) -> float:
        """How likely so few are covered if the promise holds; NaN where nothing is promised or tested."""
        return shortfall(self.n_covered, self.parts, self.alpha)

    @cached_property
    def splits(self) -> Splits | None:
        """The same over many random splits of the labelled cases; None where there are fewer than two."""
        return repeated_splits(self._scores, self._groups)


@dataclass(frozen=True, eq=False, slots=True)
class Sets:
    """Prediction sets over the sampled answers.

    ``mean_size`` is the mean number of meanings in the sets of the tested questions, NaN for none;
    ``n_without_correct`` counts those of them in which no sample is correct.
    """

    rule: SetRule
    mean_size: float
    n_without_correct: int


@dataclass(frozen=True, eq=False, slots=True)
class KeptClaims:
    """Claims dropped until the kept ones of an answer are all right with probability at least 1 − α.

    Counts are of the tested answers: ``n_right`` of ``n`` keep no wrong claim, ``n_kept`` of ``n_claims``
    claims are kept.
    """

    rule: Backoff
    n: int
    n_right: int
    n_claims: int
    n_kept: int


def coverage_of(
    name: str,
    calibrating: Floats,
    testing: Floats,
    alpha: float,
    pool: Floats | None = None,
    threshold: float | None = None,
    reason: str | None = None,
    groups: Sequence[Floats] | None = None,
) -> Coverage:
    """Calibrate a threshold on some scores and count how many others it covers.

    Parameters
    ----------
    name : str
        Of the promise.
    calibrating, testing : ndarray
        Scores; NaN is left out, +inf is never covered.
    alpha : float
        Between 0 and 1.
    pool : ndarray, shape (n,), optional
        Scores of all labelled cases, for random splits.
    threshold, reason : optional
        Where they are known already, and why the threshold is infinite.
    groups : sequence of n ndarray, optional
        Of `repeated_splits`.
    """
    n = int(np.count_nonzero(~np.isnan(calibrating)))
    n_test = int(np.count_nonzero(~np.isnan(testing)))
    found = conformal_threshold(calibrating, alpha) if threshold is None else threshold
    covered = int(np.count_nonzero((testing <= found) & (testing < math.inf)))
    why = _shortage(name, n, alpha) if reason is None else reason
    band = (math.nan, math.nan) if why or not n_test else coverage_band(n, alpha, n_test=n_test)
    none = np.full(1, math.nan)
    parts = () if why or not n_test else ((n, n_test),)
    scores = none if pool is None else pool
    return Coverage(name, found, why, n, n_test, covered, band, alpha, parts, scores, groups)


@dataclass(frozen=True, eq=False, slots=True)
class Verdicts:
    """P-values of answers among the correct ones of their group, where there are groups.

    ``p_values`` are NaN without a score or a finite threshold. ``groups`` is empty where one threshold is for
    all; else it has a row for each threshold: ``group, n_calibration, threshold, reason``. ``parts`` are
    ``(labels, answers)`` of each finite threshold.
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
    """Return the p-value of each score among the calibration scores of its own group.

    Groups with too few labels for a threshold of their own share one; where that leaves a single threshold,
    it is for all answers. An answer of a group without a label has no p-value where others have a threshold
    of their own.

    Parameters
    ----------
    calibrating : ndarray, shape (n,)
        Scores of the correct calibration answers; NaN is left out.
    kinds, asked : sequence of str or None
        Groups of the calibration answers and of the others.
    values : ndarray, shape (m,)
        Scores of the others.
    alpha : float
        Between 0 and 1.
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


def _shortage(name: str, n: int, alpha: float) -> str:
    """Return why there is no finite threshold; where only correct answers are labels, in these words."""
    short = label_shortage(n, alpha)
    if not short or name != OF_CORRECT:
        return short
    needed = labels_needed(alpha)
    return f"{count(n, 'correct answer')} in calibration, and α = {alpha:g} needs at least {needed:,}."


class Meanings(NamedTuple):
    """The meanings of the samples of a question, in rising order of their numbers.

    ``sizes`` are their samples, ``scores`` their `rarity`. A refusal is no answer, and in no set.
    """

    sizes: Ints
    scores: Floats
    is_answer: Bools
    correct: Bools


def meanings_of(numbers: ArrayLike, answered: ArrayLike, correct: ArrayLike | None = None) -> Meanings:
    """Return the meanings of samples.

    Parameters
    ----------
    numbers : array_like, shape (n,)
        The meaning of each sample; none is missing.
    answered, correct : array_like of bool, shape (n,)
        Whether each is an answer, and a correct one. A meaning is, where one of its samples is.

    Examples
    --------
    >>> found = meanings_of([1, 1, 2, 1], [True, True, False, True])
    >>> found.scores.tolist(), found.is_answer.tolist()
    ([0.25, 0.75], [True, False])
    """
    _, number = np.unique(np.asarray(numbers), return_inverse=True)
    sizes = np.bincount(number)
    right = np.zeros(number.size) if correct is None else np.asarray(correct, dtype=np.float64)
    any_answer = np.bincount(number, np.asarray(answered, dtype=np.float64), sizes.size) > 0
    return Meanings(sizes, rarity(sizes), any_answer, np.bincount(number, right, sizes.size) > 0)


def sets_of(
    frame: pd.DataFrame, meanings: pd.DataFrame, right: Floats, own: Bools, tested: Bools, alpha: float
) -> tuple[Sets, Coverage]:
    """Fill in the set of every question that does not calibrate, and whether it holds a correct answer.

    Parameters
    ----------
    frame : DataFrame
        The questions; ``set_size`` and ``set_covers`` are filled in.
    meanings : DataFrame
        One row per sample: ``query_id, status, meaning``.
    right : ndarray
        1 where the sample is correct, in the same order.
    own, tested : ndarray of bool, shape (n_questions,)
        Which questions calibrate, and which test.
    alpha : float
        Between 0 and 1.
    """
    scores: list[Floats] = [np.empty(0)] * len(frame)
    labels: list[Floats] = [np.empty(0)] * len(frame)
    sampled = np.zeros(len(frame), dtype=np.bool_)
    place = {query_id: i for i, query_id in enumerate(frame["query_id"])}
    groups = meanings["meaning"].astype("Float64").to_numpy(dtype=np.float64, na_value=math.nan)
    answered = (meanings["status"] == "answered").to_numpy()
    for query_id, rows in meanings.groupby("query_id", sort=False).indices.items():
        i = place[str(query_id)]
        rows = rows[~np.isnan(groups[rows])]
        if not rows.size:
            continue
        sampled[i] = True
        found = meanings_of(groups[rows], answered[rows], right[rows] == 1)
        scores[i], labels[i] = (
            found.scores[found.is_answer],
            found.correct[found.is_answer].astype(np.float64),
        )
    usable = [np.flatnonzero(role & sampled).tolist() for role in (own, tested)]
    rule = calibrate_sets([scores[i] for i in usable[0]], [labels[i] for i in usable[0]], alpha)
    best = np.full(len(frame), math.nan)
    for i in np.flatnonzero(sampled & (own | tested)).tolist():
        best[i] = min(scores[i][labels[i] == 1], default=math.inf)
    asked = sampled & ~own
    size = np.array(
        [
            np.count_nonzero(rule.holds(one)) if there else math.nan
            for one, there in zip(scores, asked, strict=True)
        ]
    )
    frame["set_size"] = size
    covers = (best <= rule.threshold) & (best < math.inf)
    shown = pd.Series(covers, index=frame.index).astype("boolean")
    frame["set_covers"] = shown.mask(~(sampled & tested))
    testing = usable[1]
    coverage = coverage_of(
        OF_SETS, best[usable[0]], best[testing], alpha, best, rule.threshold, rule.reason, scores
    )
    mean = float(size[testing].mean()) if testing else math.nan
    return Sets(rule, mean, int(np.isinf(best[testing]).sum())), coverage


def with_groups(
    one: Coverage, verdicts: Verdicts, right: Bools, alpha: float
) -> tuple[Coverage, pd.DataFrame]:
    """Return the coverage of the thresholds of all groups, and of each of them.

    ``right`` says which of the answers of ``verdicts`` are known to be correct. No row, and the coverage as
    it was, where one threshold is for all.
    """
    columns = ["group", "n_calibration", "threshold", "reason", "n_test", "n_covered", "low", "high"]
    covered = verdicts.p_values > alpha
    rows: list[tuple[Any, ...]] = []
    members = np.array(verdicts.members, dtype=object)
    for group, n, threshold, reason in verdicts.groups.itertuples(index=False):
        tested = right & (members == group)
        n_test, n_covered = int(tested.sum()), int((tested & covered).sum())
        known = n_test and threshold < math.inf
        low, high = coverage_band(n, alpha, n_test=n_test) if known else (math.nan, math.nan)
        rows.append((group, n, threshold, reason, n_test, n_covered, low, high))
    frame = pd.DataFrame(rows, columns=columns)
    if frame.empty:
        return one, frame
    finite = frame[frame["threshold"] < math.inf]
    parts = tuple(
        (int(n), int(m)) for n, m in zip(finite["n_calibration"], finite["n_test"], strict=True) if m
    )
    n_test = int(finite["n_test"].sum())
    band = (math.nan, math.nan)
    if n_test:
        total = covered_by_chance(parts, alpha).cumsum()
        low, high = np.searchsorted(total, [0.025, 0.975]) / n_test
        band = (float(low), float(high))
    changed = replace(
        one, threshold=math.nan, n_calibration=int(finite["n_calibration"].sum()), n_test=n_test,
        n_covered=int(finite["n_covered"].sum()), band=band, parts=parts,
    )  # fmt: skip
    return changed, frame


def kept_claims_of(
    claims: pd.DataFrame | None, frame: pd.DataFrame, own: Bools, tested: Bools, alpha: float
) -> KeptClaims | None:
    """Calibrate the back-off on the claims of some answers and count what it keeps of the tested ones.

    None where no claim has a label. Answers with a claim that has none are left out on both sides.
    """
    if claims is None or claims["correct"].isna().all():
        return None
    rows = claims.reset_index(drop=True).groupby("query_id", sort=False).indices
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
