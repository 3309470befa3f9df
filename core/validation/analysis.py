"""What validation says of the answers of a run, and whether it objects to the wrong ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from core.arrays import Bools, Floats
from core.context_score import NO_BAND, band
from core.run import Run
from core.validation.chain import outcome_of
from core.validation.flags import Flags, flags_of
from core.validation.metrics import Metrics, Observation, Trial, metrics, observe, trial
from core.validation.rows import OURS, is_validated, n_given, verdicts_of
from core.validation.store import answer_key
from core.validation.types import Code, Severity, ValidationOutcome, Verdict

NOT_VALIDATED, VALIDATOR_FAILED, NO_ANSWER, NO_TEXTS = (
    "not_validated", "validator_failed", "answer_missing", "passages_without_text",
)  # fmt: skip
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class ValidationAnalysis:
    """The verdicts of a run, counted.

    Attributes
    ----------
    run : Run
        The run.
    queries : DataFrame
        One row per question: ``query_id, question, passed, critical, n_failed, reasons`` (codes, joined by a
        comma), ``context_score, band`` (word), ``fallback`` (whether users see a fallback instead),
        ``expressed_uncertainty, overlap, correct, reason`` (why it was not validated).
    validators : DataFrame
        One row per validator: ``validator``; of the validated answers ``n, n_applied, n_passed, n_warning,
        n_critical``; of the labelled ones ``n_wrong, n_right, wrong_flagged, right_flagged``, then ``recall,
        false_positive_rate, precision``, each with ``_low`` and ``_high``, ``wrong_by_chance`` (as many flags
        at random) and ``p_value``.
    reasons : DataFrame
        One row per validator and reason of a failure: ``validator, reason, n, of``; of the labelled answers
        ``wrong_flagged, right_flagged, wrong_by_chance`` with its middle 95 %, ``wrong_by_chance_low`` and
        ``_high``.
    metrics : Metrics
        Of the validated answers.
    stopped : Flags
        Answers with a critical verdict, among the labelled ones.
    trial : Trial or None
        Validators on against off; None without labels. An answer counts as hallucinated where the diagnostic
        *answers* says that it is incorrect.
    outcomes : Mapping of str to ValidationOutcome
        By question, those that were validated; suggestions are in English here (`core.validation.rows.served`
        has them in the language of the question).
    """

    run: Run
    queries: pd.DataFrame
    validators: pd.DataFrame
    reasons: pd.DataFrame
    metrics: Metrics
    stopped: Flags
    trial: Trial | None
    outcomes: Mapping[str, ValidationOutcome]

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

    def observations(self, at: datetime) -> list[Observation]:
        """Return the validated answers for a metrics store, as of a time; each counts once however often."""
        return _observed(self.run, self.outcomes, self.queries, at)


def analyse_validation(run: Run, correct: Floats) -> ValidationAnalysis:
    """Count the verdicts of a run; no model is called.

    Parameters
    ----------
    run : Run
        The run.
    correct : ndarray, shape (n_questions,)
        1, 0 or NaN, whether each answer is correct.

    Returns
    -------
    ValidationAnalysis
    """
    rows, texts = _by_question(run["verdicts"]), _texts(run.passages)
    outcomes: dict[str, ValidationOutcome] = {}
    listed = []
    for query_id, question, answer in run.queries[["query_id", "question", "answer"]].itertuples(index=False):
        own, given = rows.get(query_id, []), texts.get(query_id, [])
        reason = _why_not(answer, own, given)
        if reason is None:
            outcomes[query_id] = outcome_of(question, answer, n_given(given), verdicts_of(own), "en")
        used = any(row["fallback_used"] is True for row in own)
        listed.append(_question(outcomes.get(query_id), used) | {"reason": reason})
    queries = run.queries[["query_id", "question"]].reset_index(drop=True)
    queries = queries.join(pd.DataFrame(listed, columns=_COLUMNS).astype(_COLUMNS))
    queries["correct"] = pd.Series(correct).map({1.0: True, 0.0: False}).astype("boolean")
    known = queries["passed"].notna().to_numpy(dtype=bool) & ~np.isnan(correct)
    wrong, critical = correct[known] == 0, queries["critical"].fillna(False).to_numpy(dtype=bool)[known]
    return ValidationAnalysis(
        run,
        queries,
        _validators(queries, outcomes, known, wrong),
        _reasons(queries, outcomes, known, wrong),
        metrics(_observed(run, outcomes, queries, _NO_TIME)),
        flags_of(critical, wrong),
        trial(wrong, critical) if known.any() else None,
        outcomes,
    )


_COLUMNS = {
    "passed": "boolean", "critical": "boolean", "n_failed": "Int64", "reasons": "str",
    "context_score": "float64", "band": "str", "fallback": "boolean", "expressed_uncertainty": "boolean",
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
        "expressed_uncertainty": outcome.expressed_uncertainty,
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


def _by_question(verdicts: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in verdicts.to_dict("records"):
        found.setdefault(row["query_id"], []).append(row)
    return found


def _texts(passages: pd.DataFrame) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for query_id, text in zip(passages["query_id"], passages["text"], strict=True):
        found.setdefault(query_id, []).append(text)
    return found


def _observed(
    run: Run, outcomes: Mapping[str, ValidationOutcome], queries: pd.DataFrame, at: datetime
) -> list[Observation]:
    used = dict(zip(queries["query_id"], queries["fallback"], strict=True))
    every = (
        observe(outcome, at, bool(used[query_id]), answer_key(run.run_id, query_id))
        for query_id, outcome in outcomes.items()
    )
    return [one for one in every if one is not None]


def _validators(
    queries: pd.DataFrame, outcomes: Mapping[str, ValidationOutcome], known: Bools, wrong: Bools
) -> pd.DataFrame:
    """Return the row of each validator, ours first."""
    said = {id_: {verdict.validator: verdict for verdict in one.verdicts} for id_, one in outcomes.items()}
    present = {name for of_one in said.values() for name in of_one}
    rows = []
    for name in [*OURS, *sorted(present - {*OURS})]:
        verdicts = [said.get(id_, {}).get(name) for id_ in queries["query_id"]]
        passed = [None if one is None else one.passed for one in verdicts]
        severities = Counter(one.severity for one in verdicts if one is not None and one.passed is False)
        flags = flags_of(np.array([one is False for one in passed], dtype=bool)[known], wrong)
        rows.append(
            {
                "validator": name,
                "n": len(said),
                "n_applied": sum(one is not None for one in passed),
                "n_passed": passed.count(True),
                "n_warning": severities[Severity.WARNING],
                "n_critical": severities[Severity.CRITICAL],
                **_flagged(flags),
            }
        )
    return pd.DataFrame(rows)


def _flagged(flags: Flags) -> dict[str, Any]:
    found: dict[str, Any] = {
        "n_wrong": flags.wrong.n,
        "n_right": flags.right.n,
        "wrong_flagged": flags.wrong.count,
        "right_flagged": flags.right.count,
        "wrong_by_chance": flags.expected,
        "p_value": flags.p_value,
    }
    shares = {"recall": flags.wrong, "false_positive_rate": flags.right, "precision": flags.precision}
    for name, share in shares.items():
        found[name] = share.rate
        found[f"{name}_low"], found[f"{name}_high"] = share.interval
    return found


def _reasons(
    queries: pd.DataFrame, outcomes: Mapping[str, ValidationOutcome], known: Bools, wrong: Bools
) -> pd.DataFrame:
    """Return the row of each reason, the most frequent first."""
    by_reason: dict[tuple[str, Code], list[bool]] = {}
    for place, query_id in enumerate(queries["query_id"]):
        for verdict in outcomes[query_id].failed if query_id in outcomes else ():
            flagged = by_reason.setdefault((verdict.validator, verdict.reason.code), [False] * len(queries))
            flagged[place] = True
    rows = []
    for (validator, code), flagged in by_reason.items():
        flags = flags_of(np.array(flagged, dtype=bool)[known], wrong)
        low, high = flags.expected_interval
        rows.append(
            {
                "validator": validator, "reason": str(code), "n": sum(flagged), "of": len(outcomes),
                "wrong_flagged": flags.wrong.count, "right_flagged": flags.right.count,
                "wrong_by_chance": flags.expected, "wrong_by_chance_low": low, "wrong_by_chance_high": high,
            }
        )  # fmt: skip
    columns = [
        "validator", "reason", "n", "of", "wrong_flagged", "right_flagged", "wrong_by_chance",
        "wrong_by_chance_low", "wrong_by_chance_high",
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("n", ascending=False, kind="stable").reset_index(drop=True)
