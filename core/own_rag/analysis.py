"""`core.analyze`: run a RAG given as two functions, and diagnose it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any, cast

from core.errors import BackendError, InputError
from core.llm import BACKENDS, LLM, CompletionCache, backend, open_llm
from core.llm.functions import FunctionLLM
from core.llm.prompts import DEFAULT_STYLE, FUNCTION_STYLE
from core.llm.types import DEFAULT_MAX_TOKENS
from core.own_rag.given import Retrieval, as_answer, as_retrieve, read_questions
from core.pipeline import ModelChoice, ProgressLine, RunOptions, Step, begin
from core.pipeline.steps import ProgressCallback, asks_questions, drive, open_models
from core.run import Run, check_target, holds_run, read_manifest, sole_writer
from core.socket import steps_of


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

    Returns
    -------
    Run
        One row per question; a failed question has the exception as ``status_reason``.
    """
    _check(answer, parallel, name)
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
        asks_function = next((s for s in others if function is not None and s.model(live) == live), None)
        if asks_function is not None:
            raise InputError(f"The step {asks_function.name} needs a language model; answer is a function.")
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
            own_thread=function is not None and function.capabilities.parallel == 1,
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
