"""The headline numbers of conformal prediction."""

from __future__ import annotations

import math

from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import CALIBRATION, DELTA, METRICS, OF_CORRECT, OF_DISTANCE, OF_SCORE, OF_SETS
from core.conformal.findings import over_splits
from core.conformal.promises import Coverage
from core.socket import REASON, Number
from core.stats import wilson_interval
from core.text.display import percent, share_interval


def numbers(analysis: ConformalAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers; without a value where nothing calibrates."""
    q, certificate, final = analysis.queries, analysis.certificate, analysis.final
    reasons = q["reason"].value_counts().to_dict()
    calibrated = analysis.calibrated
    sets, kept, drift = analysis.sets, analysis.kept_claims, analysis.drift
    correct = analysis.coverages[OF_CORRECT]
    flagged, judged = analysis.n_flagged, analysis.n_judged
    answered = q["answered"].fillna(False)
    known = answered & q["correct"].notna() & (q["role"] != CALIBRATION)
    n_known, n_wrong = int(known.sum()), int((known & ~q["correct"].fillna(False)).sum())
    return (
        *(_covered(analysis, name) for name in (OF_CORRECT, OF_SETS, OF_DISTANCE, OF_SCORE)),
        Number("conformal_threshold", "Threshold of the score", _finite(correct), n=correct.n_calibration,
            noun="correct answer", define="threshold", place="row",
            note=correct.reason if calibrated else ""),
        Number("n_flagged", "Answers flagged", flagged if judged else None, of=judged, define="Flagged",
            place="card",
            chance=analysis.n_by_chance if judged else None,
            note=over_splits(analysis).rstrip(".").replace("Over", "over", 1) if judged else _why(analysis),
            cases="queries.verdict:Flagged"),
        Number("mean_set_size", "Mean answers in a set", _value(sets.mean_size) if sets else None,
            n=analysis.coverages[OF_SETS].n_test if sets else 0, define="set_size", place="row"),
        Number("distance_threshold", "Distance to the truth, at most",
            _finite(analysis.coverages.get(OF_DISTANCE)), define=OF_DISTANCE, place="row",
            n=analysis.coverages[OF_DISTANCE].n_calibration if OF_DISTANCE in analysis.coverages else 0,
            noun="answer"),
        Number("final_threshold", "Threshold of the score, from all labels", _value(analysis.final_threshold),
            define="threshold", place="row"),
        Number("certified_threshold", "Answer from this confidence on", final.threshold,
            n=final.n, noun="labelled answer", define="certified", place="row", needs_nothing=True,
            note=final.missing if calibrated else ""),
        Number("certified_by_half", "The same by the calibrating half alone",
            None if final is certificate else certificate.threshold,
            n=None if final is certificate else certificate.n, noun="labelled answer", define="certified",
            place="row"),
        Number("certified_risk", "Incorrect among those answered, tested", n_wrong if n_known else None,
            of=n_known, define="certified", place="row",
            note=share_interval(wilson_interval(n_wrong / n_known, n_known)) if n_known else ""),
        Number("n_claims_kept", "Claims that can be kept",
            kept.n_kept if kept and not kept.rule.reason else None,
            of=kept.n_claims if kept else 0, define="kept_claims", place="row",
            note=kept.rule.reason if kept else ""),
        Number("drift_factor", "Evidence of drift", _value(_capital(analysis)), n=drift.n, define="drift",
            pattern="{:.2g}", place="row", chance=1.0 if drift.n else None,
            note=f"alarm from {1 / drift.level:.0f} on" if drift.n else ""),
        Number("drift_alarm", value=drift.alarm is not None if drift.n else None),
        Number("conformal_undefined_reasons", "No verdict because", reasons if calibrated else None,
            define=REASON, place="row"),
        Number("conformal_score", "Score", analysis.score.title if analysis.score and calibrated else None,
            place="setup", define="score"),
        Number("n_calibration", "Calibration cases", int((q["role"] == CALIBRATION).sum()) or None,
            place="setup"),
        Number("calibration_origin", value=analysis.origin or None),
        Number("conformal_alpha", value=analysis.alpha if calibrated else None),
        Number("conformal_delta", value=DELTA if calibrated else None),
        Number("certified_labels_needed", value=final.labels_needed if calibrated else None),
    )  # fmt: skip


def _covered(analysis: ConformalAnalysis, name: str) -> Number:
    one = analysis.coverages.get(name)
    if one is None or not one.n_test:
        return Number(name, METRICS[name].title, of=0, noun="question", define=name, place="row")
    promised = f"promised {percent(1 - analysis.alpha)}"
    band = f"; {percent(one.band[0])} to {percent(one.band[1])} expected of {one.n_test:,}"
    note = one.reason.rstrip(".") if one.reason else promised + band
    # Sets that hold all there is may still miss; every other infinite threshold covers by itself.
    shown = None if one.reason and name != OF_SETS else one.n_covered
    return Number(name, METRICS[name].title, shown, of=one.n_test, define=name, note=note,
        place="card" if name in (OF_SETS, OF_SCORE) else "row")  # fmt: skip


def _finite(one: Coverage | None) -> float | None:
    return one.threshold if one is not None and math.isfinite(one.threshold) else None


def _value(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _capital(analysis: ConformalAnalysis) -> float:
    path = analysis.drift.log_martingale
    return math.exp(min(700.0, float(path[-1]))) if len(path) and analysis.drift.n else math.nan


def _why(analysis: ConformalAnalysis) -> str:
    return analysis.coverages[OF_CORRECT].reason.rstrip(".") if analysis.calibrated else ""
