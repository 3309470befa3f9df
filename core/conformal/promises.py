"""Each promise calibrated on one side of the labelled questions and tested on the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.arrays import Bools, Floats, Ints
from core.conformal.coverage import coverage_band
from core.conformal.definitions import OF_CORRECT, OF_SETS
from core.conformal.mondrian import group_thresholds
from core.conformal.risk_control import Backoff, factuality_backoff
from core.conformal.sets import SetRule, calibrate_sets, rarity
from core.conformal.split import conformal_threshold, label_shortage, labels_needed
from core.conformal.splits import Splits, repeated_splits
from core.text.display import count


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
    """

    name: str
    threshold: float
    reason: str
    n_calibration: int
    n_test: int
    n_covered: int
    band: tuple[float, float]
    _scores: Floats = field(repr=False)
    _groups: Sequence[Floats] | None = field(repr=False, default=None)

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
    return Coverage(name, found, why, n, n_test, covered, band, none if pool is None else pool, groups)


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


def groups_of(
    frame: pd.DataFrame, cases: Calibration, correct: Floats, tested: Bools, alpha: float
) -> pd.DataFrame:
    """Return a threshold of its own for each group, and the coverage of its tested correct answers."""
    columns = ["group", "n_calibration", "threshold", "reason", "n_test", "n_covered", "low", "high"]
    asked = [*frame["kind"].dropna().unique()]
    calibrating = [one if isinstance(one, str) else "" for one in cases.kinds]
    right = np.where(cases.correct == 1, cases.scores, math.nan)
    found = group_thresholds(right, calibrating, alpha, asked) if len(asked) > 1 else {}
    rows: list[tuple[Any, ...]] = []
    for group in asked if found else ():
        one = found[group]
        own = (frame["kind"] == group).to_numpy() & tested & (correct == 1)
        testing = frame["score"].to_numpy()[own]
        testing = testing[~np.isnan(testing)]
        n, finite = testing.size, one.threshold < math.inf
        low, high = coverage_band(one.n, alpha, n_test=n) if n and finite and one.n else (math.nan, math.nan)
        covered = int(np.count_nonzero(testing <= one.threshold))
        rows.append((group, one.n, one.threshold, one.reason, n, covered, low, high))
    return pd.DataFrame(rows, columns=columns)


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
