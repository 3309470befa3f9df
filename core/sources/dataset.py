"""Questions with their documents or passages, from a file, an upload or a form: what a live run needs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from core.errors import InputError
from core.sources.corpus import Document, document_from_text, load_corpus, split_texts
from core.sources.dataset_checks import digest_of, note_oddities, nothing_usable, possible
from core.sources.dataset_file import dataset_jsonl
from core.sources.encoding import read_source, to_utf8
from core.sources.gold import gold_spans, holds_gold
from core.sources.lines import read_lines
from core.sources.question import (
    CorpusLoader,
    FieldError,
    PassageIn,
    Question,
    parse_question,
)
from core.sources.report import IssueLog, ValidationReport, counted, shorten

__all__ = [
    "Dataset",
    "Document",
    "PassageIn",
    "Question",
    "dataset_jsonl",
    "gold_spans",
    "holds_gold",
    "load_dataset",
    "make_dataset",
    "read_dataset",
    "single_question",
]

MAX_QUESTIONS = 100_000


@dataclass(frozen=True, slots=True)
class Dataset:
    """Questions to be run.

    Attributes
    ----------
    name : str
        Name for people.
    questions : tuple of Question
        At least one; ids are unique.
    digest : str
        SHA-256 over the questions and their documents: equal content, equal digest.
    report : ValidationReport
        What was found wrong in the file, and what was kept.
    """

    name: str
    questions: tuple[Question, ...] = field(repr=False)
    digest: str
    report: ValidationReport = field(repr=False)

    def head(self, n: int) -> Dataset:
        """Return the first ``n`` questions (n >= 1) as a data set with its own digest."""
        if n < 1:
            raise InputError(f"The number of questions must be at least 1, got {n}.")
        if n >= len(self.questions):
            return self
        questions = self.questions[:n]
        return replace(self, questions=questions, digest=digest_of(questions))


def load_dataset(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | None = None,
    *,
    documents: tuple[Document, ...] | None = None,
) -> Dataset:
    """Read a data set or a list of prompts from a file; its lines may name a corpus beside it.

    Parameters
    ----------
    path : path
        JSON Lines or CSV, UTF-8 (or with a byte order mark), also gzipped; or plain text, named ``.txt``,
        with one prompt a line. A ``corpus`` in a line is a path relative to this file and inside its folder.
    corpus : path, optional
        A folder or a JSON Lines file of documents (see `load_corpus`): what is searched for lines that bring
        neither passages nor documents.
    documents : tuple of Document, optional
        The same, already read; () where their passages will come from elsewhere. Without both, such a line
        cannot be used.

    Returns
    -------
    Dataset
        Good lines only; bad ones are in ``report``.

    Raises
    ------
    InputError
        No such file, no text, too large, no line that can be used, or a corpus that cannot be read.
    """
    source = Path(path)
    folder = source.parent.resolve()
    attached = documents if corpus is None else load_corpus(Path(corpus))
    loaded: dict[str, tuple[Document, ...] | str] = {}

    def beside(value: str) -> tuple[Document, ...]:
        if value not in loaded:
            loaded[value] = _corpus(folder, value)
        found = loaded[value]
        if isinstance(found, str):
            raise FieldError("corpus", value, found)
        return found

    name = source.name.removesuffix(".gz")
    return _read(read_source(source, str(path)), str(path), Path(name).stem or name, beside, attached)


def read_dataset(data: bytes, name: str, *, documents: tuple[Document, ...] | None = None) -> Dataset:
    """Read an uploaded data set; see `load_dataset`.

    A ``corpus`` in a line names a path of this machine, so it is refused here: every line must bring its own
    ``documents`` or ``passages``, unless ``documents`` for all of them are given.
    """

    def refused(value: str) -> tuple[Document, ...]:
        raise FieldError(
            "corpus", value, "documents or passages in the line itself: an upload cannot name files"
        )

    return _read(read_source(data, name), name, name, refused, documents)


def single_question(
    question: str,
    documents_text: str | Sequence[str],
    *,
    reference_answers: Sequence[str] = (),
    name: str = "Typed question",
) -> Dataset:
    """Make a data set of one typed question and pasted documents.

    Parameters
    ----------
    question : str
        The question.
    documents_text : str or sequence of str
        Documents; in one text they are split at lines that hold only ``---``. The first line of
        each may be ``# Title``.
    reference_answers : sequence of str
        Answers known to be right, if any.
    name : str
        Name of the data set.

    Raises
    ------
    InputError
        No question, no document, or one that is too long.
    """
    pieces = split_texts(documents_text) if isinstance(documents_text, str) else list(documents_text)
    documents = [document_from_text(piece) for piece in pieces]
    fields = {
        "question": question,
        "documents": [{"title": d.title, "text": d.text} for d in documents],
        "answers": list(reference_answers),
    }
    try:
        parsed = parse_question(fields, "q0001", lambda _: ())
    except FieldError as error:
        raise InputError(
            f"The field {error.field} holds {shorten(error.value)!r}; expected {error.expected}."
        ) from error
    return make_dataset(name, (parsed,))


def make_dataset(name: str, questions: Sequence[Question], report: ValidationReport | None = None) -> Dataset:
    """Make a data set of questions that are already read; without a report, nothing is said of them."""
    kept = tuple(questions)
    if report is None:
        report = ValidationReport(len(kept), len(kept), (), pd.DataFrame(columns=["row", "reason"]))
    return Dataset(name, kept, digest_of(kept), report)


def _corpus(folder: Path, value: str) -> tuple[Document, ...] | str:
    """Load a shared corpus; a string says what would be right instead."""
    try:
        path = (folder / value).resolve()
        if not path.is_relative_to(folder):
            return "a path inside the folder of the data set"
        return load_corpus(path)
    except InputError as error:
        return f"a folder of .md or .txt files, or a JSON Lines file ({str(error).rstrip('.')})"
    except (OSError, ValueError, RuntimeError):
        return "the path of a folder of .md or .txt files, or of a JSON Lines file"


def _read(
    data: bytes,
    source: str,
    name: str,
    corpus: CorpusLoader,
    attached: tuple[Document, ...] | None,
) -> Dataset:
    text = to_utf8(data, source)
    lines = read_lines(data, text.utf8.decode(), source, MAX_QUESTIONS * 10)
    log = IssueLog()
    questions: dict[str, Question] = {}
    rejected: list[dict[str, Any]] = []
    unused: dict[str, None] = {}
    share = _Shared()
    n_rows = 0
    for row, fields, cells, extra in lines:
        n_rows += 1
        unused |= dict.fromkeys(extra)
        try:
            if isinstance(fields, FieldError):
                raise fields
            if len(questions) >= MAX_QUESTIONS:
                raise FieldError(
                    "question", fields.get("question", ""), f"at most {MAX_QUESTIONS:,} questions"
                )
            question = parse_question(fields, f"q{n_rows:04d}", corpus, attached)
            if question.query_id in questions:
                raise FieldError("id", question.query_id, "an id that no earlier line has")
        except FieldError as error:
            log.add(row, error.field, error.value, error.expected)
            reason = f"{error.field}: expected {error.expected}"
            rejected.append({"row": row, "reason": reason, **cells})
            continue
        question = replace(question, documents=share(question.documents))
        note_oddities(log, row, question)
        questions[question.query_id] = question
    if not questions:
        raise InputError(nothing_usable(source, n_rows, log))
    kept = tuple(questions.values())
    notes = [text.note] if text.note else []
    notes += [f"Fields not used: {', '.join(map(shorten, list(unused)[:20]))}."] if unused else []
    n_bare = sum(q.documents is attached for q in kept) if attached else 0
    notes += [f"{counted(n_bare, 'line')} without passages or documents: the corpus given is searched."] * (
        n_bare > 0
    )
    frame = pd.DataFrame(rejected) if rejected else pd.DataFrame(columns=["row", "reason"])
    counts = log.n_issues, log.counts["error"]
    report = ValidationReport(n_rows, len(kept), log.listed(), frame, tuple(notes), *possible(kept), *counts)
    return Dataset(name, kept, digest_of(kept), report)


class _Shared:
    """Gives lines that repeat the same documents one tuple of them, so that they are indexed once."""

    def __init__(self) -> None:
        self._first: dict[tuple[Document, ...], tuple[Document, ...]] = {}
        self._known: set[int] = set()

    def __call__(self, documents: tuple[Document, ...]) -> tuple[Document, ...]:
        # A large corpus that is shared already is not compared document by document for every question.
        if id(documents) in self._known:
            return documents
        first = self._first.setdefault(documents, documents)
        self._known.add(id(first))
        return first
