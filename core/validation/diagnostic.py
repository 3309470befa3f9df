"""The diagnostic *validation*: which answers should not be shown as they are, and why."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from core.analyses import Analyses
from core.severity import BROKEN, LOSS, NOTE, WRONG, Harm, graded
from core.socket import (
    BAD,
    GOOD,
    REASON,
    UNCLEAR,
    Diagnostic,
    Export,
    Finding,
    Need,
    Number,
    QuestionColumn,
)
from core.spreadsheet import csv_bytes
from core.stats import wilson_interval
from core.text.display import count, number, p_text, part, percent, share_interval, shorten
from core.validation.analysis import VALIDATOR_FAILED, ValidationAnalysis, analyse_validation
from core.validation.definitions import BANDS, CODES, DEFINITIONS, FINDINGS, METRICS, REASONS_OF_VALIDATORS
from core.validation.fallback import NAME, OURS
from core.validation.metrics import Average, Share
from core.validation.step import ValidationStep

# A gate stops at least this much more of the incorrect answers than of the correct ones, or it is none.
USEFUL = 0.25


def findings(analysis: ValidationAnalysis) -> tuple[Finding, ...]:
    """Return which answers are stopped and why, and whether objections meet the incorrect answers.

    Chance: as many flags as there are, spread at random over the labelled answers.
    """
    q, of = analysis.queries, analysis.n
    failed, critical = q["reason"].eq(VALIDATOR_FAILED).fillna(False), q["critical"].fillna(False)
    objected = q["passed"].eq(False).fillna(False)
    return (
        *_counted(analysis, "validation_incomplete", failed, of + int(failed.sum()), "could not be validated",
            weight=LOSS, label="Not validated", reads="whose answer could not be validated"),
        *_counted(analysis, "answers_stopped", critical, of, "{is} stopped", weight=WRONG, label="Stopped",
            reads="whose answer is stopped", clause="validation stops", topic="stopped"),
        *_gate(analysis),
        *(one for row in analysis.validators.to_dict("records") for one in _validator(analysis, row)),
        *_counted(analysis, "answers_objected", objected, of, "{has} an objection", label="Objections",
            reads="whose answer has an objection"),
    )  # fmt: skip


def _counted(
    analysis: ValidationAnalysis, name: str, chosen: Any, of: int, said: str, weight: Harm = NOTE, **told: Any
) -> list[Finding]:
    """Say of how many answers something is true, and why where validators objected to them."""
    n = int(chosen.sum())
    if not n:
        return []
    interval = wilson_interval(n / of, of)
    said = said.format(**{"is": "is" if n == 1 else "are", "has": "has" if n == 1 else "have"})
    codes = analysis.queries.loc[chosen, "reasons"].str.split(", ").explode().value_counts()
    why = ", ".join(f"{REASONS_OF_VALIDATORS[code].title.lower()} {k:,}" for code, k in codes.items())
    if "clause" in told:
        told["clause"] += f" {part(n, of, 'answer')} ({percent(n / of, interval)})"
    worst = analysis.queries[chosen].sort_values(
        ["context_score", "n_failed"], ascending=[True, False], kind="stable"
    )
    return [
        Finding(
            name, f"{n:,} of {count(of, 'answer')} {said}{why and ': '}{why}.", n, of, interval,
            severity=graded(weight, interval), advice=FINDINGS[name].advice,
            query_ids=tuple(worst["query_id"]), **told,
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


def numbers(analysis: ValidationAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers."""
    q, found, stopped = analysis.queries, analysis.metrics, analysis.stopped
    codes = {str(code): n for code, n in found.reasons.items()}
    bands = q.loc[q["context_score"].notna(), "band"].value_counts().to_dict()
    critical = Share(int(q["critical"].fillna(False).sum()), analysis.n)
    return (
        _share("n_passed", found.passed, "passed", "Pass validation", "card",
            cases="queries.passed:True"),
        _share("n_stopped", critical, "stopped", "Answers stopped", "card", cases="queries.critical:True"),
        Number("incorrect_stopped", METRICS["incorrect_stopped"].title,
            stopped.wrong.count if stopped.wrong.n else None, of=stopped.wrong.n, define="incorrect_stopped",
            noun="incorrect answer", place="card", note=_told(stopped.p_value),
            chance=stopped.expected if stopped.n_flagged else None),
        Number("correct_stopped", METRICS["correct_stopped"].title,
            stopped.right.count if stopped.right.n else None, of=stopped.right.n, define="correct_stopped",
            noun="correct answer", place="row"),
        _mean("mean_context_score", found.confidence, "context_score", "Mean context score",
            _made_of(analysis)),
        _mean("mean_overlap", found.overlap, "overlap", "Mean evidence overlap"),
        _share("n_uncertain", found.uncertain, "uncertain", "Answers that express uncertainty", "row"),
        _share("n_fallbacks", found.fallback, "fallback", "Fallbacks", "row"),
        *(_flagged(analysis, name) for name in OURS),
        Number("context_bands", "Bands of the context score", bands, define=BANDS,
            noun="answer"),
        Number("validation_reasons", "Objections", codes, define=CODES, place="row",
            noun="answer"),
        Number("validation_undefined_reasons", "Not validated because",
            q["reason"].value_counts().to_dict(), define=REASON, place="row"),
    )  # fmt: skip


def _share(key: str, share: Share, define: str, title: str, place: str, cases: str = "") -> Number:
    note = share_interval(share.interval) if share.n else ""
    return Number(key, title, share.count if share.n else None, of=share.n, noun="answer", define=define,
        note=note, place=place, cases=cases)  # fmt: skip


def _made_of(analysis: ValidationAnalysis) -> str:
    """Say what part of the mean context score comes from the number of passages, and from validation."""
    bases = [one.context.reasons[0].change for one in analysis.outcomes.values()]
    if not bases:
        return ""
    base = sum(bases) / len(bases)
    change = number(analysis.metrics.confidence.mean - base, "{:+.2f}")
    return f"{number(base)} for the number of passages, {change} for validation"


def _mean(key: str, average: Average, define: str, title: str, note: str = "") -> Number:
    known = average.n > 0
    interval = (average.low, average.high) if known else None
    return Number(key, title, average.mean if known else None, n=average.n, noun="answer", interval=interval,
        define=define, note=note, place="row")  # fmt: skip


def _flagged(analysis: ValidationAnalysis, name: str) -> Number:
    """Return how many of the incorrect answers a validator flags."""
    key = f"flagged_by_{name}"
    title = f"Incorrect answers flagged by {name}"
    rows = analysis.validators[analysis.validators["validator"] == name]
    if rows.empty or not rows.iloc[0]["n_wrong"] or not rows.iloc[0]["n_applied"]:
        return Number(key, title, of=0, define="incorrect_flagged", place="row")
    row = rows.iloc[0]
    right = f"{row['right_flagged']:,} of {row['n_right']:,} correct ones"
    note = "; ".join(filter(None, [right, _told(row["p_value"])]))
    return Number(key, title, int(row["wrong_flagged"]), of=int(row["n_wrong"]), noun="incorrect answer",
        define="incorrect_flagged", chance=float(row["wrong_by_chance"]), note=note, place="row")  # fmt: skip


def _told(p_value: float) -> str:
    return "" if math.isnan(p_value) else p_text(p_value)


def verdicts_csv(diagnosis: Analyses) -> bytes:
    """Return one row per question and validator."""
    run = diagnosis.run
    questions = run.queries[["query_id", "question", "answer"]]
    return csv_bytes(questions.merge(run["verdicts"], on="query_id"), run.data_source)


def validators_csv(diagnosis: Analyses) -> bytes:
    """Return one row per validator."""
    return csv_bytes(diagnosis[NAME].validators, diagnosis.run.data_source)


def _analyse(diagnosis: Analyses) -> ValidationAnalysis:
    correct = diagnosis["answers"].queries["correct"]
    return analyse_validation(diagnosis.run, correct.astype("Float64").to_numpy(np.float64, na_value=np.nan))


VALIDATION = Diagnostic(
    name=NAME,
    title="Validation",
    question="Which answers should not be shown as they are, and what is wrong with them?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    finds=tuple(FINDINGS),
    reads=("answers",),
    needs=(Need("verdicts", "Not validated: no validator has checked the answers against their passages."),),
    exports=(
        Export(
            "verdicts-csv",
            "Verdicts of validators",
            ".csv",
            verdicts_csv,
            "One row per question and validator, with reason, number and spans.",
        ),
        Export(
            "validators-csv", "Validators", ".csv", validators_csv, "One row per validator, with its counts."
        ),
    ),
    figures=("flag_rates", "verdict_counts"),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("passed", "Passes validation", "bool", higher_is="more confident"),
        QuestionColumn("context_score", "Context score", bounds=(0.0, 1.0), higher_is="more confident"),
    ),
    step=ValidationStep,
    icon=":material/rule:",
    group="trust",
)
