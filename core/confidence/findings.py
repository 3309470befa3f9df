"""What the confidence of a run gets wrong, and what it does well, in sentences and in headline numbers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from core.calibration.weighted import whatif
from core.confidence.analysis import ConfidenceAnalysis
from core.confidence.definitions import BANDS, FINDINGS
from core.context_score import NO_BAND
from core.severity import BROKEN, LOSS, WRONG, graded
from core.socket import GOOD, REASON, UNCLEAR, Finding, Number
from core.stats import mean_in_unit, poisson_binomial_tail, wilson_interval
from core.text.display import about, count, number, part, percent, share_interval
from core.text.strict import finite

_HALF = 0.5
_FEWEST = 5  # equal values that are no coincidence
_REPLACE = "signal:replace"


def findings(analysis: ConfidenceAnalysis) -> tuple[Finding, ...]:
    """Return whether the confidence is too high or too low, ranks correct answers first, and stops errors.

    Chance: of answers with the confidence p a share of 1 − p is incorrect; a confidence that is unrelated to
    correctness lets incorrect answers pass as often as all. Each p-value is two-sided.
    """
    return (*_ranges(analysis), *_constant(analysis), *_gap(analysis), *_ranking(analysis), *_pass(analysis))


def _ranges(analysis: ConfidenceAnalysis) -> list[Finding]:
    return [
        _finding(
            "range_mismatch", one.sentence, one.n_outside or one.n, one.n, severity=graded(BROKEN),
            clause="a signal contradicts its declared range",
        )
        for one in analysis.warnings
    ]  # fmt: skip


def _constant(analysis: ConfidenceAnalysis) -> list[Finding]:
    found = []
    for name in (name for name, weight in analysis.weighting.weights.items() if weight):
        known = analysis.signals[name][~np.isnan(analysis.signals[name])]
        if known.size < _FEWEST or np.ptp(known) > 0:
            continue
        title, n = analysis.used.titles[name], known.size
        said = f"{title} is the same for all {count(n, 'answer')}: it separates none of them."
        found.append(
            _finding(
                "constant_signal", said, n, n, severity=graded(LOSS, wilson_interval(1.0, n)), fix=_REPLACE,
                clause=f"{title} is the same for all answers",
            )
        )  # fmt: skip
    return found


def _gap(analysis: ConfidenceAnalysis) -> list[Finding]:
    q = analysis.labelled
    sure = q["confidence"].to_numpy(dtype="float64")
    n, n_right = len(q), int(q["correct"].sum())
    if not n:
        return []
    # If the confidence were exactly right, the number of correct answers would be Poisson-binomial.
    tails = poisson_binomial_tail(1 - sure, n - n_right), poisson_binomial_tail(sure, n_right)
    is_over, mean, interval = tails[0] < tails[1], float(sure.mean()), wilson_interval(n_right / n, n)
    # Too high: so many more answers are wrong than promised. Too low: correct ones are distrusted.
    severity = graded(WRONG, (mean - interval[1], 1)) if is_over else graded(LOSS, (interval[0] - mean, 1))
    wide = q["confidence"].ge(_HALF) == is_over  # the other way than the answer is
    odd = q[q["correct"].ne(is_over) & wide].sort_values("confidence", ascending=not is_over, kind="stable")
    is_ = "is" if n_right == 1 else "are"
    said = (
        f"the confidence is too {'high' if is_over else 'low'}: {number(mean)} on average, where "
        f"{part(n_right, n, 'answer')} {is_} correct"
    )
    which = "an incorrect answer and a confidence of {:g} or more"
    if not is_over:
        which = "a correct answer and a confidence below {:g}"
    return [
        _finding(
            "overconfident" if is_over else "underconfident", f"T{said[1:]}.", n_right, n, interval,
            float(sure.sum()), min(1.0, 2 * min(tails)), severity=severity, fix="confidence:calibrate",
            query_ids=tuple(odd["query_id"]), reads=f"with {which.format(_HALF)}", clause=said,
        )
    ]  # fmt: skip


def _ranking(analysis: ConfidenceAnalysis) -> list[Finding]:
    value, low, high = analysis.auroc
    if math.isnan(value):
        return []
    correct = analysis.labelled["correct"].astype(bool)
    n, n_wrong = len(correct), int((~correct).sum())
    shown = (
        f"AUROC {number(value)} (95 % interval {number(low)} to {number(high)}; {n - n_wrong:,} correct and "
        f"{n_wrong:,} incorrect; 0.5 by chance)"
    )
    blind = _finding(
        "confidence_blind",
        f"Whether correct answers have the higher confidence is unclear: {shown}.",
        n_wrong, n, tone=UNCLEAR, fix="labels:more",
        clause="whether the confidence separates correct from incorrect answers is unclear",
    )  # fmt: skip
    if value == 0.5:
        return [blind]
    beyond = partial(_finding, n=n_wrong, of=n, p_value=analysis.auroc_p_value, otherwise=blind)
    if value > 0.5:
        clause = f"the confidence is higher for correct answers (AUROC {number(value)})"
        said = f"Correct answers have the higher confidence: {shown}."
        return [beyond("confidence_ranks", said, tone=GOOD, clause=clause)]
    return [
        beyond(
            "confidence_backwards", f"Incorrect answers have the higher confidence: {shown}.",
            severity=graded(BROKEN), fix=_REPLACE, clause="the confidence is higher for incorrect answers",
        )
    ]  # fmt: skip


def _pass(analysis: ConfidenceAnalysis) -> list[Finding]:
    """Return whether the threshold stops more of the incorrect answers than it would by chance, or fewer."""
    from scipy.stats import hypergeom

    q = analysis.labelled
    wrong, passes = ~q["correct"].astype(bool), q["passes"].astype(bool)
    of, n, n_passing = int(wrong.sum()), int((wrong & passes).sum()), int(passes.sum())
    if not of or not n_passing:
        return []
    # If the confidence were unrelated to correctness, the number would be hypergeometric.
    chance = hypergeom(len(q), of, n_passing)
    p_value = min(1.0, 2 * float(min(chance.cdf(n), chance.sf(n - 1))))
    expected, threshold = of * n_passing / len(q), f"the threshold {analysis.weighting.threshold:g}"
    interval, pass_ = wilson_interval(n / of, of), "passes" if 1 in (n, of) else "pass"
    # What passes is what there is to read, also where it is good how few pass.
    ids = tuple(q[wrong & passes].sort_values("confidence", ascending=False, kind="stable")["query_id"])
    reads = "with an incorrect answer that passes the threshold"
    passing = partial(_finding, n=n, of=of, query_ids=ids, label="Incorrect, passes", reads=reads)
    if n_passing == len(q):
        all_of = f"all {count(of, 'incorrect answer')} pass" if of > 1 else "the incorrect answer passes"
        return [
            passing(
                "threshold_stops_nothing",
                f"{threshold.capitalize()} stops none of {count(len(q), 'labelled answer')}: {all_of}.",
                severity=graded(WRONG, wilson_interval(of / len(q), len(q))), fix="threshold:raise",
                clause=f"no labelled answer is below {threshold}",
            )
        ]  # fmt: skip
    said = (
        f"{n:,} of {count(of, 'incorrect answer')} {pass_} {threshold}; {about(expected)} would if "
        "confidence were unrelated to correctness."
    )
    clause = (
        f"{part(n, of, 'incorrect answer')} {pass_} the confidence threshold ({percent(n / of, interval)}; "
        f"{percent(expected / of)} by chance)"
    )
    counted = partial(passing, sentence=said, interval=interval, expected_by_chance=expected)
    unclear = None
    if n:
        advice = "Label more answers before you rely on this threshold."
        unclear = counted("wrong_answers_pass", tone=UNCLEAR, advice=advice, fix="labels:more")
    if n == expected:
        return [] if unclear is None else [unclear]
    tested = partial(counted, p_value=p_value, otherwise=unclear, clause=clause)
    if n < expected:
        return [tested("wrong_answers_stopped", tone=GOOD)]
    return [tested("wrong_answers_pass", severity=graded(BROKEN), fix=_REPLACE)]


def _finding(name: str, sentence: str, *rest: Any, **more: Any) -> Finding:
    """Return a finding with the advice of its definition."""
    return Finding(name, sentence, *rest, **{"advice": FINDINGS[name].advice, **more})


def numbers(analysis: ConfidenceAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers; without a value where no answer has a confidence."""
    q, quality = analysis.queries, analysis.quality
    mean, *interval = mean_in_unit(analysis.confidence)
    found = whatif(analysis.confidence, analysis.used.correct, analysis.weighting.threshold)
    n, labelled = found.n, quality.n
    threshold = f"threshold {analysis.weighting.threshold:g}"
    share = float(analysis.labelled["correct"].mean()) if labelled else math.nan
    bands = {word: k for word, k in q["band"].value_counts().to_dict().items() if word != NO_BAND.word}
    measured = any(len(analysis.run[name]) for name in ("signals", "confidences"))
    gap, gap_interval = analysis.gap
    uncertainty, *around = mean_in_unit(q["combined_uncertainty"])
    reliable, n_reliable = analysis.reliable("is_reliable")
    strict, n_strict = analysis.reliable("is_reliable_strict")
    chance_ece, most_ece = analysis.ece_by_chance
    fitted = analysis.fit_note if labelled else ""
    auroc, *auroc_interval = analysis.auroc
    parts = analysis.brier
    of_brier = (
        f"reliability {number(parts.reliability)} − resolution {number(parts.resolution)} + uncertainty "
        f"{number(parts.uncertainty)} + within {number(parts.within)}"
        if labelled else ""
    )  # fmt: skip
    weights = ", ".join(f"{name} {weight:.2g}" for name, weight in analysis.weighting.weights.items())
    return (
        Number("mean_confidence", "Mean confidence", finite(mean), n=n, noun="answer",
            interval=_ends(interval), define="confidence", place="card", note=analysis.used.reason),
        Number("n_passing", "Reach the threshold", found.n_passing if n else None, of=n,
            define="passes", place="card", note=threshold if n else "", cases="queries.passes:True"),
        Number("confidence_bands", "Answers by band", bands if n else None, noun="answer", define=BANDS,
            place="row"),
        _correct(analysis, True, share), _correct(analysis, False, share),
        Number("confidence_gap", "Mean confidence − accuracy", finite(gap), n=labelled, noun="answer",
            interval=_ends(gap_interval), chance=0.0 if labelled else None, define="confidence", place="row"),
        Number("confidence_ece", "Calibration error (ECE)", finite(quality.ece), n=labelled, noun="answer",
            chance=finite(chance_ece), define="ece", place="card",
            note="; ".join(filter(None, [f"at most {number(most_ece)} in 95 % of such runs", fitted]))
            if labelled else ""),
        Number("confidence_mce", "Largest calibration error (MCE)", finite(quality.mce), n=labelled,
            noun="answer", define="mce", place="row"),
        Number("confidence_brier", "Brier score", finite(quality.brier), n=labelled, noun="answer",
            chance=finite(parts.uncertainty), note=of_brier, define="brier", place="row"),
        Number("confidence_auroc", "Confidence AUROC", finite(auroc), n=labelled, noun="answer",
            interval=_ends(auroc_interval), chance=0.5 if finite(auroc) is not None else None, define="auroc",
            place="card"),
        Number("confidence_aurc", "Confidence AURC", finite(quality.aurc), n=labelled, noun="answer",
            chance=finite(1 - share), define="aurc", place="row"),
        Number("mean_combined_uncertainty", "Mean combined uncertainty", finite(uncertainty),
            n=int(q["combined_uncertainty"].notna().sum()), noun="answer", interval=_ends(around),
            define="combined_uncertainty", place="row"),
        Number("n_reliable", "Reliable by the combined decision",
            reliable if n_reliable else None, of=n_reliable, define="is_reliable",
            place="row", cases="queries.is_reliable:True"),
        Number("n_reliable_strict", "Reliable by the stricter decision",
            strict if n_strict else None, of=n_strict, define="is_reliable_strict",
            place="row", cases="queries.is_reliable_strict:True"),
        Number("confidence_undefined_reasons", "No confidence because",
            q["reason"].value_counts().to_dict() if measured else None, define=REASON,
            place="row"),
        Number("confidence_weights", "Weights", weights if n else None, define="weights", place="setup"),
        Number("confidence_threshold_used", value=analysis.weighting.threshold if n else None),
        Number("confidence_origin", value=analysis.used.origin if n else None),
        Number("confidence_map", value=analysis.used.method.map.kind if n else None),
        Number("n_taught", value=analysis.n_taught if labelled else None),
    )  # fmt: skip


def _correct(analysis: ConfidenceAnalysis, passes: bool, share: float) -> Number:
    """Return how many of the answers that pass, or do not, are correct."""
    right = analysis.labelled.loc[analysis.labelled["passes"].eq(passes), "correct"]
    n, of = int(right.sum()), len(right)
    return Number(
        "n_correct_passing" if passes else "n_correct_below",
        f"Correct, of answers that {'pass' if passes else 'do not pass'}",
        n if of else None, of=of, noun="answer", define="passes", place="row",
        chance=share * of if of else None,
        note=share_interval(wilson_interval(n / of, of)) if of else "",
    )  # fmt: skip


def _ends(interval: tuple[float, ...] | list[float]) -> tuple[float, float] | None:
    low, high = interval
    return None if math.isnan(low) or math.isnan(high) else (low, high)
