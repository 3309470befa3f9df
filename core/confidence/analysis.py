"""The confidence of every answer of a run, what it is made of, and whether it means what it says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.calibration.in_use import COLUMNS, WITHOUT_ANSWER, InUse, shares_of
from core.calibration.mapping import ConfidenceQuality, quality
from core.calibration.saved import digest
from core.calibration.weighted import (
    RangeWarning,
    Weighting,
    WhatIf,
    confidences,
    half_up,
    normalised,
    range_warning,
    whatif,
)
from core.confidence.combined import combined_decision, combined_uncertainty, retrieval_uncertainty
from core.context_score import GREEN, ORANGE, RED, band
from core.run import Run
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

_DRAWS = 500  # of correctness, for the error that chance alone gives


@dataclass(frozen=True, eq=False)
class ConfidenceAnalysis:
    """The confidence of the answers of a run; ``used.reason`` says why there is none at all.

    ``signals`` are those of ``used``, in [0, 1], higher = more confident; ``contributions``, (n_questions,
    n_weights), weight times signal, which sum to ``raw_confidence``. ``n_taught`` labelled answers taught
    weights and map. ``queries``, one row per question: ``query_id, question, confidence, raw_confidence``
    (before the map), ``judged_confidence`` (compared with the label: missing where the calibration was
    learned from it), ``band``, ``passes`` (rounded half-up to two places, from the threshold on),
    ``similarity, lexical, llm_score`` in their own units, ``retrieval_uncertainty, sampling_uncertainty,
    conformal_uncertainty, combined_uncertainty, combined_confidence, mc_confidence, conformal_reliable,
    is_reliable`` (by MC dropout's confidence, as in rag_uq), ``is_reliable_strict`` (by the agreement with
    the samples), ``correct, reason``.
    """

    run: Run
    used: InUse
    weighting: Weighting
    signals: Mapping[str, Floats]
    contributions: Floats
    queries: pd.DataFrame
    n_taught: int

    @cached_property
    def quality(self) -> ConfidenceQuality:
        """How good the confidence of the labelled answers is that did not teach it."""
        return quality(self.judged, self.used.correct)

    @cached_property
    def auroc(self) -> tuple[float, float, float]:
        """The AUROC with its 95 % interval."""
        return auroc_interval(self.used.correct, np.round(self.judged, 9))

    @cached_property
    def auroc_p_value(self) -> float:
        """Of "the confidence has nothing to do with correctness", two-sided."""
        return auroc_p_value(self.used.correct, np.round(self.judged, 9))

    @cached_property
    def bins(self) -> tuple[ReliabilityBin, ...]:
        """The bins of the reliability diagram."""
        return reliability_bins(self.judged, self.used.correct)

    @cached_property
    def brier(self) -> BrierParts:
        """The Brier score in parts."""
        return brier_parts(self.judged, self.used.correct)

    @cached_property
    def ece_by_chance(self) -> tuple[float, float]:
        """`ece_by_chance` of these bins."""
        return ece_by_chance(self.bins)

    @property
    def warnings(self) -> tuple[RangeWarning, ...]:
        """Signals with a weight that contradict their declared range."""
        found = (
            range_warning(values, self.weighting.ranges[name], self.used.titles[name])
            for name, values in self.used.signals.items()
            if self.weighting.weights.get(name)
        )
        return tuple(one for one in found if one is not None)

    @property
    def judged(self) -> Floats:
        """The confidence that is compared with the label of each answer."""
        return self.queries["judged_confidence"].to_numpy(dtype=np.float64)

    @property
    def fit_note(self) -> str:
        """Whether the labels were used for fitting, and what was done about it; empty where they were not."""
        if not self.n_taught:
            return ""
        used = count(self.n_taught, "labelled answer")
        return f"Weights and map were learned from {used} of this run. They do not judge it."

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
        p, right = known_pairs(self.judged, self.used.correct)
        return float((p - right).mean()) if p.size else math.nan, paired_interval(right, p)

    def reliable(self, rule: str) -> tuple[int, int]:
        """Return how many answers a rule finds reliable, of those with both of its parts."""
        part = {"is_reliable": "mc_confidence", "is_reliable_strict": "sampling_uncertainty"}[rule]
        known = self.queries[[part, "conformal_reliable"]].notna().all(axis=1)
        return int(self.queries[rule][known].sum()), int(known.sum())

    def bands(self) -> pd.DataFrame:
        """Return one row per band, the highest first: answers, and accuracy with Wilson's 95 % interval."""
        rows, judged = [], np.array([band(float(value)).word for value in half_up(self.judged)])
        correct = self.used.correct
        for one in (GREEN, ORANGE, RED):
            own = self.queries["band"].eq(one.word).to_numpy()
            right = correct[(judged == one.word) & ~np.isnan(correct)]
            accuracy = float(right.mean()) if right.size else math.nan
            ends = wilson_interval(accuracy, right.size)
            rows.append((one.word, int(own.sum()), right.size, int(right.sum()), accuracy, *ends))
        columns = ["band", "n", "n_labelled", "n_correct", "accuracy", "low", "high"]
        return pd.DataFrame(rows, columns=pd.Index(columns))

    def by(self, weighting: Weighting) -> Floats:
        """Return the confidence by another weighting; InputError where a signal of it is unknown."""
        found = confidences(self.used.signals, weighting)
        found[self.queries["reason"].eq("no_answer").to_numpy(dtype=bool, na_value=False)] = math.nan
        return found

    def other(self, weights: Mapping[str, float], threshold: float) -> Weighting:
        """Return other weights, as shares of their sum, and another threshold with the ranges in use."""
        ranges = {**dict.fromkeys(weights, (0.0, 1.0)), **self.weighting.ranges}
        return Weighting(shares_of(weights), ranges, threshold)

    def at(self, weights: Mapping[str, float], threshold: float) -> tuple[WhatIf, ConfidenceQuality]:
        """Return what other weights, as shares of their sum, and threshold let through, before any map."""
        found = self.by(self.other(weights, threshold))
        return whatif(found, self.used.correct, threshold), quality(found, self.used.correct)


def ece_by_chance(bins: tuple[ReliabilityBin, ...], seed: int = 0) -> tuple[float, float]:
    """Return the calibration error if each bin were correct with its mean confidence: mean and 95 % quantile.

    In [0, 1], by simulation, reproducible; NaN without bins. No confidence of a finite run has the error 0.
    """
    if not bins:
        return math.nan, math.nan
    n, mean = np.array([one.n for one in bins]), np.array([one.confidence for one in bins])
    drawn = np.random.default_rng(seed).binomial(n, mean, size=(_DRAWS, n.size)) / n
    errors = np.abs(drawn - mean) @ n / n.sum()
    return float(errors.mean()), float(np.quantile(errors, 0.95))


def analyse_confidence(
    run: Run,
    used: InUse,
    threshold: float,
    sampling: Floats,
    mc_confidence: Floats,
    conformal: Floats,
    reliable: pd.Series,
) -> ConfidenceAnalysis:
    """Weigh the signals of a run's answers and compare the confidence with what is correct; no LLM calls.

    ``sampling`` (the agreement with the samples), ``mc_confidence`` (1 − embedding variance) and
    ``conformal``, the confidence of conformal prediction, are (n_questions,) in [0, 1], NaN where undefined;
    ``reliable`` is its decision, NA where it has none.
    """
    method, correct = used.method, used.correct
    weighting = replace(method.weighting, threshold=threshold)
    unit = {name: normalised(values, *weighting.ranges[name]) for name, values in used.signals.items()}
    weights = np.array([*weighting.weights.values()])
    contributions = weights * np.column_stack([unit[name] for name in weighting.weights])
    # A signal without a weight is not needed: 0 · NaN would be NaN.
    contributions[:, weights == 0] = 0.0
    q = run.queries
    frame = q[["query_id", "question"]].reset_index(drop=True)
    without = q["answer_status"].isin(WITHOUT_ANSWER).to_numpy(dtype=bool)
    raw = confidences(used.signals, weighting)
    raw[without | bool(used.reason)] = math.nan
    frame["confidence"], frame["raw_confidence"] = method.map(raw), raw
    taught = q["question"].astype(str).map(digest).isin(method.learned_from).to_numpy()
    frame["judged_confidence"] = frame["confidence"].mask(taught)
    shown = half_up(frame["confidence"])
    for column, name in COLUMNS.items():
        frame[column] = used.signals[name]
    frame["band"] = [band(float(value)).word for value in shown]
    frame["passes"] = pd.Series(shown >= threshold, dtype="boolean").mask(np.isnan(shown))
    scores = run.passages.groupby("query_id", sort=False)["retrieval_score"].agg(list)
    frame["retrieval_uncertainty"] = [
        retrieval_uncertainty(scores.get(query_id, ())) for query_id in frame["query_id"]
    ]
    frame["sampling_uncertainty"], frame["conformal_uncertainty"] = 1 - sampling, 1 - conformal
    frame["combined_uncertainty"] = combined_uncertainty(
        frame["retrieval_uncertainty"], frame["sampling_uncertainty"], conformal
    )
    frame["combined_confidence"] = (sampling + conformal) / 2
    frame["mc_confidence"], frame["conformal_reliable"] = mc_confidence, reliable.to_numpy()
    reliable = frame["conformal_reliable"]
    frame["is_reliable"] = combined_decision(mc_confidence, reliable)
    frame["is_reliable_strict"] = combined_decision(sampling, reliable)
    frame["correct"] = pd.Series(correct).map({1.0: True, 0.0: False}).astype("boolean")
    why = np.where(without, "no_answer", "no_weights" if used.reason else "no_signal")
    frame["reason"] = pd.Series(why, dtype="str").mask(~np.isnan(raw))
    n_taught = int(np.count_nonzero(taught & ~np.isnan(correct)))
    return ConfidenceAnalysis(run, used, weighting, unit, contributions, frame, n_taught)
