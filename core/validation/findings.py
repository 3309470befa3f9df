"""What validation says of a run, in sentences."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from core.severity import BROKEN, LOSS, NOTE, WRONG, graded
from core.socket import BAD, GOOD, UNCLEAR, Finding
from core.stats import wilson_interval
from core.text.display import count, number, part, percent, shorten
from core.validation.analysis import VALIDATOR_FAILED, ValidationAnalysis
from core.validation.definitions import FINDINGS, REASONS_OF_VALIDATORS

# A gate stops at least this much more of the incorrect answers than of the correct ones, or it is none.
USEFUL = 0.25


def findings(analysis: ValidationAnalysis) -> tuple[Finding, ...]:
    """Return which answers are stopped and why, and whether objections meet the incorrect answers.

    Chance: as many flags as there are, spread at random over the labelled answers.
    """
    return (
        *_incomplete(analysis), *_stopped(analysis), *_gate(analysis),
        *(one for row in analysis.validators.to_dict("records") for one in _validator(analysis, row)),
        *_objected(analysis),
    )  # fmt: skip


def _incomplete(analysis: ValidationAnalysis) -> list[Finding]:
    q = analysis.queries
    failed = q["reason"].eq(VALIDATOR_FAILED).fillna(False)
    n, of = int(failed.sum()), int(failed.sum()) + analysis.n
    if not n:
        return []
    interval = wilson_interval(n / of, of)
    return [
        Finding(
            "validation_incomplete", f"{n:,} of {count(of, 'answer')} could not be validated.", n, of,
            interval, severity=graded(LOSS, interval), advice=FINDINGS["validation_incomplete"].advice,
            query_ids=tuple(q.loc[failed, "query_id"]), label="Not validated",
            reads="whose answer could not be validated",
        )
    ]  # fmt: skip


def _stopped(analysis: ValidationAnalysis) -> list[Finding]:
    q, of = analysis.queries, analysis.n
    critical = q["critical"].fillna(False)
    n = int(critical.sum())
    if not n:
        return []
    interval = wilson_interval(n / of, of)
    are = "is" if n == 1 else "are"
    return [
        Finding(
            "answers_stopped", f"{n:,} of {count(of, 'answer')} {are} stopped: {_why(analysis, critical)}.",
            n, of, interval, severity=graded(WRONG, interval), advice=FINDINGS["answers_stopped"].advice,
            query_ids=_worst_first(analysis, critical), label="Stopped", reads="whose answer is stopped",
            clause=f"validation stops {part(n, of, 'answer')} ({percent(n / of, interval)})",
            topic="stopped",
        )
    ]  # fmt: skip


def _objected(analysis: ValidationAnalysis) -> list[Finding]:
    q, of = analysis.queries, analysis.n
    failed = q["passed"].eq(False).fillna(False)
    n = int(failed.sum())
    if not n:
        return []
    interval = wilson_interval(n / of, of)
    has = "has" if n == 1 else "have"
    return [
        Finding(
            "answers_objected",
            f"{n:,} of {count(of, 'answer')} {has} an objection: {_why(analysis, failed)}.",
            n, of, interval, severity=graded(NOTE), advice=FINDINGS["answers_objected"].advice,
            query_ids=_worst_first(analysis, failed), label="Objections",
            reads="whose answer has an objection",
        )
    ]  # fmt: skip


def _gate(analysis: ValidationAnalysis) -> list[Finding]:
    """Say whether what is stopped is incorrect more often than chance would have it.

    A gate that does not separate has no p-value of its own: it is refuted where the difference between the
    shares of the incorrect and of the correct answers that it stops is surely below `USEFUL`. With few
    labelled answers that cannot be told.
    """
    flags = analysis.stopped
    n, of = flags.wrong.count, flags.wrong.n
    if not of:
        return []
    stops = f"stops {n or 'none'} of {count(of, 'incorrect answer')}"
    if not n and of == 1:
        stops = "does not stop the only incorrect answer"
    if flags.n_flagged:
        also = "but stops" if not n and of == 1 else "and"
        stops += f" {also} {flags.right.count or 'none'} of {count(flags.right.n, 'correct one')}"
    expected = number(flags.expected, "{:.1f}")
    by_chance = f"; as many stops at random would meet {expected} incorrect ones" if flags.n_flagged else ""
    q = analysis.queries
    wrong, critical = (~q["correct"]).fillna(False), q["critical"]
    passed_on = tuple(q.loc[wrong & critical.eq(False).fillna(False), "query_id"])
    fails = Finding(
        "gate_fails", f"Validation {stops}{by_chance}.", n, of, flags.wrong.interval,
        flags.expected if flags.n_flagged else None,
        None if math.isnan(flags.p_value) else flags.p_value, graded(BROKEN),
        "Do not use these validators as a gate here"
        + (": they stop hardly more of the incorrect answers than of the correct ones." if n else "."),
        passed_on, BAD, f"validation {stops}", topic="stopped", fix="gate:replace",
        reads="with an incorrect answer that is not stopped",
    )  # fmt: skip
    unclear = replace(
        fails, name="gate_unclear", severity="low", tone=UNCLEAR, clause="", fix="labels:more",
        advice=FINDINGS["gate_unclear"].advice,
    )  # fmt: skip
    otherwise = fails if flags.advantage[1] < USEFUL else unclear
    if math.isnan(flags.p_value):
        return [otherwise]
    if n <= flags.expected:
        worse = "Do not use these validators as a gate here: they stop correct answers instead."
        return [replace(fails, advice=worse, otherwise=otherwise)]
    stopped = tuple(q.loc[wrong & critical.fillna(False), "query_id"])
    return [
        replace(
            fails, name="stops_incorrect", severity="low", advice="", query_ids=stopped, tone=GOOD, fix="",
            reads="with an incorrect answer that is stopped",
            otherwise=otherwise,
        )
    ]  # fmt: skip


def _validator(analysis: ValidationAnalysis, row: dict[str, Any]) -> list[Finding]:
    """Say whether a validator flags incorrect answers more often than correct ones, or most correct ones."""
    n, of, right = int(row["wrong_flagged"]), int(row["n_wrong"]), int(row["n_right"])
    if not of or not right or not n + row["right_flagged"]:
        return []
    sentence = (
        f"{shorten(row['validator'])} objects to {n:,} of {count(of, 'incorrect answer')} "
        f"({percent(row['recall'])}) and to {row['right_flagged']:,} of {count(right, 'correct one')} "
        f"({percent(row['false_positive_rate'])})."
    )
    q = analysis.queries
    flagged = [
        id_
        for id_, one in analysis.outcomes.items()
        if any(v.validator == row["validator"] for v in one.failed)
    ]
    correct = set(q.loc[q["correct"].fillna(False), "query_id"])
    alarms = (row["false_positive_rate_low"], row["false_positive_rate_high"])
    # No test is possible where every answer is flagged: that cannot separate anything.
    p_value = None if math.isnan(row["p_value"]) else float(row["p_value"])
    fails = Finding(
        "unreliable_objection", sentence, n, of, (row["recall_low"], row["recall_high"]),
        float(row["wrong_by_chance"]), p_value, graded(LOSS, alarms), FINDINGS["unreliable_objection"].advice,
        tuple(sorted(flagged, key=lambda id_: id_ not in correct)), topic="unreliable_objection",
        label=f"{shorten(row['validator'])} objects", reads=f"that {shorten(row['validator'])} objects to",
    )  # fmt: skip
    otherwise = fails if fails.severity != "low" else None
    if p_value is None:
        return [] if otherwise is None else [otherwise]
    if n <= fails.expected_by_chance:  # type: ignore[operator]  # it is a number here
        return [replace(fails, severity=graded(BROKEN), otherwise=otherwise)]
    return [
        replace(
            fails, name="reliable_objection", severity="low", advice="", tone=GOOD, otherwise=otherwise,
            query_ids=tuple(sorted(flagged, key=lambda id_: id_ in correct)), topic="reliable_objection",
        )
    ]  # fmt: skip


def _why(analysis: ValidationAnalysis, chosen: Any) -> str:
    """Return the reasons of some answers with their counts, the most frequent first."""
    codes = analysis.queries.loc[chosen, "reasons"].str.split(", ").explode().value_counts()
    return ", ".join(f"{REASONS_OF_VALIDATORS[code].title.lower()} {n:,}" for code, n in codes.items())


def _worst_first(analysis: ValidationAnalysis, chosen: Any) -> tuple[str, ...]:
    rows = analysis.queries[chosen].sort_values(
        ["context_score", "n_failed"], ascending=[True, False], kind="stable"
    )
    return tuple(rows["query_id"])
