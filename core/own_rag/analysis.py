"""`core.analyze`: run a RAG given as two functions, and diagnose it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

import pandas as pd

from core.errors import BackendError, InputError
from core.llm import BACKENDS, LLM, CompletionCache, backend, open_llm
from core.llm.functions import FunctionLLM, Outcome, UserFunction
from core.llm.prompts import DEFAULT_STYLE, FUNCTION_STYLE
from core.llm.types import DEFAULT_MAX_TOKENS
from core.manifest import read_manifest
from core.pipeline import ModelChoice, ProgressLine, RunOptions, Step, begin
from core.pipeline.cluster import HERE, Place, executor
from core.pipeline.executing import Executor
from core.pipeline.steps import ProgressCallback, asks_questions, drive, open_models
from core.run import Run, check_target, holds_run, sole_writer
from core.socket import steps_of
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


def analyze(
    questions: Any,
    *,
    retrieve: Callable[[str], Any] | None = None,
    answer: Callable[[str, list[Any]], Any] | LLM | str | None = None,
    documents: Iterable[Any] | None = None,
    k: int = 10,
    repeats: int = 0,
    closed_book: bool = True,
    seed: int = 0,
    max_tokens: int | None = None,
    style: str | None = None,
    passage_words: int = 100,
    retriever: str = "bm25",
    name: str | None = None,
    cache: str | os.PathLike[str] | CompletionCache | None = None,
    progress: ProgressCallback | bool | None = None,
    parallel: int | None = None,
    steps: Sequence[str | Step] = ("influence",),
    save: str | os.PathLike[str] | None = None,
    on: str = HERE,
    workers: int | None = None,
    gpus_per_worker: float = 0.0,
) -> Run:
    """Run a RAG on questions with all passages and with each one left out.

    `InputError` where an argument cannot be used; `BackendError` where ``retrieve`` or ``answer`` failed on
    every question, whose cause is the first exception it raised. Cost: for each question one call of
    ``retrieve`` and, with n passages, 1 + n + repeats + closed_book calls of ``answer``. It works inside a
    running event loop, as in a notebook.

    Parameters
    ----------
    questions : list, Dataset or path
        Texts, or mappings with ``question`` and any of ``id, answers, gold, documents, passages``; a table
        with such columns; a data set or its file; a run to ask again, or its folder.
    retrieve : callable, optional
        ``retrieve(question)`` returns passages, best first: texts, pairs of passage and score, mappings, or
        objects of a framework (see `core.sources.question.as_passage`). Plain or async, or a retriever of
        LangChain. Without it, passages come from the questions or are retrieved from documents.
    answer : callable, runnable, LLM or str
        ``answer(question, passages)`` gets objects that ``retrieve`` returned, in the same order (texts
        without ``retrieve``), and returns a text, a `Completion`, None for no answer, or a message or
        response of a framework, or yields pieces of it. Plain or async. Or a runnable of LangChain, which
        gets both in a mapping. Or a language model, called with the built-in prompt: an open one, or the
        name of a back end, such as ``"ollama"`` or ``"ollama:llama3.2:3b"``.
    documents : iterable, optional
        Texts, ``{title, text}`` or documents of a framework, for questions that have neither passages nor
        documents.
    k : int
        Maximum passages of a question, 1 to 100; later ones are dropped.
    repeats, closed_book
        Extra calls with all passages, for the noise floor; one more without: ``answer(question, [])``.
    seed : int
        Seed of the calls; functions do not receive it.
    max_tokens, style : optional
        Max answer tokens, and the prompt (short, full), where ``answer`` is a language model.
    passage_words, retriever : optional
        Words per passage and retriever, for documents.
    name : str, optional
        Name of the run, and of the function in ``cache``.
    cache : path or CompletionCache, optional
        Keeps finished calls, so that a killed run resumes where it stopped. By default they are kept in
        memory. Needs a ``name`` where ``answer`` is a function; give another one when the function changes.
    progress : callable or bool, optional
        None shows a line on standard error if that is a terminal, True always, False never; a callable
        gets ``(done, total, what)``: questions during retrieval, then calls.
    parallel : int, optional
        Concurrent calls of each function; by default 1, and 8 where it is async. With 1, functions are
        called in the calling thread.
    steps : sequence of str or Step
        Names of diagnostics, or steps with their own options, in order; the first must answer the questions.
    save : path, optional
        Folder for the run; the unfinished run is saved there as it grows. Nobody else may be writing there.
    on, workers, gpus_per_worker : optional
        Where the model is asked: ``here``, in this process; ``ray``, in workers on this machine; or in those
        of the Ray cluster at an address, ``ray://host:10001``. ``answer`` is then a language model.

    Returns
    -------
    Run
        One row per question; a failed question has the exception as ``status_reason``.
    """
    _check(answer, parallel, name)
    place = Place(on, workers, gpus_per_worker)
    with ExitStack() as stack:
        model = _model(answer, name, parallel)
        function = model if isinstance(model, FunctionLLM) else None
        if function is not None:
            stack.callback(function.close)
            _check_function(name, cache, max_tokens, style)
        options_of_answers = {
            "repeats": repeats,
            "closed_book": closed_book,
            "seed": seed,
            "max_tokens": _answer_tokens(model) if max_tokens is None else max_tokens,
            "style": FUNCTION_STYLE.name if function is not None else style or DEFAULT_STYLE,
        }
        asking, *others = _steps(steps, options_of_answers)
        live = ModelChoice(str(getattr(model, "kind", "")), model.name)
        if function is not None:
            _check_takes_function(others, live, place)
        models = {**open_models(others, live, {live: model}), asking.name: model}
        options = RunOptions(k=k, passage_words=passage_words, retriever=retriever)
        data = read_questions(questions, documents, retrieved_elsewhere=retrieve is not None)
        title = name or f"{data.name}, {model.name}"
        _check_folder(save, title)
        if save is not None:
            stack.enter_context(sole_writer(save))
        store = cache if isinstance(cache, CompletionCache) else stack.enter_context(CompletionCache(cache))
        retrieval = None
        if retrieve is not None:
            retrieval = Retrieval(as_retrieve(retrieve), k, parallel)
            stack.callback(retrieval.function.close)
            data = retrieval.of(data, _reporter(progress, stack))
            if function is not None:
                retrieval.hand_to(function)
        run = _described(begin(data, options, model, asking, name=title), function, retrieval)

        def save_run(partial: Run) -> None:
            if save is not None:
                _uncounted(partial, function).save(save)

        driven = drive(
            run,
            (asking, *others),
            models,
            lambda step, _: nullcontext(_reporter(progress, stack, step)),
            cache=store,
            on_part=save_run if save is not None else None,
            on=stack.enter_context(_executor(place, (asking, *others), live, model, answer)),
        )
        for step, _, run in driven:
            if step is asking and function is not None:
                _raise_if_all_failed(run, function)
            save_run(run)
        return _uncounted(run, function)


def _steps(chosen: Sequence[str | Step], options: Mapping[str, Any]) -> list[Step]:
    """Return the steps; the first one answers the questions, with these options if given by name."""
    from core import diagnostics  # its packages import the pipeline

    known = steps_of(diagnostics.DIAGNOSTICS)
    unknown = next((one for one in chosen if isinstance(one, str) and one not in known), None)
    if isinstance(chosen, str) or unknown is not None:
        wrong = chosen if isinstance(chosen, str) else unknown
        raise InputError(f"steps must be a list of {', '.join(known)} or of steps, got {wrong!r}.")
    steps: list[Step] = [
        one if not isinstance(one, str) else known[one](**(options if asks_questions(known[one]) else {}))
        for one in chosen
    ]
    if not steps or not asks_questions(steps[0]):
        asking = ", ".join(name for name, step in known.items() if asks_questions(step))
        raise InputError(f"The first of steps must ask the questions: {asking}; got {list(chosen)!r}.")
    return steps


def _described(run: Run, function: FunctionLLM | None, retrieval: Retrieval | None) -> Run:
    """Return the run with the functions in its manifest, without facts that they do not give."""
    facts: dict[str, Any] = dict(run.manifest)
    queries = run.queries
    if retrieval is not None:
        facts["retriever"] = {
            "name": "function",
            "function": retrieval.function.name,
            "k": facts["options"]["k"],
        }
        facts["options"] = {**facts["options"], "retriever": "function"}
        # There may be gold passages that were not retrieved, so their number is unknown.
        gold = run.passages["query_id"][run.passages["is_gold"].fillna(False).astype(bool)]
        queries = queries.assign(n_gold=queries["n_gold"].mask(queries["query_id"].isin(gold)))
    if function is not None:
        facts["prompt"] = {**facts["prompt"], "max_tokens": None}
    return Run.create(facts, **{**run.tables, "queries": queries})


def _uncounted(run: Run, function: FunctionLLM | None) -> Run:
    """Return the run of a function with uncounted tokens as None, not 0."""
    if function is None:
        return run
    cost: Mapping[str, Any] = run.manifest["cost"]
    tokens = {name: cost[name] or None for name in ("prompt_tokens", "completion_tokens")}
    return Run.create({**run.manifest, "cost": {**cost, **tokens}}, **run.tables)


def _model(answer: Any, name: str | None, parallel: int | None) -> LLM:
    if isinstance(answer, str):
        kind, _, model = answer.partition(":")
        return open_llm(kind, model or None)
    if all(hasattr(answer, part) for part in ("generate", "count_tokens", "options", "capabilities")):
        return cast(LLM, answer)
    return FunctionLLM(as_answer(answer), name=name, parallel=parallel)


def _executor(
    place: Place, steps: Sequence[Step], live: ModelChoice, model: LLM, answer: object
) -> AbstractContextManager[Executor]:
    """Return who works on the questions."""
    # A model that was opened by name is opened by each worker, too; any other is sent there.
    own: ModelChoice | LLM = live if isinstance(answer, str) else model
    choices = {step.name: step.model(live) for step in steps}
    return executor(place, {name: own if choice == live else choice for name, choice in choices.items()})


def _answer_tokens(model: LLM) -> int:
    kind = str(getattr(model, "kind", ""))
    return backend(kind).max_tokens if kind in BACKENDS else DEFAULT_MAX_TOKENS


def _check(answer: object, parallel: object, name: object) -> None:
    if answer is None:
        raise InputError(
            "answer is missing; give a function answer(question, passages), a language model, or the name of "
            f"a back end ({', '.join(BACKENDS)})."
        )
    if parallel is not None and (isinstance(parallel, bool) or not isinstance(parallel, int) or parallel < 1):
        raise InputError(f"parallel must be a whole number from 1, got {parallel!r}.")
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InputError(f"name must be a text that is not empty, got {name!r}.")


def _check_function(name: str | None, cache: object, max_tokens: int | None, style: str | None) -> None:
    if cache is not None and name is None:
        raise InputError(
            "cache needs a name: a changed function looks like the old one, so its answers are kept under "
            "the name that you give it."
        )
    for argument, value in (("max_tokens", max_tokens), ("style", style)):
        if value is not None:
            raise InputError(
                f"{argument} is for language models; answer is a function, which decides itself."
            )


def _check_takes_function(steps: Sequence[Step], live: ModelChoice, place: Place) -> None:
    if place.on != HERE:
        raise InputError(f"on={place.on!r} needs a language model; answer is a function.")
    asking = (step for step in steps if step.model(live) == live)
    wrong = next((step for step in asking if not getattr(step, "takes_function", False)), None)
    if wrong is not None:
        raise InputError(f"The step {wrong.name} needs a language model; answer is a function.")


def _check_folder(save: str | os.PathLike[str] | None, title: str) -> None:
    """Raise InputError, before any call, where the folder holds another run or other files."""
    if save is None or not holds_run(check_target(save)):
        return
    there = read_manifest(save).get("name")
    if there != title:
        raise InputError(f"{save} already holds another run, {there!r}; give another folder as save.")


def _reporter(
    progress: ProgressCallback | bool | None, stack: ExitStack, step: Step | None = None
) -> ProgressCallback | None:
    if callable(progress):
        return progress
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return None
    line = ProgressLine(f"{step.noun}s" if step is not None else "questions")
    stack.callback(line.end)
    return line


def _raise_if_all_failed(run: Run, function: FunctionLLM) -> None:
    if (run.queries["answer_status"] != "error").any():
        return
    for reason in run.queries["status_reason"]:
        cause = function.errors.get(reason)
        if cause is not None:
            raise BackendError(f"answer failed on every question; first: {reason}") from cause


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
