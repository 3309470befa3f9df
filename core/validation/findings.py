"""What validation says of a run, in sentences."""

from __future__ import annotations

import math
from typing import Any

from core.diagnosis import BAD, GOOD, UNCLEAR, Finding
from core.stats import wilson_interval
from core.text.display import count, number, part, percent, shorten
from core.validation.analysis import VALIDATOR_FAILED, ValidationAnalysis
from core.validation.definitions import FINDINGS, REASONS_OF_VALIDATORS

BEYOND_CHANCE = 0.05
_MANY, _MOST = 0.25, 0.5


def findings(analysis: ValidationAnalysis) -> tuple[Finding, ...]:
    """Return which answers are stopped and why, and whether objections meet the incorrect answers.

    Chance: as many flags as there are, spread at random over the labelled answers.
    """
    return (
        *_incomplete(analysis), *_stopped(analysis), *_against_chance(analysis),
        *(one for row in analysis.validators.to_dict("records") for one in _validator(analysis, row)),
        *_objected(analysis),
    )  # fmt: skip


def _incomplete(analysis: ValidationAnalysis) -> list[Finding]:
    q = analysis.queries
    failed = q["reason"].eq(VALIDATOR_FAILED).fillna(False)
    n, of = int(failed.sum()), int(failed.sum()) + analysis.n
    if not n:
        return []
    return [
        Finding(
            "validation_incomplete", f"{n:,} of {count(of, 'answer')} could not be validated.", n, of,
            wilson_interval(n / of, of), severity="low", advice=FINDINGS["validation_incomplete"].advice,
            query_ids=tuple(q.loc[failed, "query_id"]),
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
            n, of, interval,
            severity="high" if interval[0] > _MOST else "medium" if interval[0] > _MANY else "low",
            advice=FINDINGS["answers_stopped"].advice, query_ids=_worst_first(analysis, critical),
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
    has = "has" if n == 1 else "have"
    return [
        Finding(
            "answers_objected",
            f"{n:,} of {count(of, 'answer')} {has} an objection: {_why(analysis, failed)}.",
            n, of, wilson_interval(n / of, of), severity="low", advice=FINDINGS["answers_objected"].advice,
            query_ids=_worst_first(analysis, failed),
        )
    ]  # fmt: skip


def _against_chance(analysis: ValidationAnalysis) -> list[Finding]:
    """Say whether what is stopped is incorrect more often than chance would have it."""
    flags = analysis.stopped
    if math.isnan(flags.p_value):
        return []
    n, of = flags.wrong.count, flags.wrong.n
    tells = flags.p_value <= BEYOND_CHANCE
    right = f"{flags.right.count:,} of {count(flags.right.n, 'correct one')}"
    sentence = (
        f"Validation stops {n:,} of {count(of, 'incorrect answer')} and {right}; as many stops at random "
        f"would meet {number(flags.expected, '{:.1f}')} incorrect ones."
    )
    return [
        Finding(
            "stops_incorrect", sentence, n, of, flags.wrong.interval, flags.expected, flags.p_value, "low",
            tone=GOOD if tells else UNCLEAR, topic="stopped",
            clause=f"it stops {part(n, of, 'incorrect answer')} and {right}" if tells else "",
        )
    ]  # fmt: skip


def _validator(analysis: ValidationAnalysis, row: dict[str, Any]) -> list[Finding]:
    """Say whether a validator flags incorrect answers more often than correct ones."""
    n, of, right = int(row["wrong_flagged"]), int(row["n_wrong"]), int(row["n_right"])
    if not of or not right or not n + row["right_flagged"]:
        return []
    tells = row["p_adjusted"] <= BEYOND_CHANCE
    if not tells and row["recall"] > row["false_positive_rate"]:
        return []
    name = "telling_validator" if tells else "blind_validator"
    costly = row["false_positive_rate_low"] > _MOST
    sentence = (
        f"{shorten(row['validator'])} objects to {n:,} of {count(of, 'incorrect answer')} "
        f"({percent(row['recall'])}) and to {row['right_flagged']:,} of {count(right, 'correct one')} "
        f"({percent(row['false_positive_rate'])})."
    )
    # No test is possible where every answer is flagged: that cannot tell anything.
    p_value = None if math.isnan(row["p_adjusted"]) else float(row["p_adjusted"])
    q = analysis.queries
    flagged = [
        id_
        for id_, one in analysis.outcomes.items()
        if any(v.validator == row["validator"] for v in one.failed)
    ]
    correct = set(q.loc[q["correct"].eq(not tells).fillna(False), "query_id"])
    return [
        Finding(
            name, sentence, n, of, (row["recall_low"], row["recall_high"]), float(row["wrong_by_chance"]),
            p_value, "medium" if costly and not tells else "low", FINDINGS[name].advice,
            tuple(sorted(flagged, key=lambda id_: id_ not in correct)),
            GOOD if tells else BAD if costly else UNCLEAR, topic=name,
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
