"""The passages of a question: retrieved from its documents, or given."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.llm.embeddings import Embedder
from core.pipeline.options import RunOptions
from core.retrieval import EMBEDDING_RETRIEVERS, best, make_retriever, shared_embedder
from core.sources.fields import unique
from core.sources.question import Document, PassageIn, Question, gold_spans, holds_gold
from core.text import passages as windows

_INDEXES_KEPT = 2


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The passages of one question, best first.

    ``n_gold`` counts the gold passages of the whole collection, None where gold is unknown; ``problem`` is
    the reason why there are no passages.
    """

    passages: tuple[PassageIn, ...] = ()
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

    def gold(self, fragments: Sequence[str]) -> set[int]:
        """Return the indices of the windows that hold a fragment."""
        spans = {n: gold_spans(document.text, fragments) for n, document in enumerate(self.documents)}
        return {i for i, w in enumerate(self.windows) if holds_gold(w.start, w.end, spans[w.document])}


class PassageFinder:
    """Finds the passages of questions; threads may share it.

    Documents that several questions share (the same tuple object) are indexed once. By default ``embedder``
    is the one that this process shares for the embedding model.
    """

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
        return Retrieved(found, None if gold is None else len(gold))

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
    found = tuple(replace(passage, passage_id=ids[i]) for i, passage in enumerate(passages[:k]))
    return Retrieved(found, max(counts, default=None))
