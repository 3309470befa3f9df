"""The diagnostic *answers*: whether there is an answer, and whether it is correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from core.diagnosis import (
    BAD,
    GOOD,
    UNCLEAR,
    Definition,
    Diagnosis,
    Diagnostic,
    Finding,
    Number,
    QuestionColumn,
    by_name,
)
from core.run import Run
from core.stats import wilson_interval
from core.text.display import part, percent, share_interval
from core.text.matching import correctness

DEFINITIONS = (
    Definition("correct", "Correct answer", "Whether the answer says a reference answer: in the same words, numbers, amounts and dates by value. Of two things that the question offers, it must choose the right one.",
        undefined_when="there is no reference answer, or the answer is empty or an abstention"),
    Definition("wrong_answers", "Incorrect answers", "The answer does not contain a reference answer.",
        undefined_when="there is no reference answer, or the answer is empty or an abstention"),
    Definition("no_answer", "No answer", "The baseline is empty, abstains (a refusal or \"I don't know\"), or the model call failed.",
        advice="Read the reasons in the workbench: token limits, content filters and failed calls are named there."),
    Definition("empty_baselines", "Empty baselines", "More than a tenth of the questions have an empty baseline, which leaves every other figure to the rest.",
        advice="Change what the model is given, in this order: a larger model, the other prompt style, more max answer tokens, fewer or shorter passages."),
)  # fmt: skip
_DEFINE = by_name(*DEFINITIONS)
_MANY_EMPTY = 0.1  # share of the baselines


@dataclass(frozen=True, slots=True)
class Answers:
    """One row per question, in the run's order: ``query_id, question, answer, answer_status, correct``."""

    queries: pd.DataFrame

    def n(self, status: str) -> int:
        """Return the number of answers with a status."""
        return int((self.queries["answer_status"] == status).sum())


def analyse_answers(run: Run) -> Answers:
    """Judge every answer of a run that has reference answers; no LLM calls."""
    frame = run.queries[["query_id", "question", "answer", "answer_status"]].copy()
    frame["correct"] = correctness(
        run.queries["answer"], run.queries["reference_answers"], run.queries["question"]
    )
    return Answers(frame)


def numbers(answers: Answers) -> tuple[Number, ...]:
    """Return how many answers there are, how many are correct, and what became of the others."""
    q = answers.queries
    n, judged = len(q), int(q["correct"].notna().sum())
    correct = int(q["correct"].fillna(False).sum())
    share = wilson_interval(correct / judged, judged) if judged else None
    note = "no reference answers to compare with" if share is None else share_interval(share)
    return (
        Number("n_queries", "Questions", n, place="row"),
        Number("n_correct", "Correct answers", correct, of=judged, define="correct", note=note, place="card"),
        Number("n_judged", value=judged),
        Number("n_abstained", "Abstained", answers.n("abstained"), of=n, define="no_answer", place="row"),
        Number("n_empty_answers", "Empty answers", answers.n("empty"), of=n, define="no_answer", place="row"),
        Number("n_errors", "Failed", answers.n("error"), of=n, define="no_answer", place="row"),
    )


def findings(answers: Answers) -> Sequence[Finding]:
    """Say how many questions have no answer, and how many an incorrect one; chance cannot produce either.

    More than a tenth of empty baselines is a finding of its own, before all others, and takes the place of
    the finding on missing answers where none is missing for another reason.
    """
    empty, without = _empty(answers), _without_answer(answers)
    missing = empty if empty and empty[0].n == without[0].n else (*empty, *without)
    return (*missing, *_wrong(answers))


def _wrong(answers: Answers) -> Sequence[Finding]:
    """Say how many answers are incorrect: grave where that is surely most of them, in order where surely few."""
    q = answers.queries
    wrong, of = q["correct"].eq(False).fillna(False), int(q["correct"].notna().sum())
    n = int(wrong.sum())
    if not of:
        return ()
    low, high = interval = wilson_interval(n / of, of)
    severity = "high" if low > 0.5 else "medium" if low > 0.25 else "low"
    tone = BAD if severity != "low" else GOOD if high < 0.5 else UNCLEAR
    correct, are = (1 - high, 1 - low), "is" if of == 1 else "are"
    return (
        Finding(
            "wrong_answers",
            f"{n:,} of {of:,} answers {'is' if n == 1 else 'are'} incorrect.",
            n,
            of,
            interval=interval,
            severity=severity,
            query_ids=tuple(q.loc[wrong, "query_id"]),
            tone=tone,
            clause=f"{part(n, of, 'answer')} {are} incorrect ({percent(n / of, interval)})"
            if tone == BAD
            else f"{part(of - n, of, 'answer')} {are} correct ({percent(n / of, correct)})",
        ),
    )


def _empty(answers: Answers) -> Sequence[Finding]:
    q = answers.queries
    asked, empty = int(q["answer_status"].notna().sum()), q["answer_status"].eq("empty").fillna(False)
    n = int(empty.sum())
    if n <= _MANY_EMPTY * asked:
        return ()
    return (
        Finding(
            "empty_baselines",
            f"{n:,} of {asked:,} baselines are empty: the model wrote no answer to compare with.",
            n,
            asked,
            interval=wilson_interval(n / asked, asked),
            severity="high",
            advice=_DEFINE["empty_baselines"].advice,
            query_ids=tuple(q.loc[empty, "query_id"]),
            clause=f"{n:,} of {asked:,} answers are empty, so all else is about the other {asked - n:,}",
            topic="missing",
        ),
    )


def _without_answer(answers: Answers) -> Sequence[Finding]:
    q = answers.queries
    silent = q["answer_status"].isin(["empty", "abstained", "error"])
    n, of = int(silent.sum()), len(q)
    if not n:
        return ()
    kinds = (("empty", "empty"), ("abstained", "abstained"), ("error", "failed"))
    parts = ", ".join(f"{answers.n(status):,} {word}" for status, word in kinds if answers.n(status))
    return (
        Finding(
            "no_answer",
            f"{n:,} of {of:,} questions have no answer ({parts}).",
            n,
            of,
            interval=wilson_interval(n / of, of),
            severity="high" if n / of >= 0.2 else "low",
            advice=_DEFINE["no_answer"].advice,
            query_ids=tuple(q.loc[silent, "query_id"]),
            clause=f"{n:,} of {of:,} questions have no answer ({parts})",
            topic="missing",
        ),
    )


def _analyse(diagnosis: Diagnosis) -> Answers:
    return diagnosis.once(analyse_answers)


ANSWERS = Diagnostic(
    name="answers",
    title="Answers",
    question="Is there an answer, and is it correct?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("answer_status", "Answer status"),
        QuestionColumn("correct", "Correct", "bool", (0.0, 1.0), higher_is="better", needs_labels=True),
    ),
)
