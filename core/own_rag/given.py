"""What the user of `core.analyze` gives: questions, ``retrieve`` and ``answer``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pandas as pd

from core.errors import BackendError, InputError
from core.llm.functions import FunctionLLM, Outcome, UserFunction
from core.pipeline.steps import ProgressCallback
from core.run import Run, holds_run
from core.sources.dataset import Dataset, dataset_of, load_dataset, make_dataset
from core.sources.fields import FieldError, Fields
from core.sources.question import (
    EVIDENCE,
    Document,
    PassageIn,
    Question,
    as_passage,
    names_of,
    parse_question,
    with_gold,
)
from core.sources.report import shorten

_NAME = "Questions"
# The names that LangChain's own chains use, the usual one first.
_QUESTION = ("question", "input", "query")
_PASSAGES = ("context", "documents", "input_documents", "passages", "docs")


def read_questions(questions: Any, documents: Iterable[Any] | None, *, retrieved_elsewhere: bool) -> Dataset:
    """Read what `core.analyze` gets; with ``retrieved_elsewhere``, questions' own passages do not count."""
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


@dataclass(frozen=True, slots=True)
class Found:
    """The objects that ``retrieve`` returned for a question, and the passages read from them."""

    objects: tuple[object, ...]
    passages: tuple[PassageIn, ...]


class Retrieval:
    """Calls ``retrieve``, up to ``parallel`` calls at once, and keeps the first k objects of each result."""

    def __init__(self, function: Callable[[str], Any], k: int, parallel: int | None) -> None:
        if not callable(function):
            raise InputError(f"retrieve must be a function, got {type(function).__name__}.")
        self.function = UserFunction(function, "retrieve", lambda value: found(value, k), parallel)
        self._found: dict[int, tuple[str, Found]] = {}

    def of(self, data: Dataset, progress: ProgressCallback | None = None) -> Dataset:
        """Return the data set with passages; `BackendError` where the function failed on every question."""
        n = len(data.questions)
        outcomes: dict[int, Outcome[Found]] = {}

        def done(index: int, outcome: Outcome[Found]) -> None:
            outcomes[index] = outcome
            if progress is not None:
                progress(len(outcomes), n, "retrieve")

        self.function.each([(question.question,) for question in data.questions], done)
        if all(outcome.error is not None for outcome in outcomes.values()):
            first = outcomes[0].error
            assert first is not None
            raise BackendError(
                f"retrieve failed on every question; first: {self.function.reason(first)}"
            ) from first
        questions = [
            self._with_passages(question, index, outcomes[index])
            for index, question in enumerate(data.questions)
        ]
        return replace(make_dataset(data.name, questions), report=data.report)

    def hand_to(self, llm: FunctionLLM) -> None:
        """Let ``answer`` receive the objects that ``retrieve`` returned."""
        for question, result in self._found.values():
            labelled = [(i, p.title, p.text) for i, p in enumerate(result.passages, start=1)]
            llm.hand(question, labelled, result.objects)

    def _with_passages(self, question: Question, index: int, outcome: Outcome[Found]) -> Question:
        bare = replace(question, documents=(), passages=None)
        if outcome.value is None:
            assert outcome.error is not None
            return replace(bare, problem=self.function.reason(outcome.error))
        if not outcome.value.passages:
            return replace(bare, problem="retrieve returned no passage.")
        self._found[index] = (question.question, outcome.value)
        return replace(bare, passages=with_gold(outcome.value.passages, question.gold))


def found(value: object, k: int) -> Found:
    """Read at most k passages from the result of ``retrieve``, any iterable."""
    single = isinstance(value, (str, bytes, Mapping)) or hasattr(value, "columns")
    if single or not isinstance(value, Iterable):
        raise InputError(
            f"retrieve must return a list of passages, got {type(value).__name__}; a single passage goes "
            "into a list, and of a result with several parts only the passages are returned."
        )
    objects = tuple(islice(value, k))
    return Found(objects, tuple(as_passage(entry, place) for place, entry in enumerate(objects, start=1)))


def as_retrieve(value: Any) -> Any:
    """Return the ``invoke`` of a retriever or another runnable; anything else as it is."""
    return value.invoke if _is_runnable(value) else value


def as_answer(value: Any) -> Any:
    """Return a runnable as a function of question and passages; anything else as it is.

    It gets a mapping under the names that it asks for; a prompt template gets the passages as one text.
    """
    if not _is_runnable(value):
        return value
    wanted = _wanted(value)
    question_name = _chosen(_QUESTION, wanted)
    passages_name = _chosen(_PASSAGES, wanted)
    is_prompt = hasattr(getattr(value, "first", value), "format_prompt")

    def answer(question: str, passages: Sequence[Any]) -> Any:
        given = _joined(passages) if is_prompt else list(passages)
        return value.invoke({question_name: question, passages_name: given})

    answer.__qualname__ = str(getattr(value, "name", None) or type(value).__qualname__)
    return answer


def _is_runnable(value: Any) -> bool:
    methods: tuple[Callable[..., Any] | None, ...] = tuple(
        getattr(value, name, None) for name in ("invoke", "ainvoke", "get_input_schema")
    )
    return not isinstance(value, Mapping) and all(callable(method) for method in methods)


def _wanted(runnable: Any) -> set[str]:
    """Return the names of the inputs that a runnable declares; empty where it declares none."""
    try:
        return set(runnable.get_input_schema().model_fields)
    except Exception:  # a schema of a user's own types may not be there to be had
        return set()


def _chosen(names: Sequence[str], wanted: set[str]) -> str:
    return next((name for name in names if name in wanted), names[0])


def _joined(passages: Sequence[Any]) -> str:
    return "\n\n".join(as_passage(passage, place).text for place, passage in enumerate(passages, start=1))
