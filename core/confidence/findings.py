"""What the confidence of a run gets wrong, in sentences."""

from __future__ import annotations

import math

from core.confidence.analysis import ConfidenceAnalysis
from core.confidence.definitions import FINDINGS
from core.diagnosis import BAD, UNCLEAR, Finding
from core.stats import wilson_interval
from core.text.display import count, number, part, percent


def findings(analysis: ConfidenceAnalysis) -> tuple[Finding, ...]:
    """Return whether the confidence is too high or too low, tells right from wrong, and lets errors pass.

    Chance: a confidence that knows nothing of correctness lets incorrect answers pass as often as all.
    """
    return (*_ranges(analysis), *_gap(analysis), *_ranking(analysis), *_pass(analysis))


def _ranges(analysis: ConfidenceAnalysis) -> list[Finding]:
    return [
        Finding(
            "range_mismatch", one.sentence, one.n_outside or one.n, one.n, severity="high",
            advice=FINDINGS["range_mismatch"].advice, clause="a signal contradicts its declared range",
        )
        for one in analysis.warnings
    ]  # fmt: skip


def _gap(analysis: ConfidenceAnalysis) -> list[Finding]:
    (gap, (low, high)), n = analysis.gap, analysis.quality.n
    if math.isnan(low) or low <= 0 <= high:
        return []
    name = "overconfident" if gap > 0 else "underconfident"
    odd = analysis.queries[analysis.queries["correct"].eq(gap < 0) & analysis.queries["confidence"].notna()]
    mean, accuracy = _means(analysis)
    return [
        Finding(
            name,
            f"The mean confidence is {number(mean)}, and {part(n_right(analysis), n)} answers are correct: "
            f"{number(abs(gap))} too {'high' if gap > 0 else 'low'} (95 % interval of the gap {number(low)} "
            f"to {number(high)}).",
            len(odd), n, severity="medium", advice=FINDINGS[name].advice,
            query_ids=tuple(odd.sort_values("confidence", ascending=gap < 0, kind="stable")["query_id"]),
            clause=f"the confidence is too {'high' if gap > 0 else 'low'}: {number(mean)} on average, where "
            f"{percent(accuracy)} of {n:,} are correct",
        )
    ]  # fmt: skip


def n_right(analysis: ConfidenceAnalysis) -> int:
    """Return the number of correct answers with a confidence."""
    q = analysis.queries
    return int((q["correct"].fillna(False) & q["confidence"].notna()).sum())


def _means(analysis: ConfidenceAnalysis) -> tuple[float, float]:
    q = analysis.queries
    known = q[q["correct"].notna() & q["confidence"].notna()]
    return float(known["confidence"].mean()), float(known["correct"].astype("float64").mean())


def _ranking(analysis: ConfidenceAnalysis) -> list[Finding]:
    value, low, high = analysis.auroc
    n = analysis.quality.n
    if math.isnan(low) or low > 0.5:
        return []
    tone = BAD if high < 0.5 else UNCLEAR
    name = "confidence_backwards" if tone == BAD else "confidence_blind"
    said = "lower" if tone == BAD else "no surely higher"
    return [
        Finding(
            name,
            f"The confidence of correct answers is {said} than that of incorrect ones: AUROC {number(value)} "
            f"(95 % interval {number(low)} to {number(high)}, n = {count(n, 'answer')}; 0.5 by chance).",
            n - n_right(analysis), n, severity="high" if tone == BAD else "medium", tone=tone,
            advice=FINDINGS[name].advice,
            clause="the confidence is higher for incorrect answers" if tone == BAD
            else "whether the confidence tells correct from incorrect answers is unclear",
        )
    ]  # fmt: skip


def _pass(analysis: ConfidenceAnalysis) -> list[Finding]:
    from scipy.stats import hypergeom

    q, passes = analysis.queries, analysis.passing
    known = q["correct"].notna() & q["confidence"].notna()
    wrong = known & ~q["correct"].fillna(True)
    of, n, n_known = int(wrong.sum()), int((wrong & passes).sum()), int(known.sum())
    if not n:
        return []
    n_passing = int((known & passes).sum())
    # If the confidence knew nothing, the number would be hypergeometric.
    p_value = float(hypergeom.cdf(n, n_known, of, n_passing))
    by_chance, interval = of * n_passing / n_known, wilson_interval(n / of, of)
    shown = q[wrong & passes].sort_values("confidence", ascending=False, kind="stable")
    verb = "passes" if n == 1 else "pass"
    return [
        Finding(
            "wrong_answers_pass",
            f"{n:,} of {count(of, 'incorrect answer')} {verb} the threshold "
            f"{analysis.weighting.threshold:g}; {number(by_chance, '{:.1f}')} would if the confidence knew "
            "nothing.",
            n, of, interval, by_chance, p_value, advice=FINDINGS["wrong_answers_pass"].advice,
            query_ids=tuple(shown["query_id"]),
            clause=f"{part(n, of, 'incorrect answer')} {verb} the confidence threshold "
            f"({percent(n / of, interval)})",
        )
    ]  # fmt: skip
