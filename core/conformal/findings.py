"""What calibration says of a run, in sentences."""

from __future__ import annotations

import math

from core.conformal.analysis import ConformalAnalysis
from core.conformal.coverage import shortfall
from core.conformal.definitions import FINDINGS, FLAGGED, METRICS, NEW, OF_CORRECT, TEST
from core.conformal.promises import Coverage
from core.severity import BROKEN, LOSS, graded
from core.socket import BAD, GOOD, UNCLEAR, Finding
from core.stats import holm, wilson_interval
from core.text.display import about, count, number, part, percent

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


def _stale(analysis: ConformalAnalysis) -> list[Finding]:
    if not analysis.stale:
        return []
    n = len(analysis.queries)
    return [
        Finding(
            "stale_calibration", f"The calibration is stale: {'; '.join(analysis.stale)}.", n, n,
            severity=graded(BROKEN), advice=FINDINGS["stale_calibration"].advice,
            clause="the calibration is stale", fix="labels:more",
        )
    ]  # fmt: skip


def _drift(analysis: ConformalAnalysis) -> list[Finding]:
    drift = analysis.drift
    if not drift.n:
        return []
    judged = analysis.queries[analysis.queries["drift_p"].notna()]
    # Ville's inequality: the highest capital of a bet is a bound on its p-value.
    p_value = math.exp(-max(0.0, float(drift.log_martingale.max())))
    at = drift.n if drift.alarm is None else drift.alarm
    least = judged.iloc[at:].sort_values("drift_p", kind="stable")["query_id"]
    return [
        Finding(
            "score_drift",
            f"The level of the scores drifts away from the calibration: alarm at question {at + 1:,} of "
            f"{drift.n:,}.",
            drift.n - at, drift.n, p_value=p_value, severity=graded(BROKEN), query_ids=tuple(least),
            label="After the drift alarm", reads="from the drift alarm on",
            advice=FINDINGS["score_drift"].advice, clause="the questions no longer look like the calibration",
            fix="labels:more",
        )
    ]  # fmt: skip


def _short(analysis: ConformalAnalysis) -> list[Finding]:
    """Return a test of each promise; that of groups is their smallest p-value, corrected for their number."""
    found = [
        _broken(one, METRICS[one.name].title, one.p_value)
        for one in analysis.coverages.values()
        if one.parts and (one.name != OF_CORRECT or analysis.groups.empty)
    ]
    tested = analysis.groups[analysis.groups["n_test"] > 0]
    tested = tested[tested["threshold"] < math.inf]
    if len(tested):
        rows = [*tested.itertuples()]
        parts = [((row.n_calibration, row.n_test),) for row in rows]
        p_values = holm(
            [shortfall(row.n_covered, one, analysis.alpha) for row, one in zip(rows, parts, strict=True)]
        )
        worst = int(p_values.argmin())
        row = rows[worst]
        none, band = analysis.coverages[OF_CORRECT], (row.low, row.high)
        one = Coverage(
            OF_CORRECT, row.threshold, "", row.n_calibration, row.n_test, row.n_covered, band, none.alpha,
            parts[worst], none._scores,
        )  # fmt: skip
        found.append(_broken(one, f"{METRICS[OF_CORRECT].title} in {row.group}", float(p_values[worst])))
    return found


def _broken(one: Coverage, title: str, p_value: float) -> Finding:
    share, promised = one.n_covered / one.n_test, percent(1 - one.alpha)
    return Finding(
        "coverage_short",
        f"{title}: {one.n_covered:,} of {one.n_test:,} tested ({percent(share)}), where {promised} is "
        f"promised and {percent(one.band[0])} to {percent(one.band[1])} is to be expected.",
        one.n_covered, one.n_test, wilson_interval(share, one.n_test), (1 - one.alpha) * one.n_test, p_value,
        severity=graded(BROKEN), advice=FINDINGS["coverage_short"].advice,
        clause=f"a promise of {promised} holds for {part(one.n_covered, one.n_test)} only", fix="labels:more",
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
    look = "looks" if n == 1 else "look"
    sentence = (
        f"{n:,} of {count(of, 'answer')} {look} less typical than {percent(1 - alpha)} of the correct "
        f"answers; {about(analysis.n_by_chance)} would even if all were correct."
    )
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
        sentence += f" {over_splits(analysis)}"
    unclear = Finding(
        "answers_flagged", sentence, n, of, interval, analysis.n_by_chance, severity="low",
        query_ids=tuple(flagged["query_id"]), tone=UNCLEAR, label="Flagged",
        reads="whose answer is flagged",
    )  # fmt: skip
    return [
        Finding(
            "answers_flagged", sentence, n, of, interval, analysis.n_by_chance, p_value,
            graded(LOSS, surely), FINDINGS["answers_flagged"].advice if n else "",
            tuple(flagged["query_id"]), BAD, withheld, label="Flagged", reads="whose answer is flagged",
            otherwise=unclear if n else None,
        )
    ]  # fmt: skip


def over_splits(analysis: ConformalAnalysis) -> str:
    """Say how many answers other random halves would flag; empty where none is drawn.

    The numbers do not depend on the half of the run.
    """
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
        labels = f"n = {count(one.n, 'label')}"
        sentence = f"No confidence is high enough to certify {risk} ({labels}): {one.missing}."
        unclear = not one.out_of_reach
        return [
            Finding(
                "no_certificate", sentence, 0, one.n,
                severity=graded(BROKEN), tone=UNCLEAR if unclear else BAD,
                advice=FINDINGS["no_certificate"].advice if unclear else _NO_HELP,
                clause=f"no confidence is high enough to certify {risk}",
                fix="labels:more" if unclear else "signal:replace",
            )
        ]  # fmt: skip
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
