"""Continue live: the questions of a run, with the passages it has, as a data set for another run."""

from __future__ import annotations

import os

import pandas as pd

from core.errors import InputError
from core.run import Run
from core.sources.dataset import Dataset, load_dataset, make_dataset, possible
from core.sources.encoding import is_saved_dataset
from core.sources.fields import FieldError, read_each
from core.sources.formats.records import Record, question_of, records_of
from core.sources.question import Question, askable
from core.sources.report import IssueLog, counted


def open_questions(path: str | os.PathLike[str]) -> Dataset:
    """Return the questions of a data set file, or of a saved run where the path is a folder.

    `InputError` where there is no such file, no run in the folder, or nothing in it that can be asked.
    """
    return dataset_of(Run.load(path)) if is_run(path) else load_dataset(path)


def is_run(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is meant as that of a saved run: a folder that holds no saved data set."""
    return os.path.isdir(path) and not is_saved_dataset(path)


def dataset_of(run: Run) -> Dataset:
    """Return the questions of a run with its own passages, to be asked again.

    An imported run has answers and passages but mostly no ablations, which a live run adds. Passages are in
    the order of their retrieval ranks, with titles, scores and gold marks; references, kind and language come
    along. Questions that have no passage with text are left out, and so are single passages without text;
    ``report`` names both. InputError where no question has a passage with text.
    """
    log = IssueLog()
    records = records_of(run)
    questions, rejected = read_each(enumerate(records, start=1), log, lambda row, r: _question(r, row, log))
    if not questions:
        raise InputError(
            f"The run {run.name!r} cannot be continued live: none of its {len(records):,} questions has "
            "a passage with text."
        )
    frame = pd.DataFrame(
        [(row, reason, record.record_id, record.question) for row, reason, record in rejected],
        columns=["row", "reason", "id", "question"],
    )
    note = "Passages are those of the run, in the order of their retrieval ranks."
    return make_dataset(run.name, questions, log.report(len(questions), frame, [note], possible(questions)))


def _question(record: Record, row: int, log: IssueLog) -> Question:
    if not record.question.strip():
        raise FieldError("question", record.question, "a question")
    question = question_of(record)
    usable = {passage.passage_id for passage in question.passages or ()}
    if not usable:
        found = f"{record.record_id}: {counted(len(record.passages), 'passage')} without text"
        raise FieldError("passages", found, "one passage with text or more")
    askable(question)
    for passage in record.passages:
        if passage.passage_id not in usable:
            log.add(row, "passages", passage.passage_id, "a passage with text; it is left out", "warning")
    return question
