"""What calibration says of a run, in sentences."""

from __future__ import annotations

import math

from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import FINDINGS, FLAGGED, METRICS, NEW, OF_CORRECT, TEST
from core.conformal.promises import Coverage
from core.conformal.split import threshold_rank
from core.diagnosis import BAD, GOOD, UNCLEAR, Finding
from core.stats import wilson_interval
from core.text.display import count, number, part, percent

_NO_HELP = "Find a score that tells wrong answers better, or allow a higher α."
_FEW = 0.025  # half of what lies outside the band


def findings(analysis: ConformalAnalysis) -> tuple[Finding, ...]:
    """Return whether the promises hold, which answers are flagged, and what could not be certified.

    Chance: of n answers as good as the correct ones, α n are flagged; a promise that holds puts the tested
    share below its band once in 40 times; a drift alarm comes once in 20 streams without drift.
    """
    if not analysis.calibrated:
        return ()
    short = (found for one in analysis.coverages.values() for found in _short(one, analysis.alpha))
    return (*_stale(analysis), *_drift(analysis), *short, *_flagged(analysis), *_certificate(analysis))


def _stale(analysis: ConformalAnalysis) -> list[Finding]:
    if not analysis.stale:
        return []
    n = len(analysis.queries)
    return [
        Finding(
            "stale_calibration", f"The calibration is stale: {'; '.join(analysis.stale)}.", n, n,
            severity="high", advice=FINDINGS["stale_calibration"].advice, clause="the calibration is stale",
        )
    ]  # fmt: skip


def _drift(analysis: ConformalAnalysis) -> list[Finding]:
    drift = analysis.drift
    if drift.alarm is None:
        return []
    judged = analysis.queries[analysis.queries["drift_p"].notna()]
    strangest = judged.sort_values("drift_p", kind="stable")["query_id"]
    # Ville's inequality: the capital of a bet is a bound on its p-value.
    p_value = math.exp(-float(drift.log_martingale.max()))
    return [
        Finding(
            "score_drift",
            f"The scores drift away from the calibration: alarm at question {drift.alarm + 1:,} of "
            f"{drift.n:,}.",
            drift.n - drift.alarm, drift.n, p_value=p_value, severity="high", query_ids=tuple(strangest),
            advice=FINDINGS["score_drift"].advice, clause="the questions no longer look like the calibration",
        )
    ]  # fmt: skip


def _short(one: Coverage, alpha: float) -> list[Finding]:
    if one.reason or not one.n_test or one.n_covered / one.n_test >= one.band[0]:
        return []
    share = one.n_covered / one.n_test
    title = METRICS[one.name].title
    return [
        Finding(
            "coverage_short",
            f"{title}: {one.n_covered:,} of {one.n_test:,} tested ({percent(share)}), where "
            f"{percent(1 - alpha)} was promised and at least {percent(one.band[0])} was to be expected.",
            one.n_covered, one.n_test, wilson_interval(share, one.n_test), (1 - alpha) * one.n_test, _FEW,
            severity="high", advice=FINDINGS["coverage_short"].advice,
            clause=f"a promise of {percent(1 - alpha)} holds for {part(one.n_covered, one.n_test)} only",
        )
    ]  # fmt: skip


def _flagged(analysis: ConformalAnalysis) -> list[Finding]:
    correct = analysis.coverages[OF_CORRECT]
    if correct.reason:
        return [
            Finding(
                "few_labels",
                f"No answer can be flagged: {correct.reason}",
                correct.n_calibration, correct.n_calibration, severity="low", tone=UNCLEAR,
                advice=FINDINGS["few_labels"].advice,
            )
        ]  # fmt: skip
    from scipy.stats import betabinom

    n, of, alpha = analysis.n_flagged, analysis.n_judged, analysis.alpha
    if not of:
        return []
    k, m = threshold_rank(correct.n_calibration, alpha), correct.n_calibration
    # If all were as good as the correct ones, the number flagged would be beta-binomial.
    p_value = float(betabinom.sf(n - 1, of, m + 1 - k, k))
    q = analysis.queries
    flagged = q[q["verdict"] == FLAGGED].sort_values("p_value", kind="stable")
    tone = BAD if p_value <= 2 * _FEW else UNCLEAR
    share, interval = n / of, wilson_interval(n / of, of)
    return [
        Finding(
            "answers_flagged",
            f"{n:,} of {count(of, 'answer')} {'is' if n == 1 else 'are'} stranger than "
            f"{percent(1 - alpha)} of the correct ones; {number(alpha * of, '{:.1f}')} would be if all were "
            "correct.",
            n, of, interval, alpha * of, p_value, "medium" if tone == BAD else "low",
            FINDINGS["answers_flagged"].advice if n else "", tuple(flagged["query_id"]), tone,
            f"{part(n, of, 'answer')} should be withheld ({percent(share, interval)})" if tone == BAD else "",
        )
    ]  # fmt: skip


def _certificate(analysis: ConformalAnalysis) -> list[Finding]:
    one, q = analysis.certificate, analysis.queries
    if not one.n:
        return []
    risk = f"at most {percent(one.alpha)} wrong"
    if one.threshold is None:
        labels = f"n = {count(one.n, 'label')}"
        sentence = f"No confidence is high enough to certify {risk} ({labels}): {one.missing}."
        unclear = not one.out_of_reach
        return [
            Finding(
                "no_certificate", sentence, 0, one.n, severity="medium" if unclear else "high",
                tone=UNCLEAR if unclear else BAD,
                advice=FINDINGS["no_certificate"].advice if unclear else _NO_HELP,
                clause=f"no confidence is high enough to certify {risk}",
            )
        ]  # fmt: skip
    answered = q["answered"].fillna(False)
    others = q["role"].isin([TEST, NEW]) & q["confidence"].notna()
    n, of = int(answered.sum()), int(others.sum())
    return [
        Finding(
            "certificate",
            f"Answering only from a confidence of {number(one.threshold)} on keeps {n:,} of "
            f"{count(of, 'answer')}, {risk} with probability {percent(1 - one.delta)} over the "
            f"{count(one.n, 'label')}.",
            n, of, wilson_interval(n / of, of) if of else None, severity="low", tone=GOOD,
            query_ids=tuple(q.loc[answered, "query_id"]),
        )
    ]  # fmt: skip
