"""What validation says of the answers of a run, and whether it objects to the wrong ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pandas as pd

from core.arrays import Floats
from core.context_score import NO_BAND, band
from core.run import Run
from core.validation.chain import outcome_of
from core.validation.fallback import OURS, is_validated, n_given, verdicts_of
from core.validation.metrics import Flags, Metrics, Observation, flags_of, metrics, observe
from core.validation.store import answer_key
from core.validation.types import ValidationOutcome, Verdict

NOT_VALIDATED, VALIDATOR_FAILED, NO_ANSWER, NO_TEXTS = (
    "not_validated", "validator_failed", "answer_missing", "passages_without_text",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ValidationAnalysis:
    """The verdicts of a run, counted.

    ``queries`` has one row per question: ``query_id, question, passed, critical, n_failed, reasons`` (codes,
    joined by a comma), ``context_score, band`` (word), ``fallback`` (whether users see a fallback instead),
    ``overlap, correct, reason`` (why it was not validated).

    ``validators`` has one row per ``validator``; of the validated answers ``n, n_applied, n_passed,
    n_warning, n_critical``; of the labelled ones ``n_wrong, n_right, wrong_flagged, right_flagged``, then
    ``recall, false_positive_rate, precision``, each with ``_low`` and ``_high``, ``wrong_by_chance`` (as many
    flags at random) and ``p_value``.

    ``reasons`` has one row per validator and reason of a failure: ``validator, reason, n, of``; of the
    labelled answers ``wrong_flagged, right_flagged, wrong_by_chance`` with its middle 95 %,
    ``wrong_by_chance_low`` and ``_high``.
    """

    run: Run
    queries: pd.DataFrame
    outcomes: Mapping[str, ValidationOutcome]  # by question, where validated; suggestions in English

    @property
    def n(self) -> int:
        """Validated answers."""
        return len(self.outcomes)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """One row per validated question and validator.

        ``query_id, validator, verdict`` (passed, warning, critical, not applied), ``objects, objection``
        (code of the reason of a failure), ``correct``.
        """
        correct = dict(zip(self.queries["query_id"], self.queries["correct"], strict=True))
        rows = [
            (
                query_id, one.validator, _verdict(one), one.passed is False,
                str(one.reason.code) if one.passed is False else None, correct[query_id],
            )
            for query_id, outcome in self.outcomes.items()
            for one in outcome.verdicts
        ]  # fmt: skip
        columns = ["query_id", "validator", "verdict", "objects", "objection", "correct"]
        return pd.DataFrame(rows, columns=columns).astype({"objects": "bool", "correct": "boolean"})

    @cached_property
    def validators(self) -> pd.DataFrame:
        """One row per validator, ours first."""
        rows = []
        for name in [*OURS, *sorted({*self.verdicts["validator"]} - {*OURS})]:
            own = self.verdicts[self.verdicts["validator"] == name]
            said = Counter(own["verdict"])
            flags = self._flags(own.loc[own["objects"], "query_id"])
            row = {
                "validator": name, "n": self.n, "n_applied": len(own) - said["not applied"],
                "n_passed": said["passed"], "n_warning": said["warning"], "n_critical": said["critical"],
                "n_wrong": flags.wrong.n, "n_right": flags.right.n, "wrong_flagged": flags.wrong.count,
                "right_flagged": flags.right.count, "wrong_by_chance": flags.expected,
                "p_value": flags.p_value,
            }  # fmt: skip
            shares = {"recall": flags.wrong, "false_positive_rate": flags.right, "precision": flags.precision}
            for key, share in shares.items():
                row[key] = share.rate
                row[f"{key}_low"], row[f"{key}_high"] = share.interval
            rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def reasons(self) -> pd.DataFrame:
        """One row per validator and reason of a failure, the most frequent first."""
        rows = []
        objections = self.verdicts[self.verdicts["objects"]]
        for (validator, code), own in objections.groupby(["validator", "objection"], sort=False):
            flags = self._flags(own["query_id"])
            counts = self.n, flags.wrong.count, flags.right.count, flags.expected
            rows.append((validator, code, len(own), *counts, *flags.expected_interval))
        columns = [
            "validator", "reason", "n", "of", "wrong_flagged", "right_flagged", "wrong_by_chance",
            "wrong_by_chance_low", "wrong_by_chance_high",
        ]  # fmt: skip
        frame = pd.DataFrame(rows, columns=columns)
        return frame.sort_values("n", ascending=False, kind="stable").reset_index(drop=True)

    @cached_property
    def stopped(self) -> Flags:
        """Answers with a critical verdict, among the labelled ones."""
        return self._flags(self.queries.loc[self.queries["critical"].fillna(False), "query_id"])

    @cached_property
    def metrics(self) -> Metrics:
        """Of the validated answers."""
        return metrics(self.observations(datetime(1970, 1, 1, tzinfo=UTC)))

    def observations(self, at: datetime) -> list[Observation]:
        """Return the validated answers for a metrics store, as of a time; each counts once however often."""
        used = dict(zip(self.queries["query_id"], self.queries["fallback"], strict=True))
        every = (
            observe(outcome, at, bool(used[query_id]), answer_key(self.run.run_id, query_id))
            for query_id, outcome in self.outcomes.items()
        )
        return [one for one in every if one is not None]

    def _flags(self, ids: pd.Series) -> Flags:
        labelled = self.queries[self.queries["passed"].notna() & self.queries["correct"].notna()]
        return flags_of(labelled["query_id"].isin(ids), ~labelled["correct"].astype(bool))


def analyse_validation(run: Run, correct: Floats) -> ValidationAnalysis:
    """Count the verdicts of a run, given for each question 1, 0 or NaN, whether its answer is correct."""
    rows, passages = _by_question(run["verdicts"]), _by_question(run.passages[["query_id", "text"]])
    outcomes: dict[str, ValidationOutcome] = {}
    listed = []
    for query_id, question, answer in run.queries[["query_id", "question", "answer"]].itertuples(index=False):
        own, given = rows.get(query_id, []), [row["text"] for row in passages.get(query_id, ())]
        reason = _why_not(answer, own, given)
        if reason is None:
            outcomes[query_id] = outcome_of(question, answer, n_given(given), verdicts_of(own), "en")
        used = any(row["fallback_used"] is True for row in own)
        listed.append(_question(outcomes.get(query_id), used) | {"reason": reason})
    queries = run.queries[["query_id", "question"]].reset_index(drop=True)
    queries = queries.join(pd.DataFrame(listed, columns=_COLUMNS).astype(_COLUMNS))
    queries["correct"] = pd.Series(correct).map({1.0: True, 0.0: False}).astype("boolean")
    return ValidationAnalysis(run, queries, outcomes)


_COLUMNS = {
    "passed": "boolean", "critical": "boolean", "n_failed": "Int64", "reasons": "str",
    "context_score": "float64", "band": "str", "fallback": "boolean",
    "overlap": "float64", "reason": "str",
}  # fmt: skip


def _question(outcome: ValidationOutcome | None, used_fallback: bool) -> dict[str, Any]:
    if outcome is None:
        return {"context_score": math.nan, "band": NO_BAND.word, "fallback": used_fallback or pd.NA}
    codes = dict.fromkeys(str(verdict.reason.code) for verdict in outcome.failed)
    return {
        "passed": outcome.passed,
        "critical": outcome.critical,
        "n_failed": len(outcome.failed),
        "reasons": ", ".join(codes) or None,
        "context_score": outcome.confidence_score,
        "band": band(outcome.confidence_score).word,
        "fallback": outcome.critical or used_fallback,
        "overlap": math.nan if outcome.overlap is None else outcome.overlap,
    }


def _why_not(answer: object, rows: Sequence[Mapping[str, Any]], texts: Sequence[object]) -> str | None:
    if not isinstance(answer, str):
        return NO_ANSWER
    if rows:
        return None if is_validated(rows) else VALIDATOR_FAILED
    return NO_TEXTS if texts and not any(isinstance(text, str) for text in texts) else NOT_VALIDATED


def _verdict(one: Verdict) -> str:
    if one.passed is None:
        return "not applied"
    return "passed" if one.passed else str(one.severity)


def _by_question(frame: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in frame.to_dict("records"):
        found.setdefault(row["query_id"], []).append(row)
    return found
