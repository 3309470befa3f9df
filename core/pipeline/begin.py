"""The start of a live run: its questions and their passages, before any model call."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from typing import Any

import pandas as pd

from core.errors import Cancelled, InputError
from core.llm.packaged import PACKAGED_EMBEDDER
from core.llm.prompts import prompt_style
from core.llm.types import LLM
from core.pipeline.options import RunOptions
from core.pipeline.retrieve import PassageFinder, Retrieved
from core.pipeline.steps import ProgressCallback, Step, model_facts, options_of, reason_of
from core.retrieval import EMBEDDING_RETRIEVERS
from core.run import Run
from core.sources.dataset import Dataset
from core.sources.question import Question

_LOG = logging.getLogger(__name__)
_PACKAGES = (
    "numpy",
    "pandas",
    "scipy",
    "rank-bm25",
    "rouge-score",
    "torch",
    "transformers",
    "sentence-transformers",
)


def begin(
    dataset: Dataset,
    options: RunOptions,
    llm: LLM,
    step: Step,
    *,
    name: str | None = None,
    progress: ProgressCallback | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Run:
    """Retrieve the passages of all questions: a run with ``complete`` false and no answers; calls no model.

    ``llm`` and ``step``, with the options ``style`` and ``max_tokens``, are those that will answer;
    ``progress`` gets ``(done, total, "retrieve")`` in questions. A question without passages has a
    ``status_reason``. The same data, options, prompt and model give the same run id.

    `InputError` where the data set is empty or two of its questions share an id; `Cancelled` once
    ``cancelled`` returns True.
    """
    if not dataset.questions:
        raise InputError(f"The data set {dataset.name} holds no question; give at least one.")
    twice = [name for name, n in Counter(one.query_id for one in dataset.questions).items() if n > 1]
    if twice:
        raise InputError(
            f"The data set {dataset.name} holds the question id {twice[0]!r} twice; ids must differ."
        )
    finder = PassageFinder(options)
    queries: list[dict[str, object]] = []
    passages: list[dict[str, object]] = []
    for done, question in enumerate(dataset.questions, start=1):
        if cancelled is not None and cancelled():
            raise Cancelled("Stopped on request while passages were retrieved.")
        found = _found(finder, question)
        queries.append(_query(question, found))
        passages += _passages(question, found)
        if progress is not None:
            progress(done, len(dataset.questions), "retrieve")
    manifest = {
        "source": "live",
        "run_id": run_id_of(dataset, options, llm, step),
        "name": name or f"{dataset.name}, {llm.name}",
        "complete": False,
        "dataset": {"name": dataset.name, "digest": dataset.digest, "n_questions": len(dataset.questions)},
        "model": model_facts(llm),
        "prompt": prompt_facts(llm, options_of(step)),
        "retriever": _retriever(options),
        "options": {**options.to_dict(), **options_of(step)},
        "environment": _environment(),
        "notes": [],
        "steps": {},
    }
    tables = {"queries": pd.DataFrame(queries)} | ({"passages": pd.DataFrame(passages)} if passages else {})
    return Run.create(manifest, **tables)


def run_id_of(dataset: Dataset, options: RunOptions, llm: LLM, step: Step) -> str:
    """Return the id that `begin` gives the run."""
    chosen = options_of(step)
    style = prompt_style(chosen["style"])
    identity = [
        dataset.digest,
        {**options.to_dict(), **chosen},
        [style.instruction, style.closed_book, style.template, list(style.stop)],
        llm.name,
        dict(llm.options),
    ]
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def prompt_facts(llm: LLM, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a prompt that a run records; ``chosen`` has ``style`` and ``max_tokens``."""
    style = prompt_style(chosen["style"])
    return {
        "style": style.name,
        "instruction": style.instruction,
        "closed_book": style.closed_book,
        "template": style.sent(llm.capabilities.prefill),
        "max_tokens": chosen["max_tokens"],
    }


def _found(finder: PassageFinder, question: Question) -> Retrieved:
    try:
        return finder.find(question)
    except Exception as error:  # a failed question does not end the run
        _LOG.debug("No passages of %s.", question.query_id, exc_info=True)
        return Retrieved(problem=reason_of(error, "The retriever"))


def _query(question: Question, found: Retrieved) -> dict[str, object]:
    return {
        "query_id": question.query_id,
        "question": question.question,
        "status_reason": found.problem,
        "reference_answers": list(question.reference_answers) or None,
        "n_gold": found.n_gold,
        "kind": question.kind,
        "language": question.language,
    }


def _passages(question: Question, found: Retrieved) -> Sequence[dict[str, object]]:
    return [
        {
            "query_id": question.query_id,
            "passage_id": passage.passage_id,
            "title": passage.title,
            "text": passage.text,
            "retrieval_rank": float(slot),
            "retrieval_score": passage.score,
            "slot": slot,
            "is_gold": passage.is_gold,
        }
        for slot, passage in enumerate(found.passages, start=1)
    ]


def _retriever(options: RunOptions) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": options.retriever,
        "tokenizer": options.tokenizer,
        "k": options.k,
        "passage_words": options.passage_words,
    }
    if options.retriever in EMBEDDING_RETRIEVERS:
        facts["embedding_model"] = options.embedding_model or PACKAGED_EMBEDDER
    return facts


def _environment() -> dict[str, Any]:
    packages = {}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            packages[package] = metadata.version(package)
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "packages": packages,
    }
