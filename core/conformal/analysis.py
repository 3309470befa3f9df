"""What calibration on some labelled questions promises of the others, and whether the promise is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from core.arrays import Bools, Floats
from core.conformal.coverage import coverage_band
from core.conformal.definitions import (
    CALIBRATION,
    DELTA,
    DRIFT_LEVEL,
    FLAGGED,
    IN_LINE,
    NEW,
    OF_CORRECT,
    OF_DISTANCE,
    OF_SETS,
    TEST,
    UNDEFINED,
)
from core.conformal.drift import Drift, drift_martingale, online_p_values
from core.conformal.mondrian import group_thresholds
from core.conformal.risk_control import Backoff, factuality_backoff
from core.conformal.scores import confidence, distance, nonconformity
from core.conformal.selective import Certificate, certify_threshold
from core.conformal.sets import SetRule, calibrate_sets, rarity
from core.conformal.split import conformal_threshold, label_shortage, p_values
from core.conformal.splits import Splits, repeated_splits
from core.run import Run
from core.signals import Signal
from core.text.matching import is_correct

GROUPED_BY = ("kind", "language")
SEED = 0


@dataclass(frozen=True, eq=False)
class Coverage:
    """One promise: a new case scores at most a threshold with probability at least 1 − α.

    Attributes
    ----------
    name : str
        `OF_DISTANCE`, `OF_CORRECT` or `OF_SETS`; a definition says what is promised.
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


@dataclass(frozen=True, eq=False)
class ConformalAnalysis:
    """The calibration of a run, and what follows for its other questions.

    Attributes
    ----------
    run : Run
        The run.
    queries : DataFrame
        One row per question: ``query_id, question, kind, role`` (`CALIBRATION`, `TEST`: its answer is known;
        `NEW`), ``score`` (high = strange), ``confidence``, ``correct``, ``distance`` from the nearest
        reference answer, ``p_value`` among the correct answers of the calibration, ``verdict``, ``answered``
        (whether the certified threshold lets it through), ``set_size, set_covers``, ``drift_p``, ``reason``.
        A question that calibrates has no p-value: it is among those that it would be compared with.
    alpha, delta : float
        As set; δ of the certificate.
    score : Signal or None
        The label-free score; None where the run has none.
    scores : tuple of Signal
        Those to choose from.
    origin : str
        Where the calibration comes from: ``run``, or the name of a calibration store.
    stale : tuple of str
        Why the calibration no longer fits the run, one sentence each.
    coverages : Mapping of str to Coverage
        By name, those that can be computed.
    sets : Sets or None
        None where there are no samples.
    certificate : Certificate
        From which confidence on to answer.
    drift : Drift
        Along the questions that do not calibrate, in the run's order.
    groups : DataFrame
        One row per group: ``group, n_calibration, threshold, reason, n_test, n_covered, low, high``.
    kept_claims : KeptClaims or None
        None where no claim of an answer was compared with a reference answer.
    """

    run: Run
    queries: pd.DataFrame
    alpha: float
    score: Signal | None
    scores: tuple[Signal, ...]
    origin: str
    stale: tuple[str, ...]
    coverages: Mapping[str, Coverage]
    sets: Sets | None
    certificate: Certificate
    drift: Drift
    groups: pd.DataFrame
    kept_claims: KeptClaims | None
    delta: float = DELTA

    @property
    def calibrated(self) -> bool:
        """Whether any question, or a store, calibrates."""
        return self.origin != ""

    @property
    def n_flagged(self) -> int:
        """Number of answers that are flagged."""
        return int((self.queries["verdict"] == FLAGGED).sum())

    @property
    def n_judged(self) -> int:
        """Number of answers with a verdict."""
        return int(self.queries["verdict"].isin([IN_LINE, FLAGGED]).sum())


@dataclass(frozen=True, eq=False, slots=True)
class Truth:
    """What the reference answers say, whatever the settings.

    ``distance`` of each answer; ``samples``: whether each sampled answer is correct, in the table's order.
    """

    distance: Floats
    samples: Floats


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """Scores of calibration cases, with whether each is correct (1, 0 or NaN) and its group (or None)."""

    scores: Floats
    correct: Floats
    kinds: Sequence[str | None]


def truth_of(run: Run) -> Truth:
    """Compare the answers and the samples of a run with the reference answers; no LLM calls."""
    q, samples = run.queries, run["samples"]
    known = dict(zip(q["query_id"], zip(q["reference_answers"], q["question"], strict=True), strict=True))
    judged: dict[tuple[str, str], bool | None] = {}
    for key in zip(samples["query_id"], samples["answer"], strict=True):
        if key not in judged:
            references, question = known.get(key[0], (None, ""))
            judged[key] = is_correct(key[1] if isinstance(key[1], str) else None, references, question)
    right = [judged[key] for key in zip(samples["query_id"], samples["answer"], strict=True)]
    labels = np.array([math.nan if one is None else float(one) for one in right], dtype=np.float64)
    return Truth(distance(q["answer"], q["reference_answers"]), labels)


def analyse_conformal(
    run: Run,
    truth: Truth,
    correct: Floats,
    score: Signal | None,
    scores: tuple[Signal, ...],
    alpha: float,
    *,
    meanings: pd.DataFrame | None = None,
    claims: pd.DataFrame | None = None,
    store: Calibration | None = None,
    origin: str = "",
    stale: tuple[str, ...] = (),
) -> ConformalAnalysis:
    """Calibrate on the questions that are marked for it, or on a store, and test on the others.

    No LLM calls.

    Parameters
    ----------
    run : Run
        ``queries["calibrates"]`` says which questions calibrate.
    truth : Truth
        Of `truth_of`.
    correct : ndarray, shape (n_questions,)
        1, 0 or NaN, whether each answer is correct.
    score, scores
        The label-free score, and those to choose from.
    alpha : float
        Between 0 and 1.
    meanings : DataFrame, optional
        In the order of the run's samples: ``query_id, status, meaning``.
    claims : DataFrame, optional
        ``query_id, support_maximum, correct`` (1, 0 or NaN) of the claims of the answers.
    store : Calibration, optional
        Calibrates in place of the run's own questions.
    origin, stale
        See `ConformalAnalysis`.

    Returns
    -------
    ConformalAnalysis
    """
    frame = _questions(run, truth, correct, score)
    own = _is(frame, CALIBRATION)
    tested = _is(frame, TEST)
    values = frame["score"].to_numpy(dtype=np.float64)
    cases = store or Calibration(values[own], correct[own], [*frame.loc[own, "kind"]])
    right = cases.correct == 1
    calibrating = np.where(right, cases.scores, math.nan)
    coverages = {}
    of_correct = _coverage(
        OF_CORRECT, calibrating, np.where((correct == 1) & tested, values, math.nan), alpha,
        pool=None if store else np.where((correct == 1) & (own | tested), values, math.nan),
    )  # fmt: skip
    coverages[OF_CORRECT] = of_correct
    if store is None:
        known = np.where(own | tested, truth.distance, math.nan)
        coverages[OF_DISTANCE] = _coverage(
            OF_DISTANCE, np.where(own, known, math.nan), np.where(tested, known, math.nan), alpha, known
        )
    sets = None
    if meanings is not None and len(meanings) and store is None:
        sets, coverages[OF_SETS] = _sets(frame, meanings, truth.samples, own, tested, alpha)
    judged = ~own & ~np.isnan(values)
    if not of_correct.reason:
        frame.loc[judged, "p_value"] = p_values(calibrating, values[judged])
        frame.loc[judged, "verdict"] = np.where(frame.loc[judged, "p_value"] > alpha, IN_LINE, FLAGGED)
        frame.loc[judged, "reason"] = None
    elif score is not None:
        frame.loc[judged, "reason"] = "few_labels"
    certificate = certify_threshold(_confident(score, cases.scores), cases.correct, alpha, DELTA)
    if certificate.threshold is not None:
        sure = frame["confidence"] >= certificate.threshold
        frame["answered"] = sure.astype("boolean").mask(frame["confidence"].isna() | own)
    frame.loc[judged, "drift_p"] = online_p_values(cases.scores, values[judged], SEED)
    enough = np.isfinite(cases.scores).any()
    drift = drift_martingale(frame.loc[judged, "drift_p"] if enough else [], DRIFT_LEVEL)
    return ConformalAnalysis(
        run, frame, alpha, score, scores, origin, stale, coverages, sets, certificate, drift,
        _groups(frame, cases, correct, tested, alpha), _kept(claims, frame, own, tested, alpha),
    )  # fmt: skip


def _is(frame: pd.DataFrame, role: str) -> Bools:
    return np.asarray(frame["role"] == role, dtype=np.bool_)


def _questions(run: Run, truth: Truth, correct: Floats, score: Signal | None) -> pd.DataFrame:
    """Return the rows of the questions with their roles and scores; the rest is still undefined."""
    q = run.queries.reset_index(drop=True)
    frame = q[["query_id", "question"]].copy()
    grouped = next((name for name in GROUPED_BY if q[name].nunique() > 1), None)
    frame["kind"] = q[grouped] if grouped else pd.Series([None] * len(q), dtype="str")
    marked = q["calibrates"]
    frame["role"] = np.select(
        [marked.eq(True).fillna(False), marked.notna() & q["reference_answers"].notna()],
        [CALIBRATION, TEST],
        NEW,
    )
    frame["score"] = math.nan if score is None else nonconformity(score)
    frame["confidence"] = math.nan if score is None else confidence(score)
    frame["correct"] = pd.Series(correct).map({1.0: True, 0.0: False}).astype("boolean")
    frame["distance"] = truth.distance
    frame["p_value"] = math.nan
    frame["drift_p"] = math.nan
    frame["verdict"] = np.where(frame["role"] == CALIBRATION, CALIBRATION, UNDEFINED)
    frame["answered"] = pd.Series(pd.NA, index=frame.index, dtype="boolean")
    frame["set_size"] = math.nan
    frame["set_covers"] = pd.Series(pd.NA, index=frame.index, dtype="boolean")
    why = "no_score" if marked.notna().any() else "not_calibrated"
    reason = pd.Series(why, index=frame.index, dtype="str")
    frame["reason"] = reason.mask(frame["role"] == CALIBRATION)
    return frame


def _confident(score: Signal | None, scores: Floats) -> Floats:
    """Return scores of calibration cases as confidences, by the rule of `confidence`."""
    bounded = score is None or score.bounds is not None
    return np.clip(1 - scores if bounded else np.exp(-np.maximum(scores, 0)), 0, 1)


def _coverage(
    name: str,
    calibrating: Floats,
    testing: Floats,
    alpha: float,
    pool: Floats | None = None,
    threshold: float | None = None,
    reason: str | None = None,
    groups: Sequence[Floats] | None = None,
) -> Coverage:
    n = int(np.count_nonzero(~np.isnan(calibrating)))
    n_test = int(np.count_nonzero(~np.isnan(testing)))
    found = conformal_threshold(calibrating, alpha) if threshold is None else threshold
    covered = int(np.count_nonzero((testing <= found) & (testing < math.inf)))
    why = label_shortage(n, alpha) if reason is None else reason
    band = (math.nan, math.nan) if why or not n_test else coverage_band(n, alpha, n_test=n_test)
    none = np.full(1, math.nan)
    return Coverage(name, found, why, n, n_test, covered, band, none if pool is None else pool, groups)


def _sets(
    frame: pd.DataFrame, meanings: pd.DataFrame, right: Floats, own: Bools, tested: Bools, alpha: float
) -> tuple[Sets, Coverage]:
    """Return the sets of every question with samples, and whether they hold a correct answer."""
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
        names, number = np.unique(groups[rows], return_inverse=True)
        sampled[i] = True
        size = np.bincount(number)
        # A refusal is no answer, and is in no set.
        is_answer = np.bincount(number, answered[rows], len(names)) > 0
        correct = np.bincount(number, right[rows] == 1, len(names)) > 0
        scores[i], labels[i] = rarity(size).round(9)[is_answer], correct[is_answer].astype(np.float64)
    usable = [np.flatnonzero(role & sampled).tolist() for role in (own, tested)]
    rule = calibrate_sets([scores[i] for i in usable[0]], [labels[i] for i in usable[0]], alpha)
    best = np.full(len(frame), math.nan)
    for i in np.flatnonzero(sampled & (own | tested)).tolist():
        best[i] = min(scores[i][labels[i] == 1], default=math.inf)
    for i in np.flatnonzero(sampled & ~own).tolist():
        frame.loc[i, "set_size"] = np.count_nonzero(rule.holds(scores[i]))
    size = frame["set_size"].to_numpy()
    covers = (best <= rule.threshold) & (best < math.inf)
    shown = pd.Series(covers, index=frame.index).astype("boolean")
    frame["set_covers"] = shown.mask(~(sampled & tested))
    testing = usable[1]
    coverage = _coverage(
        OF_SETS, best[usable[0]], best[testing], alpha, best, rule.threshold, rule.reason, scores
    )
    mean = float(size[testing].mean()) if testing else math.nan
    return Sets(rule, mean, int(np.isinf(best[testing]).sum())), coverage


def _groups(
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


def _kept(
    claims: pd.DataFrame | None, frame: pd.DataFrame, own: Bools, tested: Bools, alpha: float
) -> KeptClaims | None:
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
