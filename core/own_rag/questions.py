"""The questions of `core.analyze`, read into a data set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from core.errors import InputError
from core.run import Run, holds_run
from core.sources.continue_run import dataset_of
from core.sources.dataset import Dataset, load_dataset, make_dataset
from core.sources.fields import FieldError, Fields
from core.sources.objects import as_passage
from core.sources.question import EVIDENCE, Document, Question, names_of, parse_question
from core.sources.report import shorten

_NAME = "Questions"


def read_questions(questions: Any, documents: Iterable[Any] | None, *, retrieved_elsewhere: bool) -> Dataset:
    """Read the arguments ``questions`` and ``documents`` of `core.analyze`.

    With ``retrieved_elsewhere`` a function retrieves the passages; those of the questions are not used.
    """
    if documents is not None and retrieved_elsewhere:
        raise InputError("Both retrieve and documents are given; passages can come from one of them only.")
    shared = () if retrieved_elsewhere else _documents(documents)
    if isinstance(questions, (str, os.PathLike)):
        questions = _file(questions, shared)
    if isinstance(questions, Run):
        questions = dataset_of(questions)
    if isinstance(questions, Dataset):
        return _completed(questions, shared)
    if isinstance(questions, pd.DataFrame):
        questions = [_known(record) for record in questions.to_dict("records")]
    if isinstance(questions, (bytes, Mapping)) or not isinstance(questions, Iterable):
        raise InputError(
            f"questions must be a list of texts or mappings, a data set or a path, got "
            f"{type(questions).__name__}."
        )
    read = [
        _question(entry, place, shared, retrieved_elsewhere) for place, entry in enumerate(questions, start=1)
    ]
    if not read:
        raise InputError("questions is empty; give at least one.")
    return make_dataset(_NAME, read)


def _documents(documents: Any) -> tuple[Document, ...] | None:
    if documents is None:
        return None
    if isinstance(documents, (str, bytes, Mapping, os.PathLike)) or not isinstance(documents, Iterable):
        raise InputError(f"documents must be a list of texts, got {type(documents).__name__}.")
    read = [as_passage(entry, place) for place, entry in enumerate(documents, start=1)]
    if not read:
        raise InputError("documents is empty; give at least one.")
    return tuple(Document(passage.title, passage.text) for passage in read)


def _file(path: str | os.PathLike[str], shared: tuple[Document, ...] | None) -> Dataset:
    if isinstance(path, str) and not os.path.exists(path) and len(path.split()) > 1:
        raise InputError(f"questions must be a list or the path of a file, got the text {shorten(path)!r}.")
    if holds_run(path):
        return dataset_of(Run.load(path))
    return load_dataset(path, documents=shared)


def _completed(data: Dataset, shared: tuple[Document, ...] | None) -> Dataset:
    """Return the data set with the shared documents for questions without evidence."""
    if not shared:
        return data
    questions = [_with(question, shared) for question in data.questions]
    if not any(question.documents is shared for question in questions):
        raise InputError("documents is given, but every question brings passages or documents of its own.")
    return replace(make_dataset(data.name, questions), report=data.report)


def _with(question: Question, shared: tuple[Document, ...] | None) -> Question:
    bare = question.passages is None and not question.documents
    return replace(question, documents=shared) if shared and bare else question


def _question(
    entry: Any, place: int, shared: tuple[Document, ...] | None, retrieved_elsewhere: bool
) -> Question:
    if isinstance(entry, Question):
        return _with(entry, shared)
    if not isinstance(entry, (str, Mapping)):
        raise InputError(
            f"Question {place} is of the type {type(entry).__name__}; expected a text or a mapping."
        )
    record = {"question": entry} if isinstance(entry, str) else entry
    evidence = [name for field in EVIDENCE for name in names_of(field) if record.get(name) is not None]
    if not evidence and shared is None:
        raise InputError(
            f"Question {place} brings no passages and no documents; give retrieve or documents, or put them "
            "into the question."
        )
    unused = evidence if retrieved_elsewhere else []
    plain = {name: _plain(value) for name, value in record.items() if name not in unused}
    try:
        return parse_question(Fields(plain, strict=True), f"q{place:04d}", _no_corpus, shared)
    except FieldError as error:
        raise InputError(
            f"Question {place}: {error.field} holds {shorten(error.value)!r}; expected {error.expected}."
        ) from error


def _no_corpus(value: str) -> tuple[Document, ...]:
    raise FieldError("corpus", value, "documents or passages: only a file can name a corpus beside it")


def _plain(value: Any) -> Any:
    """Return a tuple or an array as a list, as in JSON."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _known(record: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of a table row that have a value."""
    return {
        str(name): value
        for name, value in record.items()
        if not (pd.api.types.is_scalar(value) and pd.isna(value))
    }
