"""What calibration on some labelled questions promises of the others, and whether the promise is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.calibration.weighted import WhatIf, half_up, whatif
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
    OTHERS,
    Calibration,
    Coverage,
    KeptClaims,
    Sets,
    Verdicts,
    coverage_of,
    kept_claims_of,
    sets_of,
    verdicts_of,
    with_groups,
)
from core.conformal.selective import Certificate, Tested, certify_threshold
from core.conformal.split import conformal_threshold, shortfall, threshold_rank
from core.run import Run
from core.signals import Signal, confidence, confident, nonconformity
from core.text.matching import is_correct, labelled
from core.text.overlap import rouge_l

GROUPED_BY = ("kind", "language")
SEED = 0
N_SPLITS = 41  # odd: one of them is the median
OWN = "this run"


@dataclass(frozen=True, eq=False)
class ConformalAnalysis:
    """The calibration of a run, and what follows for its other questions.

    ``queries``, one row per question: ``query_id, question, kind, role`` (`CALIBRATION`, `TEST`: its answer
    is known; `NEW`), ``score`` (high = less typical), ``confidence``, ``correct``, ``distance`` from the
    nearest reference answer, ``p_value`` among the correct answers of the calibration (none for a question
    that calibrates), ``verdict``, ``answered`` (whether the certified threshold lets it through), ``set_size,
    set_covers``, ``drift_p``, ``reason``. ``groups``, one row per threshold, where there are several:
    ``group, n_calibration, threshold, reason, n_test, n_covered, low, high``.

    ``origin`` is `OWN`, the name of a calibration store, or "" where nothing calibrates; ``stale`` says why
    the calibration no longer fits the run. ``sets`` is None where nothing was sampled, ``kept_claims`` where
    no claim was compared with a reference answer. ``drift`` is of no p-value where the run's own questions
    calibrate: the order of a file says nothing of time. ``final`` and ``final_threshold`` are from all
    labels, those that test among them: what to use, and what the command ``calibrate`` gives. ``parts`` are
    the labels of each threshold of the score and the answers that it judges.
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
    final: Certificate
    final_threshold: float
    parts: tuple[tuple[int, int], ...]
    is_random_half: bool

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

    def threshold_of(self, kind: object) -> tuple[int, float]:
        """Return the labels and the threshold of the score for questions of a group (`groups`)."""
        one, groups = self.coverages[OF_CORRECT], self.groups.set_index("group")
        if groups.empty:
            return one.n_calibration, one.threshold
        name = kind if kind in groups.index else OTHERS
        found = groups.reindex([name]).iloc[0]
        return int(found["n_calibration"]) if found.notna().any() else 0, float(found["threshold"])

    def at(self, threshold: float) -> tuple[WhatIf, Tested | None]:
        """Return what a threshold lets through of the run, and its test by all labels; None off the grid."""
        q = self.queries
        right = q["correct"].astype("Float64").to_numpy(dtype=np.float64, na_value=math.nan)
        found = whatif(q["confidence"].to_numpy(dtype=np.float64), right, threshold)
        return found, next((row for row in self.final.table if math.isclose(row.threshold, threshold)), None)

    @property
    def n_by_chance(self) -> float:
        """Number of answers that would be flagged if all were as good as the correct ones, on average."""
        return sum(of * (n + 1 - threshold_rank(n, self.alpha)) / (n + 1) for n, of in self.parts)

    @cached_property
    def over_splits(self) -> Flagging | None:
        """How many would be flagged if other random halves calibrated; None where none does."""
        return flagged_over_splits(self.queries, self.alpha) if self.is_random_half else None


@dataclass(frozen=True, slots=True)
class Flagging:
    """Numbers of answers flagged over random halves of the labels: the middle 95 % and the median.

    ``p_value``: how likely so many are flagged if all are as good as the correct ones, twice that of the
    median split, which holds whatever the splits have in common (Rüger 1978).
    """

    n_splits: int
    of: int
    low: int
    median: int
    high: int
    p_value: float


def flagged_over_splits(queries: pd.DataFrame, alpha: float) -> Flagging | None:
    """Return how many answers other random halves flag; None where no half has enough labels."""
    frame = queries.sort_values("query_id", kind="stable")
    values = frame["score"].to_numpy(dtype=np.float64)
    right = (frame["correct"] == True).fillna(False).to_numpy(dtype=np.bool_)  # noqa: E712
    labelled = np.flatnonzero(frame["role"] != NEW)
    kinds = np.array([one if isinstance(one, str) else None for one in frame["kind"]], dtype=object)
    rng = np.random.default_rng(SEED)
    found: list[tuple[float, int, Verdicts]] = []
    for _ in range(N_SPLITS):
        half = np.zeros(len(frame), dtype=np.bool_)
        half[rng.permutation(labelled)[: (labelled.size + 1) // 2]] = True
        one = verdicts_of(
            np.where(right[half], values[half], math.nan), kinds[half].tolist(), values[~half],
            kinds[~half].tolist(), alpha,
        )  # fmt: skip
        of = sum(n for _, n in one.parts)
        if of:
            n = int((one.p_values <= alpha).sum())
            found.append((n / of, n, one))
    if not found:
        return None
    found.sort(key=lambda split: split[0])
    counts = [n for _, n, _ in found]
    _, n, middle = found[len(found) // 2]
    of = sum(one for _, one in middle.parts)
    low, high = np.quantile(counts, [0.025, 0.975], method="nearest").astype(int).tolist()
    p_value = min(1.0, 2 * shortfall(of - n, middle.parts, alpha))
    return Flagging(len(found), of, low, n, high, p_value)


def distance(answers: pd.Series, references: pd.Series) -> Floats:
    """Return how far each answer is from its nearest reference answer: 1 − ROUGE-L F1 in [0, 1], high = far.

    NaN where either is missing. Known only where a reference is, so it is no score of a new answer.
    """
    found = []
    for answer, known in zip(answers, references, strict=True):
        likeness = [rouge_l(one, answer).f1 for one in known or ()] if isinstance(answer, str) else []
        likeness = [0.0 if math.isnan(one) else one for one in likeness]
        found.append(1 - max(likeness, default=math.nan))
    return np.array(found, dtype=np.float64).round(9)


@dataclass(frozen=True, eq=False, slots=True)
class Truth:
    """What the reference answers say: the ``distance`` of each answer, and which ``samples`` are correct."""

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
    is_random_half: bool = False,
) -> ConformalAnalysis:
    """Calibrate on the questions that are marked for it, or on a store, and test on the others; no LLM calls.

    ``correct`` (n_questions,) is 1, 0 or NaN; ``meanings`` has ``query_id, status, meaning`` in the order of
    the run's samples, ``claims`` the ``query_id, support_maximum, correct`` of the claims of the answers.
    """
    frame = _questions(run, truth, correct, score)
    own, tested = ((frame["role"] == role).to_numpy(dtype=np.bool_) for role in (CALIBRATION, TEST))
    values, known = frame["score"].to_numpy(dtype=np.float64), own | tested
    cases = store or Calibration(values[own], correct[own], [*frame.loc[own, "kind"]])
    calibrating = np.where(cases.correct == 1, cases.scores, math.nan)
    right = np.where(correct == 1, values, math.nan)
    of_correct = coverage_of(
        OF_CORRECT, calibrating, np.where(tested, right, math.nan), alpha,
        None if store else np.where(known, right, math.nan),
    )  # fmt: skip
    judged = ~own & ~np.isnan(values)
    found = verdicts_of(calibrating, cases.kinds, values[judged], [*frame.loc[judged, "kind"]], alpha)
    frame.loc[judged, "p_value"] = found.p_values
    undefined = np.isnan(found.p_values)
    verdicts = np.where(found.p_values > alpha, IN_LINE, FLAGGED)
    frame.loc[judged, "verdict"] = np.where(undefined, UNDEFINED, verdicts)
    if origin:
        frame.loc[judged, "reason"] = ["few_labels" if one else None for one in undefined.tolist()]
    of_correct, groups = with_groups(of_correct, found, ((correct == 1) & tested)[judged], alpha)
    coverages = {OF_CORRECT: of_correct}
    others = np.where(own, math.nan, values)
    coverages[OF_SCORE] = coverage_of(OF_SCORE, cases.scores, others, alpha, None if store else values)
    sets = kept = None
    if store is None:
        far = [np.where(side, truth.distance, math.nan) for side in (own, tested, known)]
        coverages[OF_DISTANCE] = coverage_of(OF_DISTANCE, far[0], far[1], alpha, far[2])
        if meanings is not None and len(meanings):
            sets, coverages[OF_SETS] = sets_of(frame, meanings, truth.samples, own, tested, alpha)
        kept = kept_claims_of(claims, frame, own, tested, alpha)
    # An answer passes as its confidence is shown.
    certificate = certify_threshold(half_up(confident(cases.scores, score)), cases.correct, alpha, DELTA)
    shown = half_up(frame["confidence"])
    if certificate.threshold is not None:
        sure = pd.Series(shown >= certificate.threshold, frame.index)
        frame["answered"] = sure.astype("boolean").mask(frame["confidence"].isna() | own)
    final, final_threshold = certificate, conformal_threshold(calibrating, alpha)
    if store is None:
        final = certify_threshold(shown, correct, alpha, DELTA)
        final_threshold = conformal_threshold(right, alpha)
    if store is not None and np.isfinite(cases.scores).any():
        frame.loc[judged, "drift_p"] = online_p_values(cases.scores, values[judged], SEED)
    drift = drift_martingale(frame["drift_p"].dropna(), DRIFT_LEVEL)
    return ConformalAnalysis(
        run, frame, alpha, score, scores, origin, stale, coverages, sets, certificate, drift, groups,
        kept, final, final_threshold, found.parts, is_random_half,
    )  # fmt: skip


def _questions(run: Run, truth: Truth, correct: Floats, score: Signal | None) -> pd.DataFrame:
    """Return the rows of the questions with their roles and scores; the rest is still undefined."""
    q = run.queries.reset_index(drop=True)
    frame = q[["query_id", "question"]].copy()
    grouped = next((name for name in GROUPED_BY if q[name].nunique() > 1), None)
    frame["kind"] = q[grouped] if grouped else pd.Series([None] * len(q), dtype="str")
    marked = q["calibrates"]
    frame["role"] = np.select(
        [marked.eq(True).fillna(False), marked.notna() & labelled(q)],
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
