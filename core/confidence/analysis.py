"""The confidence of every answer of a run, what it is made of, and whether it means what it says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.confidence.combined import combined_decision, combined_uncertainty, retrieval_uncertainty
from core.confidence.labelled import COLUMNS
from core.confidence.mapping import ConfidenceMap, Quality, quality
from core.confidence.weighted import (
    RangeWarning,
    Weighting,
    confidences,
    half_up,
    normalised,
    range_warning,
)
from core.context_score import GREEN, ORANGE, RED, band
from core.errors import InputError
from core.run import Run
from core.signals import Signal
from core.stats import (
    BrierParts,
    Interval,
    ReliabilityBin,
    auroc_interval,
    auroc_p_value,
    brier_parts,
    known_pairs,
    paired_interval,
    reliability_bins,
    wilson_interval,
)
from core.text.display import count

_NO_MAP = ConfidenceMap()
DEFAULT, SETTING, CALIBRATED, GIVEN = "default", "setting", "calibration", "file"
_WITHOUT_ANSWER = ("abstained", "empty", "error")
_DRAWS = 500  # of correctness, for the error that chance alone gives


class WhatIf(NamedTuple):
    """What a confidence and a threshold let through.

    Attributes
    ----------
    threshold : float
        An answer passes from this confidence on, after rounding half-up to two places.
    n, n_passing : int
        Answers with a confidence; those that pass.
    n_labelled, n_correct : int
        Of those that pass: with a label, and correct.
    coverage, accuracy : float
        ``n_passing / n`` and ``n_correct / n_labelled``, in [0, 1], higher is better; NaN without a case.
    low, high : float
        Wilson's 95 % interval of the accuracy.
    """

    threshold: float
    n: int
    n_passing: int
    n_labelled: int
    n_correct: int
    coverage: float
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ConfidenceAnalysis:
    """The confidence of the answers of a run.

    Attributes
    ----------
    run : Run
        The run.
    weighting : Weighting
        Weights, ranges and threshold in use.
    map : ConfidenceMap
        From the weighted sum to the confidence.
    signals : Mapping of str to ndarray, each of shape (n_questions,)
        Every signal that has or could have a weight, in [0, 1], higher = more confident; NaN where missing.
    measured : Mapping of str to ndarray, each of shape (n_questions,)
        The same in the units of ``weighting.ranges``.
    titles : Mapping of str to str
        Their names for people.
    contributions : ndarray, shape (n_questions, n_weights)
        Weight times signal, in the order of ``weighting.weights``; they sum to ``raw_confidence``.
    queries : DataFrame
        One row per question: ``query_id, question, confidence, raw_confidence`` (before the map),
        ``judged_confidence`` (that which is compared with the label: of an answer whose label the calibration
        was learned from, by a calibration learned from others; else the confidence), ``band``,
        ``passes`` (whether the confidence, rounded half-up to two places, reaches the threshold),
        ``similarity, lexical, llm_score`` in their own units,
        ``retrieval_uncertainty, sampling_uncertainty, conformal_uncertainty, combined_uncertainty,
        combined_confidence, is_reliable`` (by MC dropout's confidence, as in the source),
        ``is_reliable_strict`` (by the agreement with the samples), ``correct, reason``.
    warnings : tuple of RangeWarning
        Signals that contradict their declared range.
    quality : Quality
        Of the confidence of the labelled answers.
    auroc : (value, low, high)
        With its 95 % interval.
    auroc_p_value : float
        Of "the confidence has nothing to do with correctness", two-sided.
    ece_by_chance : (mean, high)
        Of the calibration error of as many answers whose confidence were exactly right: 95 % have at most
        ``high``.
    bins : tuple of ReliabilityBin
        Of the reliability diagram.
    brier : BrierParts
        The Brier score in parts.
    correct : ndarray, shape (n_questions,)
        1, 0 or NaN.
    choices : tuple of Signal
        Signals of other diagnostics that could join, by their ``key``.
    origin : str
        Where the weights come from: `DEFAULT`, `SETTING`, `CALIBRATED`, or `GIVEN` by the file.
    reason : str
        Why there is no confidence at all; empty where there is.
    n_cross_fitted : int or None
        Labelled answers that the calibration in use was learned from; None where its file does not say.
    """

    run: Run
    weighting: Weighting
    map: ConfidenceMap
    signals: Mapping[str, Floats]
    measured: Mapping[str, Floats]
    titles: Mapping[str, str]
    contributions: Floats
    queries: pd.DataFrame
    warnings: tuple[RangeWarning, ...]
    quality: Quality
    auroc: tuple[float, float, float]
    auroc_p_value: float
    ece_by_chance: tuple[float, float]
    bins: tuple[ReliabilityBin, ...]
    brier: BrierParts
    correct: Floats
    choices: tuple[Signal, ...]
    origin: str
    reason: str
    n_cross_fitted: int | None

    @property
    def judged(self) -> Floats:
        """The confidence that is compared with the label of each answer."""
        return self.queries["judged_confidence"].to_numpy(dtype=np.float64)

    @property
    def fit_note(self) -> str:
        """Whether the labels were used for fitting, and what was done about it; empty where they were not."""
        if self.n_cross_fitted is None:
            return (
                "The calibration file does not say which answers it was learned from; if these are among "
                "them, the numbers promise too much."
            )
        if not self.n_cross_fitted:
            return ""
        used = count(self.n_cross_fitted, "labelled answer")
        if np.isnan(self.judged[~np.isnan(self.correct) & ~np.isnan(self.confidence)]).any():
            return (
                f"The calibration was learned from {used} of this run. They are not used to judge it: they "
                "are too few to learn from one part and judge the other."
            )
        return (
            f"The calibration was learned from {used} of this run. Each of them is judged by a calibration "
            "learned from the others (five folds)."
        )

    @property
    def confidence(self) -> Floats:
        """The confidence of each answer."""
        return self.queries["confidence"].to_numpy(dtype=np.float64)

    @property
    def labelled(self) -> pd.DataFrame:
        """The rows of the answers with a label and a confidence, that which is compared with the label."""
        judged = self.judged
        passes = pd.Series(half_up(judged) >= self.weighting.threshold, self.queries.index)
        rows = self.queries.assign(confidence=judged, passes=passes.astype("boolean"))
        return rows[rows["correct"].notna() & rows["confidence"].notna()]

    @property
    def gap(self) -> tuple[float, Interval]:
        """Mean confidence minus accuracy of the labelled answers, and its 95 % interval."""
        p, right = known_pairs(self.judged, self.correct)
        return float((p - right).mean()) if p.size else math.nan, paired_interval(right, p)

    def bands(self) -> pd.DataFrame:
        """Return one row per band, the highest first, with its answers and how many of them are correct.

        ``band, n, n_labelled, n_correct, accuracy, low, high``: the last are Wilson's 95 % interval.
        """
        rows, judged = [], np.array([band(float(value)).word for value in half_up(self.judged)])
        for one in (GREEN, ORANGE, RED):
            own = self.queries["band"].eq(one.word).to_numpy()
            right = self.correct[(judged == one.word) & ~np.isnan(self.correct)]
            accuracy = float(right.mean()) if right.size else math.nan
            ends = wilson_interval(accuracy, right.size)
            rows.append((one.word, int(own.sum()), right.size, int(right.sum()), accuracy, *ends))
        columns = ["band", "n", "n_labelled", "n_correct", "accuracy", "low", "high"]
        return pd.DataFrame(rows, columns=pd.Index(columns))

    def by(self, weighting: Weighting, mapped: ConfidenceMap = _NO_MAP) -> Floats:
        """Return the confidence by another weighting and map; InputError where a signal of it is unknown."""
        found = np.array(mapped(confidences(self.measured, weighting)))
        found[self.queries["reason"].eq("no_answer").to_numpy(dtype=bool, na_value=False)] = math.nan
        return found

    def other(self, weights: Mapping[str, float], threshold: float) -> Weighting:
        """Return other weights, as shares of their sum, and another threshold with the ranges in use."""
        ranges = {**dict.fromkeys(weights, (0.0, 1.0)), **self.weighting.ranges}
        return Weighting(shares_of(weights), ranges, threshold)

    def at(self, weights: Mapping[str, float], threshold: float) -> tuple[WhatIf, Quality]:
        """Return what other weights, as shares of their sum, and another threshold let through.

        The map is left out: it belongs to the weights that it was fitted to.
        """
        found = self.by(self.other(weights, threshold))
        return whatif(found, self.correct, threshold), quality(found, self.correct)

    def curve(self, weighting: Weighting | None = None) -> pd.DataFrame:
        """Return one `WhatIf` per row, for thresholds from 0 to 1 in steps of 0.05.

        Another ``weighting`` as in `by`, without a map.
        """
        found = self.judged if weighting is None else self.by(weighting)
        rows = [whatif(found, self.correct, place / 20) for place in range(21)]
        return pd.DataFrame(rows, columns=WhatIf._fields)


def shares_of(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights as shares of their sum; InputError where that is not a number above 0."""
    total = sum(weights.values())
    if not (math.isfinite(total) and total > 0 and min(weights.values()) >= 0):
        raise InputError("Weights must be numbers of at least 0, and one of them above 0.")
    return {name: weight / total for name, weight in weights.items()}


def whatif(confidence: Floats, correct: Floats, threshold: float) -> WhatIf:
    """Return what a threshold lets through.

    Parameters
    ----------
    confidence : ndarray, shape (n,)
        In [0, 1]; NaN where undefined.
    correct : ndarray, shape (n,)
        1, 0 or NaN.
    threshold : float
        In [0, 1].
    """
    passes = half_up(confidence) >= threshold
    n, n_passing = int(np.count_nonzero(~np.isnan(confidence))), int(passes.sum())
    right = correct[passes & ~np.isnan(correct)]
    accuracy = float(right.mean()) if right.size else math.nan
    coverage = n_passing / n if n else math.nan
    counts = n, n_passing, right.size, int(right.sum())
    return WhatIf(threshold, *counts, coverage, accuracy, *wilson_interval(accuracy, right.size))


def ece_by_chance(bins: tuple[ReliabilityBin, ...], seed: int = 0) -> tuple[float, float]:
    """Return the calibration error if the answers of each bin were correct with its mean confidence.

    The mean, and what 95 % of such runs do not exceed, in [0, 1]; NaN without bins. By simulation,
    reproducible; no confidence of a finite run has the error 0.
    """
    if not bins:
        return math.nan, math.nan
    n, mean = np.array([one.n for one in bins]), np.array([one.confidence for one in bins])
    drawn = np.random.default_rng(seed).binomial(n, np.clip(mean, 0, 1), size=(_DRAWS, n.size)) / n
    errors = np.abs(drawn - mean) @ n / n.sum()
    return float(errors.mean()), float(np.quantile(errors, 0.95))


def analyse_confidence(
    run: Run,
    signals: Mapping[str, Floats],
    titles: Mapping[str, str],
    correct: Floats,
    weighting: Weighting,
    mapped: ConfidenceMap,
    sampling: Floats,
    conformal: Floats,
    reliable: pd.Series,
    *,
    mc_confidence: Floats | None = None,
    cross_fitted: Floats | None = None,
    n_cross_fitted: int | None = 0,
    choices: tuple[Signal, ...] = (),
    origin: str = DEFAULT,
    reason: str = "",
) -> ConfidenceAnalysis:
    """Weigh the signals of a run's answers and compare the confidence with what is correct; no LLM calls.

    Parameters
    ----------
    run : Run
        The run.
    signals : mapping of str to ndarray, each of shape (n_questions,)
        In the units of ``weighting.ranges``; one without values where a weight names no signal of the run.
    titles, correct, choices, origin, reason
        See `ConfidenceAnalysis`.
    weighting, mapped : Weighting, ConfidenceMap
        As used.
    sampling, mc_confidence, conformal : ndarray, shape (n_questions,)
        The agreement with the samples, the confidence of MC dropout (1 − embedding variance), and that of
        conformal prediction, in [0, 1]; NaN where undefined.
    reliable : Series of boolean, length n_questions
        The decision of conformal prediction; NA where it has none.
    cross_fitted : ndarray, shape (n_questions,), optional
        What answers whose label the calibration was learned from are judged by; infinite for others.
    """
    unit = {name: normalised(values, *weighting.ranges[name]) for name, values in signals.items()}
    weights = np.array([*weighting.weights.values()])
    contributions = weights * np.column_stack([unit[name] for name in weighting.weights])
    # A signal without a weight is not needed: 0 · NaN would be NaN.
    contributions[:, weights == 0] = 0.0
    q = run.queries
    frame = q[["query_id", "question"]].reset_index(drop=True)
    without = q["answer_status"].isin(_WITHOUT_ANSWER).to_numpy(dtype=bool)
    raw = confidences(signals, weighting)
    raw[without | bool(reason)] = math.nan
    frame["confidence"], frame["raw_confidence"] = mapped(raw), raw
    frame["judged_confidence"] = frame["confidence"]
    if cross_fitted is not None:
        frame["judged_confidence"] = frame["confidence"].where(np.isinf(cross_fitted), cross_fitted)
    shown = half_up(frame["confidence"])
    for column, name in COLUMNS.items():
        frame[column] = signals[name]
    frame["band"] = [band(float(value)).word for value in shown]
    frame["passes"] = pd.Series(shown >= weighting.threshold, dtype="boolean").mask(np.isnan(shown))
    scores = run.passages.groupby("query_id", sort=False)["retrieval_score"].agg(list)
    frame["retrieval_uncertainty"] = [
        retrieval_uncertainty(scores.get(query_id, ())) for query_id in frame["query_id"]
    ]
    frame["sampling_uncertainty"], frame["conformal_uncertainty"] = 1 - sampling, 1 - conformal
    frame["combined_uncertainty"] = combined_uncertainty(
        frame["retrieval_uncertainty"], frame["sampling_uncertainty"], conformal
    )
    frame["combined_confidence"] = (sampling + conformal) / 2
    reliable = reliable.reset_index(drop=True)
    by_variance = np.full(len(frame), math.nan) if mc_confidence is None else mc_confidence
    frame["is_reliable"] = combined_decision(by_variance, reliable)
    frame["is_reliable_strict"] = combined_decision(sampling, reliable)
    frame["correct"] = pd.Series(correct).map({1.0: True, 0.0: False}).astype("boolean")
    why = np.where(without, "no_answer", "no_weights" if reason else "no_signal")
    frame["reason"] = pd.Series(why, dtype="str").mask(~np.isnan(raw))
    confidence = frame["judged_confidence"].to_numpy(dtype=np.float64)
    rounded, bins = np.round(confidence, 9), reliability_bins(confidence, correct)
    warnings = (
        range_warning(values, weighting.ranges[name], titles[name])
        for name, values in signals.items()
        if weighting.weights.get(name)
    )
    return ConfidenceAnalysis(
        run, weighting, mapped, unit, signals, titles, contributions, frame,
        tuple(one for one in warnings if one is not None),
        quality(confidence, correct), auroc_interval(rounded, correct), auroc_p_value(rounded, correct),
        ece_by_chance(bins), bins, brier_parts(confidence, correct), correct, choices, origin, reason,
        n_cross_fitted,
    )  # fmt: skip
