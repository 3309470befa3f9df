"""From a question to its passages: retrieved from its documents, or given."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from core.llm.embeddings import Embedder
from core.pipeline.options import RunOptions
from core.retrieval import EMBEDDING_RETRIEVERS, best, make_retriever, shared_embedder
from core.sources.corpus import Document
from core.sources.gold import gold_spans, holds_gold
from core.sources.question import PassageIn, Question
from core.text import passages as windows

_INDEXES_KEPT = 2


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A passage of the prompt; ``rank`` (from 1) is also its label and its place in the prompt."""

    passage_id: str
    title: str
    text: str
    rank: int
    score: float | None
    is_gold: bool | None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The passages of one question.

    ``n_gold`` counts the gold passages of the whole collection, None where no gold is known.
    ``problem`` says why there is no passage at all.
    """

    passages: tuple[RetrievedPassage, ...] = ()
    n_gold: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    document: int
    passage_id: str
    title: str
    text: str
    start: int
    end: int


class _Collection:
    """Documents cut into windows, indexed once."""

    def __init__(self, documents: Sequence[Document], options: RunOptions, embedder: Embedder | None) -> None:
        self.documents = documents
        self.windows = [
            _Window(number, f"{number + 1}.{place}", document.title, piece.text, piece.start, piece.end)
            for number, document in enumerate(documents)
            for place, piece in enumerate(windows(document.text, options.passage_words), start=1)
        ]
        # The title names the subject that the middle of an article only calls "it".
        texts = [f"{window.title} {window.text}" for window in self.windows]
        self.retriever = make_retriever(
            options.retriever, texts, tokenizer=options.tokenizer, embedder=embedder
        )

    def gold(self, fragments: Sequence[str]) -> set[int]:
        """Return the indices of the windows that hold a fragment."""
        spans = {n: gold_spans(document.text, fragments) for n, document in enumerate(self.documents)}
        return {i for i, w in enumerate(self.windows) if holds_gold(w.start, w.end, spans[w.document])}


class PassageFinder:
    """Finds the passages of questions; safe to share between threads.

    Documents that several questions share (the same tuple object) are indexed once.

    Parameters
    ----------
    options : RunOptions
        k, words per passage, retriever, tokenizer and embedding model.
    embedder : Embedder, optional
        For the retrievers that need one; None is the one this process shares for the embedding model.
    """

    def __init__(self, options: RunOptions, embedder: Embedder | None = None) -> None:
        self._options = options
        if embedder is None and options.retriever in EMBEDDING_RETRIEVERS:
            embedder = shared_embedder(options.embedding_model)
        self._embedder = embedder
        self._lock = threading.Lock()
        self._collections: OrderedDict[int, _Collection] = OrderedDict()

    def find(self, question: Question) -> Retrieved:
        """Return at most k passages of a question, best first; no LLM calls."""
        if question.problem is not None:
            return Retrieved(problem=question.problem)
        if question.passages is not None:
            return _given(question.passages, self._options.k, _known_gold(question))
        if not question.documents:
            return Retrieved(problem="The question has no documents and no passages to answer from.")
        collection = self._collection(question.documents)
        if not collection.windows:
            return Retrieved(problem="The documents of the question hold no words.")
        scores = collection.retriever.scores(question.question)
        top = best(scores, self._options.k)
        gold = collection.gold(question.gold) if question.gold else None
        found = tuple(
            RetrievedPassage(
                collection.windows[index].passage_id,
                collection.windows[index].title,
                collection.windows[index].text,
                rank,
                float(scores[index]),
                None if gold is None else index in gold,
            )
            for rank, index in enumerate(top, start=1)
        )
        return Retrieved(found, None if gold is None else len(gold))

    def _collection(self, documents: tuple[Document, ...]) -> _Collection:
        # Kept by identity; holding the documents keeps the identity from being given away again.
        with self._lock:
            key = id(documents)
            if key not in self._collections:
                self._collections[key] = _Collection(documents, self._options, self._embedder)
                while len(self._collections) > _INDEXES_KEPT:
                    self._collections.popitem(last=False)
            self._collections.move_to_end(key)
            return self._collections[key]


def _known_gold(question: Question) -> int | None:
    """Return how many gold passages there are for certain, apart from marks on the passages."""
    if question.n_gold is not None:
        return question.n_gold
    return 1 if question.gold else None


def _given(passages: Sequence[PassageIn], k: int, known_gold: int | None = None) -> Retrieved:
    """Take passages as they are; gold that is known to exist counts even where none of them holds it."""
    if not passages:
        return Retrieved(problem="The list of passages is empty.")
    known = [passage.is_gold for passage in passages if passage.is_gold is not None]
    ids = _distinct([passage.passage_id for passage in passages])
    found = tuple(
        RetrievedPassage(ids[i], passage.title, passage.text, i + 1, passage.score, passage.is_gold)
        for i, passage in enumerate(passages[:k])
    )
    counts = [n for n, there in ((known_gold or 0, known_gold is not None), (sum(known), known)) if there]
    return Retrieved(found, max(counts, default=None))


def _distinct(names: Sequence[str]) -> list[str]:
    """Make repeated names distinct, so that one odd question cannot sink a run."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result if len(set(result)) == len(result) else [f"p{i}" for i in range(1, len(names) + 1)]
