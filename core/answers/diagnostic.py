"""The diagnostic *answers*: whether there is an answer, and whether it is correct."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import pandas as pd

from core.analyses import Analyses
from core.answers.analysis import FIRST, GOLD, MISSING, PARTS, PRESENT, REFERENCE, Answers, analyse_answers
from core.severity import SEVERITIES, WRONG, graded
from core.socket import BAD, GOOD, UNCLEAR, Definition, Diagnostic, Finding, Number, QuestionColumn, by_name
from core.stats import wilson_interval
from core.text.display import count, part, percent, share_interval

DEFINITIONS = (
    Definition("correct", "Correct answer", "Whether the answer is correct: as a person or another program judged it, else whether it says a reference answer, in the same words, numbers, amounts and dates by value. Of two things that the question offers, it must choose the right one.",
        undefined_when="there is no label, and no reference answer or an answer that is empty or an abstention"),
    Definition("evidence", "Evidence", "Whether all gold passages of the question were in the prompt, and whether the first passage is one. Where no gold passage is known: whether a passage contains the reference answer, which may be by accident.",
        undefined_when="neither gold passages nor reference answers are known, or the reference answer is a yes or no"),
    Definition("wrong_answers", "Incorrect answers", "The answer was judged wrong, or does not contain a reference answer.",
        advice="Where the evidence was not in the prompt, retrieval lost the answer; where it was, order, distracting passages or the model did. Try the fixes to see which.",
        undefined_when="there is no label, and no reference answer or an answer that is empty or an abstention"),
    Definition("no_answer", "No answer", "The baseline is empty, abstains (a refusal or \"I don't know\"), or the model call failed.",
        advice="Read the reasons in the workbench: token limits, content filters and failed calls are named there."),
    Definition("empty_baselines", "Empty baselines", "More than a tenth of the questions have an empty baseline, so every other figure is about the rest.",
        advice="Change what the model is given, in this order: a larger model, the other prompt style, more max answer tokens, fewer or shorter passages."),
)  # fmt: skip
_DEFINE = by_name(*DEFINITIONS)
_MANY_EMPTY = 0.1  # share of the baselines
# What to do about incorrect answers, by what most of them share.
_READER = (
    "Work on the model first: a larger one, another prompt, or fewer and shorter passages.",
    "reader:improve",
)
_RETRIEVAL = (
    "Work on retrieval first: reword the search, combine keywords with embeddings, or try another retriever.",
    "retrieval:improve",
)
_BOTH = ("Work on retrieval and on the model: each may explain half of these answers.", "answers:lost")


def numbers(answers: Answers) -> tuple[Number, ...]:
    """Return how many answers there are, how many are correct, and what became of the others."""
    q = answers.queries
    n, judged = len(q), int(q["correct"].notna().sum())
    correct = int(q["correct"].fillna(False).sum())
    share = wilson_interval(correct / judged, judged) if judged else None
    note = "no labels, and no reference answers to compare with" if share is None else share_interval(share)
    wrong = answers.incorrect
    read = wrong["evidence"][wrong["evidence_by"].eq(REFERENCE).fillna(False)]
    return (
        Number("n_queries", "Questions", n, place="row"),
        Number("n_correct", "Correct answers", correct, of=judged, define="correct", note=note, place="card"),
        Number("n_judged", value=judged),
        *(
            Number(
                f"n_incorrect_{key}", f"Incorrect, evidence {where}", int(wrong["evidence"].eq(where).sum()),
                of=len(wrong), noun="answer", define="evidence", cases=_cases(where), place="row",
                note=f"{by_words:,} read from the reference answer" if by_words else "",
            )
            for key, where in zip(("first", "in_prompt", "missing", "unknown"), PARTS, strict=True)
            for by_words in (int(read.eq(where).sum()),)
        ),
        Number("n_abstained", "Abstained", answers.n("abstained"), of=n, define="no_answer", place="row"),
        Number("n_empty_answers", "Empty answers", answers.n("empty"), of=n, define="no_answer", place="row"),
        Number("n_errors", "Failed", answers.n("error"), of=n, define="no_answer", place="row"),
    )  # fmt: skip


def _cases(where: str) -> str:
    return f"queries.correct:False,evidence:{quote(where, safe='')}"


def findings(answers: Answers) -> Sequence[Finding]:
    """Say how many questions have no answer, and how many an incorrect one; chance cannot produce either.

    More than a tenth of empty baselines is a finding of its own, before all others, and takes the place of
    the finding on missing answers where none is missing for another reason.
    """
    empty, without = _empty(answers), _without_answer(answers)
    missing = empty if empty and empty[0].n == without[0].n else (*empty, *without)
    return (*missing, *_wrong(answers))


def _wrong(answers: Answers) -> Sequence[Finding]:
    """Say how many answers are incorrect, what retrieval can explain of them, and what to work on first."""
    wrong, of = answers.incorrect, int(answers.queries["correct"].notna().sum())
    n = len(wrong)
    if not of:
        return ()
    low, high = interval = wilson_interval(n / of, of)
    severity = graded(WRONG, interval)
    tone = BAD if severity != SEVERITIES[-1] else GOOD if high < 0.5 else UNCLEAR
    told, advice, fix, ordered = _explained(wrong)
    if tone == GOOD:
        told, advice, fix = "", "", ""
    sentence = f"{n:,} of {count(of, 'answer')} {'is' if n == 1 else 'are'} wrong"
    right = f"{part(of - n, of, 'answer')} are correct"  # said of several only
    return (
        Finding(
            "wrong_answers", f"{sentence}.{told}", n, of, interval=interval, severity=severity, advice=advice,
            fix=fix, query_ids=tuple(ordered["query_id"]), tone=tone,
            clause=f"{right} (95 % interval {percent((of - n) / of, (1 - high, 1 - low))})"
            if tone == GOOD
            else f"{sentence} (95 % interval {percent(n / of, interval)}).{told}".removesuffix("."),
            label="Incorrect", reads="with an incorrect answer",
        ),
    )  # fmt: skip


def _explained(wrong: pd.DataFrame) -> tuple[str, str, str, pd.DataFrame]:
    """Say in how many incorrect answers the evidence was in the prompt; and advice, fix and the order to read."""
    n, where = len(wrong), wrong["evidence"]
    there, missing = where.isin([FIRST, PRESENT]), where.eq(MISSING)
    n_there, n_missing = int(there.sum()), int(missing.sum())
    unknown = n - n_there - n_missing
    if 2 * unknown >= n:  # or there is none
        return "", "", "", wrong
    by_words, by_gold = (bool(wrong["evidence_by"].eq(by).any()) for by in (REFERENCE, GOLD))
    names = (("the right passage", by_gold), ("the reference answer", by_words))
    held = " or ".join(name for name, occurs in names if occurs)
    most = n_missing + unknown
    probably = " probably" if by_words else ""
    can = f"can{probably} explain {f'at most {most:,}' if most else 'none of them'}"
    open_ = f" ({unknown:,} not known)" if unknown else ""
    some = "both" if n_there == n == 2 else f"all {n:,}" if n_there == n else f"{n_there:,}"
    told = (
        f" In {some} {held} was in the prompt: retrieval {can}{open_}."
        if n_there
        else f" In none of them was {held} in the prompt{open_}."
    )
    if n == 1:
        explains = (
            f"was in its prompt: retrieval{probably} cannot explain it"
            if n_there
            else "was not in its prompt"
        )
        told = f" {held[:1].upper()}{held[1:]} {explains}."
    if n_there == n_missing:
        return told, *_BOTH, wrong
    advice = _READER if n_there > n_missing else _RETRIEVAL
    first = there if n_there > n_missing else missing
    return told, *advice, pd.concat([wrong[first], wrong[~first]])


def _empty(answers: Answers) -> Sequence[Finding]:
    asked, n = int(answers.queries["answer_status"].notna().sum()), answers.n("empty")
    if n <= _MANY_EMPTY * asked:
        return ()
    are = "is" if n == 1 else "are"
    return _silent(
        answers, "empty_baselines", ["empty"], asked,
        f"{n:,} of {count(asked, 'baseline')} {are} empty: the model wrote no answer to compare with",
        f"{n:,} of {count(asked, 'answer')} {are} empty, so all else is about the other {asked - n:,}",
        "with an empty baseline", "Empty baseline",
    )  # fmt: skip


def _without_answer(answers: Answers) -> Sequence[Finding]:
    kinds = {"empty": "empty", "abstained": "abstained", "error": "failed"}
    n, of = sum(map(answers.n, kinds)), len(answers.queries)
    if not n:
        return ()
    parts = ", ".join(f"{answers.n(status):,} {word}" for status, word in kinds.items() if answers.n(status))
    said = f"{n:,} of {count(of, 'question')} {'has' if n == 1 else 'have'} no answer ({parts})"
    return _silent(answers, "no_answer", [*kinds], of, said, said, "without an answer")


def _silent(
    answers: Answers, name: str, statuses: Sequence[str], of: int, said: str, clause: str, reads: str,
    label: str = "",
) -> Sequence[Finding]:  # fmt: skip
    """Return the finding on the questions of some statuses."""
    ids = answers.queries["query_id"][answers.queries["answer_status"].isin(statuses)]
    interval = wilson_interval(len(ids) / of, of)
    return (
        Finding(
            name, f"{said}.", len(ids), of, interval, severity=graded(WRONG, interval),
            advice=_DEFINE[name].advice, query_ids=tuple(ids), clause=clause, topic="missing", label=label,
            reads=reads,
        ),
    )  # fmt: skip


def _analyse(diagnosis: Analyses) -> Answers:
    return diagnosis.once(analyse_answers)


ANSWERS = Diagnostic(
    name="answers",
    title="Answers",
    question="Is there an answer, and is it correct?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    finds=("wrong_answers", "no_answer", "empty_baselines"),
    figures=("evidence_split",),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("answer_status", "Answer status"),
        QuestionColumn("evidence", "Evidence", needs_labels=True),
        QuestionColumn("correct", "Correct", "bool", (0.0, 1.0), higher_is="better", needs_labels=True),
    ),
)
