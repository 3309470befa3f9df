"""What the confidence of a run gets wrong, in sentences."""

from __future__ import annotations

import math

import numpy as np

from core.confidence.analysis import ConfidenceAnalysis
from core.confidence.definitions import FINDINGS
from core.diagnosis import BAD, UNCLEAR, Finding
from core.stats import poisson_binomial_tail, wilson_interval
from core.text.display import count, number, part, percent

_LEVEL = 0.05
_FEWEST = 5  # equal values that are no coincidence


def findings(analysis: ConfidenceAnalysis) -> tuple[Finding, ...]:
    """Return whether the confidence is too high or too low, tells right from wrong, and lets errors pass.

    Chance: of answers with the confidence p a share of 1 − p is incorrect; a confidence that knows nothing of
    correctness lets incorrect answers pass as often as all.
    """
    return (*_ranges(analysis), *_constant(analysis), *_gap(analysis), *_ranking(analysis), *_pass(analysis))


def _ranges(analysis: ConfidenceAnalysis) -> list[Finding]:
    return [
        Finding(
            "range_mismatch", one.sentence, one.n_outside or one.n, one.n, severity="high",
            advice=FINDINGS["range_mismatch"].advice, clause="a signal contradicts its declared range",
        )
        for one in analysis.warnings
    ]  # fmt: skip


def _constant(analysis: ConfidenceAnalysis) -> list[Finding]:
    found = []
    for name in (name for name, weight in analysis.weighting.weights.items() if weight):
        known = analysis.signals[name][~np.isnan(analysis.signals[name])]
        if known.size < _FEWEST or np.ptp(known) > 0:
            continue
        title, n = analysis.titles[name], known.size
        found.append(
            Finding(
                "constant_signal",
                f"{title} is the same for all {count(n, 'answer')}: it tells none from another.",
                n, n, severity="medium", advice=FINDINGS["constant_signal"].advice,
                clause=f"{title} is the same for all answers",
            )
        )  # fmt: skip
    return found


def _gap(analysis: ConfidenceAnalysis) -> list[Finding]:
    q = analysis.labelled
    sure = q["confidence"].to_numpy(dtype="float64")
    n, n_right = len(q), int(q["correct"].sum())
    # If the confidence were exactly right, the number of correct answers would be Poisson-binomial.
    tails = poisson_binomial_tail(1 - sure, n - n_right), poisson_binomial_tail(sure, n_right)
    p_value = min(1.0, 2 * min(tails))
    if p_value > _LEVEL:
        return []
    is_over = tails[0] < tails[1]
    name, word = ("overconfident", "high") if is_over else ("underconfident", "low")
    odd = q[q["correct"].ne(is_over)].sort_values("confidence", ascending=not is_over, kind="stable")
    said = f"{number(float(sure.mean()))} on average, where {part(n_right, n, 'answer')} are correct"
    return [
        Finding(
            name,
            f"The confidence is too {word}: {said}.",
            n_right, n, wilson_interval(n_right / n, n), float(sure.sum()), p_value,
            advice=FINDINGS[name].advice, query_ids=tuple(odd["query_id"]),
            clause=f"the confidence is too {word}: {said}",
        )
    ]  # fmt: skip


def _ranking(analysis: ConfidenceAnalysis) -> list[Finding]:
    value, low, high = analysis.auroc
    q = analysis.labelled
    n = len(q)
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
            n - int(q["correct"].sum()), n, severity="high" if tone == BAD else "medium", tone=tone,
            advice=FINDINGS[name].advice,
            clause="the confidence is higher for incorrect answers" if tone == BAD
            else "whether the confidence tells correct from incorrect answers is unclear",
        )
    ]  # fmt: skip


def _pass(analysis: ConfidenceAnalysis) -> list[Finding]:
    from scipy.stats import hypergeom

    q = analysis.labelled
    wrong, passes = ~q["correct"].astype(bool), q["passes"].astype(bool)
    of, n, n_passing = int(wrong.sum()), int((wrong & passes).sum()), int(passes.sum())
    if not n:
        return []
    # If the confidence knew nothing, the number would be hypergeometric.
    p_value = float(hypergeom.cdf(n, len(q), of, n_passing))
    by_chance, interval = of * n_passing / len(q), wilson_interval(n / of, of)
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
