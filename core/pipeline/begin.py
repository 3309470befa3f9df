"""The start of a live run: its questions and their passages, before any model call."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from typing import Annotated, Any

import pandas as pd

from core.errors import Cancelled, InputError, check_ranges
from core.llm.embeddings import Embedder, shared_embedder
from core.llm.packaged import PACKAGED_EMBEDDER
from core.llm.prompts import prompt_style
from core.llm.types import LLM
from core.pipeline.executing import reason_of
from core.pipeline.steps import (
    Option,
    ProgressCallback,
    Step,
    model_facts,
    options_of,
)
from core.retrieval import EMBEDDING_RETRIEVERS, RETRIEVERS, TOKENIZERS, best, make_retriever
from core.run import Run
from core.sources.dataset import Dataset
from core.sources.fields import unique
from core.sources.question import Document, PassageIn, Question, gold_spans, holds_gold
from core.text import passages as windows

_RANGES: Mapping[str, tuple[int, int]] = {"k": (1, 100), "passage_words": (10, 5000)}
_INDEXES_KEPT = 2
_LOG = logging.getLogger(__name__)
_PACKAGES = "numpy pandas scipy rank-bm25 rouge-score torch transformers sentence-transformers".split()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Retrieval settings; the steps hold the others.

    ``k`` is 1 to 100, ``passage_words`` 10 to 5,000; ``embedding_model`` None is the packaged
    all-MiniLM-L6-v2. `InputError` for a value outside its range, an unknown name, or an embedding model for a
    retriever without one.
    """

    k: Annotated[
        int,
        Option("--k", "Passages in the prompt; by default 10, or all of a saved run.", shows_default=False),
    ] = 10
    passage_words: Annotated[int, Option("--passage-words", "Words per passage.")] = 100
    retriever: Annotated[str, Option("--retriever", f"Retriever: {', '.join(RETRIEVERS)}.")] = "bm25"
    tokenizer: Annotated[str, Option("--tokenizer", f"How BM25 splits words: {', '.join(TOKENIZERS)}.")] = (
        "words"
    )
    embedding_model: Annotated[
        str | None, Option("--embedding-model", "Name or path, for dense and hybrid retrieval.")
    ] = None

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        for name, allowed in (("retriever", RETRIEVERS), ("tokenizer", TOKENIZERS)):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
        model = self.embedding_model
        if model is None:
            return
        if not isinstance(model, str) or not model.strip():
            raise InputError(f"embedding_model must be a name or a path, or None, got {model!r}.")
        if self.retriever not in EMBEDDING_RETRIEVERS:
            raise InputError(
                f"embedding_model is used by the retrievers {' and '.join(EMBEDDING_RETRIEVERS)} only, "
                f"got {model!r} for {self.retriever}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON, whose hash is in run ids: without an embedding model not given."""
        settings = asdict(self)
        if self.embedding_model is None:
            del settings["embedding_model"]
        return settings


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The passages of one question, best first, or a ``problem``.

    ``n_gold`` counts the gold passages of the whole collection; ``gold`` are those known, retrieved or not,
    each with the fragments that make it gold.
    """

    passages: tuple[PassageIn, ...] = ()
    n_gold: int | None = None
    problem: str | None = None
    gold: tuple[tuple[PassageIn, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class _Window:
    document: int
    passage_id: str
    title: str
    text: str
    start: int
    end: int


class _Collection:
    """Documents split into windows, indexed once."""

    def __init__(self, documents: Sequence[Document], options: RunOptions, embedder: Embedder | None) -> None:
        self.documents = documents
        self.windows = [
            _Window(number, f"{number + 1}.{place}", document.title, piece.text, piece.start, piece.end)
            for number, document in enumerate(documents)
            for place, piece in enumerate(windows(document.text, options.passage_words), start=1)
        ]
        # Only the title names what the middle of an article calls "it".
        texts = [f"{window.title} {window.text}" for window in self.windows]
        self.retriever = make_retriever(
            options.retriever, texts, tokenizer=options.tokenizer, embedder=embedder
        )

    def gold(self, fragments: Sequence[str]) -> dict[int, tuple[str, ...]]:
        """Return the indices of the windows that hold a fragment, each with its fragments."""
        found: dict[int, tuple[str, ...]] = {}
        for fragment in fragments:
            spans = {n: gold_spans(document.text, [fragment]) for n, document in enumerate(self.documents)}
            for i, w in enumerate(self.windows):
                if holds_gold(w.start, w.end, spans[w.document]):
                    found[i] = (*found.get(i, ()), fragment)
        return found


class PassageFinder:
    """Finds the passages of questions; threads may share it. Documents in the same tuple are indexed once."""

    def __init__(self, options: RunOptions, embedder: Embedder | None = None) -> None:
        self._options = options
        if embedder is None and options.retriever in EMBEDDING_RETRIEVERS:
            embedder = shared_embedder(options.embedding_model)
        self._embedder = embedder
        self._lock = threading.Lock()
        self._collections: OrderedDict[int, _Collection] = OrderedDict()

    def find(self, question: Question) -> Retrieved:
        """Return at most k passages of a question; no LLM calls."""
        if question.problem is not None:
            return Retrieved(problem=question.problem)
        if question.passages is not None:
            return _given(question, question.passages, self._options.k)
        if not question.documents:
            return Retrieved(problem="The question has no documents and no passages to answer from.")
        collection = self._collection(question.documents)
        if not collection.windows:
            return Retrieved(problem="The documents of the question hold no words.")
        scores = collection.retriever.scores(question.question)
        top = best(scores, self._options.k)
        gold = collection.gold(question.gold) if question.gold else None
        found = tuple(
            PassageIn(w.passage_id, w.title, w.text, float(scores[i]), None if gold is None else i in gold)
            for i, w in ((i, collection.windows[i]) for i in top)
        )
        known = tuple(
            (PassageIn(w.passage_id, w.title, w.text, None, True), fragments)
            for i, fragments in sorted((gold or {}).items())
            for w in (collection.windows[i],)
        )
        return Retrieved(found, None if gold is None else len(gold), gold=known)

    def _collection(self, documents: tuple[Document, ...]) -> _Collection:
        # Keyed by identity; the collection holds the documents, so the id is not reused.
        with self._lock:
            key = id(documents)
            if key not in self._collections:
                self._collections[key] = _Collection(documents, self._options, self._embedder)
                while len(self._collections) > _INDEXES_KEPT:
                    self._collections.popitem(last=False)
            self._collections.move_to_end(key)
            return self._collections[key]


def _given(question: Question, passages: Sequence[PassageIn], k: int) -> Retrieved:
    """Use passages as given; gold that must exist counts even where no passage holds it."""
    if not passages:
        return Retrieved(problem="The list of passages is empty.")
    counts = [] if question.n_gold is None else [question.n_gold]
    if question.n_gold is None and question.gold:
        counts = [1]
    marks = [passage.is_gold for passage in passages if passage.is_gold is not None]
    if marks:
        counts.append(sum(marks))
    ids = unique([passage.passage_id for passage in passages])
    named = tuple(replace(passage, passage_id=ids[i]) for i, passage in enumerate(passages))
    gold = [(one, _within(one.text, question.gold)) for one in named if one.is_gold]
    # What no passage holds is known by its fragment alone.
    rest = [text for text in question.gold if not any(gold_spans(one.text, [text]) for one in named)]
    names = [*(one.passage_id for one in named), *(f"gold {i}" for i in range(1, len(rest) + 1))]
    fresh = unique(names)[len(named) :]
    gold += [(PassageIn(name, "", text, None, True), (text,)) for name, text in zip(fresh, rest, strict=True)]
    return Retrieved(named[:k], max(counts, default=None), gold=tuple(gold))


def _within(text: str, fragments: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in fragments if gold_spans(text, [one]))


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

    ``llm`` and ``step`` are those that will answer; ``progress`` gets ``(done, total, "retrieve")`` in
    questions. The same data, options, prompt and model give the same run id. `InputError` where the data set
    is empty or two of its questions share an id; `Cancelled` once ``cancelled`` returns True.
    """
    if not dataset.questions:
        raise InputError(f"The data set {dataset.name} holds no question; give at least one.")
    twice = [name for name, n in Counter(one.query_id for one in dataset.questions).items() if n > 1]
    if twice:
        raise InputError(
            f"The data set {dataset.name} holds the question id {twice[0]!r} twice; ids must differ."
        )
    finder = PassageFinder(options)
    rows: dict[str, list[dict[str, object]]] = {"queries": [], "passages": [], "gold": []}
    for done, question in enumerate(dataset.questions, start=1):
        if cancelled is not None and cancelled():
            raise Cancelled("Stopped on request while passages were retrieved.")
        found = _found(finder, question)
        rows["queries"].append(_query(question, found))
        rows["passages"] += _passages(question, found)
        rows["gold"] += _gold(question, found)
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
    return Run.create(manifest, **{name: pd.DataFrame(given) for name, given in rows.items() if given})


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


def _gold(question: Question, found: Retrieved) -> Sequence[dict[str, object]]:
    there = {passage.passage_id for passage in found.passages}
    return [
        {
            "query_id": question.query_id,
            "passage_id": passage.passage_id,
            "title": passage.title,
            "text": None if passage.passage_id in there else passage.text,
            "evidence": list(fragments) or None,
        }
        for passage, fragments in found.gold
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
