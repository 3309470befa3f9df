"""What calibration says of a run: findings in sentences, headline numbers, and what a simulation recovers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd

from core.analyses import RECOVERED, Analyses
from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import (
    CALIBRATION,
    DELTA,
    FINDINGS,
    FLAGGED,
    METRICS,
    NEW,
    OF_CORRECT,
    OF_DISTANCE,
    OF_SCORE,
    OF_SETS,
    TEST,
)
from core.conformal.promises import Coverage
from core.conformal.split import shortfall
from core.severity import BROKEN, LOSS, graded
from core.socket import BAD, GOOD, REASON, UNCLEAR, Finding, Number
from core.stats import holm, wilson_interval
from core.text.display import about, count, number, part, percent, share_interval
from core.text.strict import finite

_NO_HELP = "Use a better confidence signal, or accept a higher error rate α."


def findings(analysis: ConformalAnalysis) -> tuple[Finding, ...]:
    """Return whether the promises hold, which answers are flagged, and what could not be certified.

    Chance: of n answers as good as the correct ones, α n are flagged. A promise is tested by the exact
    distribution of what its thresholds cover, but for random halves, which can differ by chance only; drift
    from a store by Ville's bound.
    """
    if not analysis.calibrated:
        return ()
    short = () if analysis.is_random_half else _short(analysis)
    return (*_stale(analysis), *_drift(analysis), *short, *_flagged(analysis), *_certificate(analysis))


def _broken(name: str, sentence: str, n: int, of: int, clause: str, **parts: Any) -> Finding:
    """Return the finding that a promise is void; more labels help."""
    grave = {"severity": graded(BROKEN), "advice": FINDINGS[name].advice, "fix": "labels:more"}
    return Finding(name, sentence, n, of, clause=clause, **{**grave, **parts})


def _stale(analysis: ConformalAnalysis) -> list[Finding]:
    n, sentence = len(analysis.queries), f"The calibration is stale: {'; '.join(analysis.stale)}."
    found = _broken("stale_calibration", sentence, n, n, "the calibration is stale")
    return [found] if analysis.stale else []


def _drift(analysis: ConformalAnalysis) -> list[Finding]:
    drift = analysis.drift
    if not drift.n:
        return []
    judged = analysis.queries[analysis.queries["drift_p"].notna()]
    # Ville's inequality: the highest capital of a bet is a bound on its p-value.
    p_value = math.exp(-max(0.0, float(drift.log_martingale.max())))
    at = drift.n if drift.alarm is None else drift.alarm
    least = judged.iloc[at:].sort_values("drift_p", kind="stable")["query_id"]
    sentence = (
        f"The level of the scores drifts away from the calibration: alarm at question {at + 1:,} of "
        f"{drift.n:,}."
    )
    return [
        _broken(
            "score_drift", sentence, drift.n - at, drift.n,
            "the questions no longer look like the calibration", p_value=p_value,
            query_ids=tuple(least), label="After the drift alarm", reads="from the drift alarm on",
        )
    ]  # fmt: skip


def _short(analysis: ConformalAnalysis) -> list[Finding]:
    """Return a test of each promise; that of groups is their smallest p-value, corrected for their number."""
    alpha, found = analysis.alpha, []
    for one in analysis.coverages.values():
        if one.parts and (one.name != OF_CORRECT or analysis.groups.empty):
            p_value = shortfall(one.n_covered, one.parts, alpha)
            title = METRICS[one.name].title
            found.append(_short_of(title, one.n_covered, one.n_test, one.band, alpha, p_value))
    groups = analysis.groups
    rows = [*groups[(groups["n_test"] > 0) & (groups["threshold"] < math.inf)].itertuples()]
    if rows:
        tests = [shortfall(row.n_covered, [(row.n_calibration, row.n_test)], alpha) for row in rows]
        p_values = holm(tests)
        row, p_value = rows[int(p_values.argmin())], float(p_values.min())
        title = f"{METRICS[OF_CORRECT].title} in {row.group}"
        found.append(_short_of(title, row.n_covered, row.n_test, (row.low, row.high), alpha, p_value))
    return found


def _short_of(
    title: str, n_covered: int, n_test: int, band: tuple[float, float], alpha: float, p_value: float
) -> Finding:
    share, promised = n_covered / n_test, percent(1 - alpha)
    sentence = (
        f"{title}: {n_covered:,} of {n_test:,} tested ({percent(share)}), where {promised} is "
        f"promised and {percent(band[0])} to {percent(band[1])} is to be expected."
    )
    return _broken(
        "coverage_short", sentence, n_covered, n_test,
        f"a promise of {promised} holds for {part(n_covered, n_test)} only",
        interval=wilson_interval(share, n_test), expected_by_chance=(1 - alpha) * n_test, p_value=p_value,
    )  # fmt: skip


def _flagged(analysis: ConformalAnalysis) -> list[Finding]:
    correct = analysis.coverages[OF_CORRECT]
    if correct.reason:
        return [
            Finding(
                "few_labels",
                f"No answer can be flagged: {correct.reason}",
                correct.n_calibration, correct.n_calibration, severity="low", tone=UNCLEAR,
                advice=FINDINGS["few_labels"].advice, fix="labels:more",
            )
        ]  # fmt: skip
    n, of, alpha = analysis.n_flagged, analysis.n_judged, analysis.alpha
    if not of:
        return []
    q, splits = analysis.queries, analysis.over_splits
    flagged = q[q["verdict"] == FLAGGED].sort_values("p_value", kind="stable")
    share, interval = n / of, wilson_interval(n / of, of)
    p_value, surely = shortfall(of - n, analysis.parts, alpha), interval
    withheld = f"{part(n, of, 'answer')} should be withheld ({percent(share, interval)})"
    if splits is not None:
        # Not by the half that the run happens to have: another seed must not change what is said.
        p_value = splits.p_value
        surely = wilson_interval(splits.median / splits.of, splits.of)
        withheld = (
            f"{splits.low:,} to {splits.high:,} of {count(splits.of, 'answer')} should be withheld, "
            "depending on which labels calibrate"
        )
    unclear = Finding(
        "answers_flagged", flagged_said(analysis), n, of, interval, analysis.n_by_chance, severity="low",
        query_ids=tuple(flagged["query_id"]), tone=UNCLEAR, label="Flagged",
        reads="whose answer is flagged",
    )  # fmt: skip
    beyond_chance = replace(
        unclear, p_value=p_value, severity=graded(LOSS, surely), tone=BAD, clause=withheld,
        advice=FINDINGS["answers_flagged"].advice if n else "", otherwise=unclear if n else None,
    )  # fmt: skip
    return [beyond_chance]


def flagged_said(analysis: ConformalAnalysis) -> str:
    """Say how many answers are flagged, how many by chance, and how many other random halves would flag."""
    n, look = analysis.n_flagged, "looks" if analysis.n_flagged == 1 else "look"
    sentence = (
        f"{n:,} of {count(analysis.n_judged, 'answer')} {look} less typical than "
        f"{percent(1 - analysis.alpha)} of the correct answers; {about(analysis.n_by_chance)} would even if "
        f"all were correct. {over_splits(analysis)}"
    )
    return sentence.rstrip()


def over_splits(analysis: ConformalAnalysis) -> str:
    """Say how many answers other random halves would flag; empty where none is drawn."""
    one = analysis.over_splits
    if one is None:
        return ""
    return (
        f"Over {one.n_splits:,} random halves of the labels it is {one.low:,} to {one.high:,} of {one.of:,}, "
        f"with a median of {one.median:,}."
    )


def _certificate(analysis: ConformalAnalysis) -> list[Finding]:
    one, q = analysis.final, analysis.queries
    if not one.n:
        return []
    risk = f"at most {percent(one.alpha)} wrong"
    if one.threshold is None:
        none = f"no confidence is high enough to certify {risk}"
        sentence = f"N{none[1:]} (n = {count(one.n, 'label')}): {one.missing}."
        other = {"advice": _NO_HELP, "fix": "signal:replace"} if one.out_of_reach else {"tone": UNCLEAR}
        return [_broken("no_certificate", sentence, 0, one.n, none, **other)]
    others = q["role"].isin([TEST, NEW]) & q["confidence"].notna()
    answered = others & (q["confidence"] >= one.threshold)
    n, of = int(answered.sum()), int(others.sum())
    return [
        Finding(
            "certificate",
            f"Answering only from a confidence of {number(one.threshold)} on keeps {n:,} of "
            f"{count(of, 'answer')}, {risk} with probability {percent(1 - one.delta)} over the "
            f"{count(one.n, 'label')}.",
            n, of, wilson_interval(n / of, of) if of else None, severity="low", tone=GOOD,
            query_ids=tuple(q.loc[answered, "query_id"]), label="Answered",
            reads="that reach the certified confidence",
        )
    ]  # fmt: skip


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
        Number("mean_set_size", "Mean answers in a set", finite(sets.mean_size) if sets else None,
            n=analysis.coverages[OF_SETS].n_test if sets else 0, define="set_size", place="row"),
        Number("distance_threshold", "Distance to the truth, at most",
            _finite(analysis.coverages.get(OF_DISTANCE)), define=OF_DISTANCE, place="row",
            n=analysis.coverages[OF_DISTANCE].n_calibration if OF_DISTANCE in analysis.coverages else 0,
            noun="answer"),
        Number("final_threshold", "Threshold of the score, from all labels", finite(analysis.final_threshold),
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
        Number("drift_factor", "Evidence of drift", finite(_capital(analysis)), n=drift.n, define="drift",
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
    return None if one is None else finite(one.threshold)


def _capital(analysis: ConformalAnalysis) -> float:
    path = analysis.drift.log_martingale
    return math.exp(min(700.0, float(path[-1]))) if len(path) and analysis.drift.n else math.nan


def _why(analysis: ConformalAnalysis) -> str:
    return analysis.coverages[OF_CORRECT].reason.rstrip(".") if analysis.calibrated else ""


def recover(diagnosis: Analyses) -> pd.DataFrame:
    """Return each promise and the share of the tested that kept it; they differ by chance alone."""
    found = diagnosis["conformal"]
    rows = []
    for one in found.coverages.values():
        if one.n_test and not one.reason:
            share, known = one.n_covered / one.n_test, METRICS[one.name]
            interval = wilson_interval(share, one.n_test)
            meaning = f"At least the planted share is promised. {known.meaning}"
            rows.append((known.title, 1 - found.alpha, share, *interval, one.n_test, meaning, ""))
    return pd.DataFrame(rows, columns=[*RECOVERED])
