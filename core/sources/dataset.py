"""Questions with their documents or passages, from a file, an upload or a form: what a live run needs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from core.errors import InputError
from core.sources.corpus import Document, document_from_text, load_corpus, split_texts
from core.sources.encoding import read_source, to_utf8
from core.sources.gold import gold_spans, holds_gold
from core.sources.lines import csv_rows, json_lines
from core.sources.question import (
    FieldError,
    PassageIn,
    Question,
    parse_question,
)
from core.sources.report import IssueLog, ValidationReport, shorten

__all__ = [
    "Dataset",
    "Document",
    "PassageIn",
    "Question",
    "gold_spans",
    "holds_gold",
    "load_dataset",
    "read_dataset",
    "single_question",
]

MAX_QUESTIONS = 100_000
# Looking for gold fragments that stand nowhere reads every document for every question.
_MAX_GOLD_SEARCH = 20_000_000


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
        return replace(self, questions=questions, digest=_digest(questions))


def load_dataset(path: str | os.PathLike[str]) -> Dataset:
    """Read a data set from a file; its lines may name a corpus beside it.

    Parameters
    ----------
    path : path
        JSON Lines or CSV, UTF-8 (or with a byte order mark), also gzipped. A ``corpus`` is a path
        relative to this file and inside its folder.

    Returns
    -------
    Dataset
        Good lines only; bad ones are in ``report``.

    Raises
    ------
    InputError
        No such file, no text, too large, or no line that can be used.
    """
    source = Path(path)
    folder = source.parent.resolve()
    loaded: dict[str, tuple[Document, ...] | str] = {}

    def corpus(value: str) -> tuple[Document, ...]:
        if value not in loaded:
            loaded[value] = _corpus(folder, value)
        documents = loaded[value]
        if isinstance(documents, str):
            raise FieldError("corpus", value, documents)
        return documents

    name = source.name.removesuffix(".gz")
    return _read(read_source(source, str(path)), str(path), Path(name).stem or name, corpus)


def read_dataset(data: bytes, name: str) -> Dataset:
    """Read an uploaded data set; see `load_dataset`.

    ``corpus`` names a path of this machine, so it is refused here: every line must bring its own
    ``documents`` or ``passages``.
    """

    def refused(value: str) -> tuple[Document, ...]:
        raise FieldError(
            "corpus", value, "documents or passages in the line itself: an upload cannot name files"
        )

    return _read(read_source(data, name), name, name, refused)


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
    report = ValidationReport(1, 1, (), pd.DataFrame(columns=["row", "reason"]))
    return Dataset(name, (parsed,), _digest((parsed,)), report)


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


def _read(data: bytes, source: str, name: str, corpus: Callable[[str], tuple[Document, ...]]) -> Dataset:
    text = to_utf8(data, source)
    is_json = text.utf8.lstrip()[:1] in (b"{", b"[")
    lines = json_lines(text.utf8.decode(), source) if is_json else csv_rows(data, source, MAX_QUESTIONS * 10)
    log = IssueLog()
    questions: dict[str, Question] = {}
    rejected: list[dict[str, Any]] = []
    unused: dict[str, None] = {}
    interned: dict[tuple[Document, ...], tuple[Document, ...]] = {}
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
            question = parse_question(fields, f"q{n_rows:04d}", corpus)
            if question.query_id in questions:
                raise FieldError("id", question.query_id, "an id that no earlier line has")
        except FieldError as error:
            log.add(row, error.field, error.value, error.expected)
            reason = f"{error.field}: expected {error.expected}"
            rejected.append({"row": row, "reason": reason, **cells})
            continue
        if question.documents:
            # Lines that repeat the same documents share them, so that they are indexed once.
            question = replace(
                question, documents=interned.setdefault(question.documents, question.documents)
            )
        _warn(log, row, question)
        questions[question.query_id] = question
    if not questions:
        raise InputError(_nothing_usable(source, n_rows, log))
    kept = tuple(questions.values())
    notes = [text.note] if text.note else []
    notes += [f"Fields not used: {', '.join(map(shorten, list(unused)[:20]))}."] if unused else []
    frame = pd.DataFrame(rejected) if rejected else pd.DataFrame(columns=["row", "reason"])
    counts = log.n_issues, log.counts["error"]
    report = ValidationReport(n_rows, len(kept), log.listed(), frame, tuple(notes), *_possible(kept), *counts)
    return Dataset(name, kept, _digest(kept), report)


def _warn(log: IssueLog, row: int, question: Question) -> None:
    """Note what is odd but can be run: gold that stands nowhere, the same passage twice."""
    texts = [passage.text for passage in question.passages or ()]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        log.add(row, "passages", twice, "passages that differ within the question", "warning")
    texts += [document.text for document in question.documents]
    if not question.gold or sum(map(len, texts)) > _MAX_GOLD_SEARCH:
        return
    for fragment in question.gold:
        if not any(gold_spans(text, [fragment]) for text in texts):
            log.add(row, "gold", fragment, "a fragment that stands word for word in the documents", "warning")


def _possible(questions: Sequence[Question]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say what a run of these questions will show, and what it cannot."""
    referenced = sum(bool(q.reference_answers) for q in questions)
    golden = sum(bool(q.gold) or any(p.is_gold is not None for p in q.passages or ()) for q in questions)
    enables: list[str] = ["influence vs retrieval"]
    missing: list[str] = []
    for count, what, needs in (
        (referenced, "right and wrong answers, harmful passages", "answers"),
        (golden, "missed evidence", "gold, or is_gold of each passage"),
    ):
        share = "" if count == len(questions) else f" ({count} of {len(questions)} questions)"
        (enables if count else missing).append(f"{what}{share}" if count else f"{what}: needs {needs}")
    return tuple(enables), tuple(missing)


def _nothing_usable(source: str, n_rows: int, log: IssueLog) -> str:
    first = log.first_error
    if first is None:
        return f"{source} holds no question; expected one JSON object a line, or CSV with a column question."
    return (
        f"None of the {n_rows:,} lines of {source} can be used: line {first.row}, field {first.column}: "
        f"found {first.value!r}, expected {first.expected}."
    )


def _digest(questions: Sequence[Question]) -> str:
    digest = hashlib.sha256()
    corpora: dict[int, str] = {}
    for q in questions:
        key = id(q.documents)
        if key not in corpora:
            corpora[key] = _hash([[d.title, d.text] for d in q.documents])
        passages = q.passages and [[p.passage_id, p.title, p.text, p.score, p.is_gold] for p in q.passages]
        rest = [
            q.query_id,
            q.question,
            corpora[key],
            passages,
            q.reference_answers,
            q.gold,
            q.kind,
            q.language,
        ]
        digest.update(_hash(rest).encode())
    return digest.hexdigest()


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
