"""Continue live: the questions of a run, with the passages it has, as a data set for another run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from core.errors import InputError
from core.run import Run
from core.sources.corpus import text_problem
from core.sources.dataset import Dataset, load_dataset, make_dataset
from core.sources.dataset_checks import possible
from core.sources.formats.records import Record, RecordPassage, records_of
from core.sources.question import MAX_PASSAGES, FieldError, PassageIn, Question
from core.sources.report import IssueLog, ValidationReport, counted


def open_questions(path: str | os.PathLike[str]) -> Dataset:
    """Return the questions of a data set file, or of a saved run where the path is a folder.

    Raises
    ------
    InputError
        No such file, no run in the folder, or nothing in it that can be asked.
    """
    return dataset_of(Run.load(path)) if Path(path).is_dir() else load_dataset(path)


def dataset_of(run: Run) -> Dataset:
    """Return the questions of a run with its own passages, to be asked again.

    Parameters
    ----------
    run : Run
        Any run; an imported one has answers and passages but mostly no ablations, which a live run adds.

    Returns
    -------
    Dataset
        Passages stand in the order of their retrieval ranks, with titles, scores and gold marks.
        References, kind and language come along. Questions that have no passage with text are left out,
        and so are single passages without text; ``report`` names both.

    Raises
    ------
    InputError
        No question has a passage with text.
    """
    log = IssueLog()
    questions, rejected = [], []
    for row, record in enumerate(records_of(run), start=1):
        try:
            questions.append(_question(record, row, log))
        except FieldError as error:
            log.add(row, error.field, error.value, error.expected)
            reason = f"{error.field}: expected {error.expected}"
            rejected.append(
                {"row": row, "reason": reason, "id": record.record_id, "question": record.question}
            )
    if not questions:
        raise InputError(
            f"The run {run.name!r} cannot be continued live: none of its {len(run.queries):,} questions has "
            "a passage with text."
        )
    dataset = make_dataset(run.name, questions)
    return replace(dataset, report=_report(questions, rejected, log))


def _question(record: Record, row: int, log: IssueLog) -> Question:
    if not record.question.strip():
        raise FieldError("question", record.question, "a question")
    usable = [p for p in record.passages if _has_text(p)]
    if not usable:
        found = f"{record.record_id}: {counted(len(record.passages), 'passage')} without text"
        raise FieldError("passages", found, "one passage with text or more")
    if len(usable) > MAX_PASSAGES:
        raise FieldError("passages", f"{len(usable):,} passages", f"at most {MAX_PASSAGES} passages")
    for passage in record.passages:
        if not _has_text(passage):
            log.add(row, "passages", passage.passage_id, "a passage with text; it is left out", "warning")
    return Question(
        record.record_id,
        record.question,
        (),
        tuple(PassageIn(p.passage_id, p.title, p.text or "", p.score, p.is_gold) for p in usable),
        record.references,
        (),
        record.kind,
        record.language,
        n_gold=record.n_gold,
    )


def _has_text(passage: RecordPassage) -> bool:
    return bool(passage.text and passage.text.strip()) and text_problem(passage.text or "") is None


def _report(
    questions: Sequence[Question], rejected: Sequence[dict[str, object]], log: IssueLog
) -> ValidationReport:
    enables, missing = possible(questions)
    return ValidationReport(
        len(questions) + len(rejected),
        len(questions),
        log.listed(),
        pd.DataFrame(list(rejected), columns=["row", "reason", "id", "question"]),
        ("Passages are those of the run, in the order of their retrieval ranks.",),
        enables,
        missing,
        log.n_issues,
        log.counts["error"],
    )
