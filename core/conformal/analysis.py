"""What calibration on some labelled questions promises of the others, and whether the promise is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.arrays import Bools, Floats
from core.conformal.definitions import (
    CALIBRATION,
    DELTA,
    DRIFT_LEVEL,
    FLAGGED,
    IN_LINE,
    NEW,
    OF_CORRECT,
    OF_DISTANCE,
    OF_SCORE,
    OF_SETS,
    TEST,
    UNDEFINED,
)
from core.conformal.drift import Drift, drift_martingale, online_p_values
from core.conformal.promises import (
    Calibration,
    Coverage,
    KeptClaims,
    Sets,
    coverage_of,
    groups_of,
    kept_claims_of,
    sets_of,
)
from core.conformal.scores import distance
from core.conformal.selective import Certificate, certify_threshold
from core.conformal.split import p_values
from core.run import Run
from core.signals import Signal, confidence, confident, nonconformity
from core.text.matching import is_correct

GROUPED_BY = ("kind", "language")
SEED = 0
OWN = "this run"


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
        Where the calibration comes from: `OWN` questions of the run, the name of a calibration store, or
        nowhere ("").
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


def nothing_known(run: Run) -> Truth:
    """Return the truth of a run that is not calibrated: nothing is compared, which takes time."""
    return Truth(np.full(len(run.queries), math.nan), np.full(len(run["samples"]), math.nan))


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
    of_correct = coverage_of(
        OF_CORRECT, calibrating, np.where((correct == 1) & tested, values, math.nan), alpha,
        pool=None if store else np.where((correct == 1) & (own | tested), values, math.nan),
    )  # fmt: skip
    coverages[OF_CORRECT] = of_correct
    coverages[OF_SCORE] = coverage_of(
        OF_SCORE, cases.scores, np.where(own, math.nan, values), alpha, None if store else values
    )
    if store is None:
        known = np.where(own | tested, truth.distance, math.nan)
        coverages[OF_DISTANCE] = coverage_of(
            OF_DISTANCE, np.where(own, known, math.nan), np.where(tested, known, math.nan), alpha, known
        )
    sets = None
    if meanings is not None and len(meanings) and store is None:
        sets, coverages[OF_SETS] = sets_of(frame, meanings, truth.samples, own, tested, alpha)
    judged = ~own & ~np.isnan(values)
    if not of_correct.reason:
        frame.loc[judged, "p_value"] = p_values(calibrating, values[judged])
        frame.loc[judged, "verdict"] = np.where(frame.loc[judged, "p_value"] > alpha, IN_LINE, FLAGGED)
        frame.loc[judged, "reason"] = None
    elif origin:
        frame.loc[judged, "reason"] = "few_labels"
    certificate = certify_threshold(confident(cases.scores, score), cases.correct, alpha, DELTA)
    if certificate.threshold is not None:
        sure = frame["confidence"] >= certificate.threshold
        frame["answered"] = sure.astype("boolean").mask(frame["confidence"].isna() | own)
    frame.loc[judged, "drift_p"] = online_p_values(cases.scores, values[judged], SEED)
    enough = np.isfinite(cases.scores).any()
    drift = drift_martingale(frame.loc[judged, "drift_p"] if enough else [], DRIFT_LEVEL)
    return ConformalAnalysis(
        run, frame, alpha, score, scores, origin, stale, coverages, sets, certificate, drift,
        groups_of(frame, cases, correct, tested, alpha),
        None if store else kept_claims_of(claims, frame, own, tested, alpha),
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
