import numpy as np
import pytest

from core import retrieval
from core.llm.embeddings import RememberingEmbedder, shared_embedder
from core.retrieval import DenseRetriever
from tests.core.retrieval.hashing import HashingEmbedder

TEXTS = ["a red apple", "a green pear", "blue sky"]


class Table:
    """Vectors written down by hand."""

    def __init__(self, **vectors):
        self.vectors = vectors

    def embed(self, texts):
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


def test_scores_are_cosines_of_unit_vectors():
    table = Table(east=[1, 0], north=[0, 1], west=[-1, 0], northeast=[0.6, 0.8])
    retriever = DenseRetriever(["east", "north", "west"], table)
    assert retriever.scores("northeast").tolist() == pytest.approx([0.6, 0.8, -0.6], abs=1e-6)
    assert retriever.top("northeast", 2) == [1, 0]


def test_equal_texts_are_embedded_once_and_tie():
    embedder = HashingEmbedder()
    retriever = DenseRetriever(["x y", "z", "x y", "x y"], embedder)
    assert embedder.batches == [2]
    scores = retriever.scores("x")
    assert scores[0] == scores[2] == scores[3]
    assert retriever.top("x", 4) == [0, 2, 3, 1]


def test_noise_of_single_precision_decides_no_tie():
    table = Table(query=[1, 0], first=[0.5, 0.8660254], second=[0.50000006, 0.8660254])
    assert DenseRetriever(["first", "second"], table).top("query", 2) == [0, 1]


def test_passages_are_embedded_in_batches(monkeypatch):
    monkeypatch.setattr(retrieval, "_BATCH", 4)
    embedder = HashingEmbedder()
    texts = [f"text {i}" for i in range(10)]
    retriever = DenseRetriever(texts, embedder)
    assert embedder.batches == [4, 4, 2]
    assert retriever.top("text 7", 1) == [7]


def test_an_empty_corpus():
    retriever = DenseRetriever([], HashingEmbedder())
    assert retriever.scores("a").shape == (0,)
    assert retriever.top("a", 3) == []


def test_what_was_embedded_is_remembered():
    inner = HashingEmbedder()
    embedder = RememberingEmbedder(inner)
    for _ in range(2):  # as planning a run and doing it would
        DenseRetriever(TEXTS, embedder).scores("pear")
    assert inner.batches == [3, 1]
    assert embedder.embed(["ab", "c"]).tolist() != embedder.embed(["a", "bc"]).tolist()


def test_remembered_vectors_cannot_be_changed_by_a_caller():
    embedder = RememberingEmbedder(HashingEmbedder())
    with pytest.raises(ValueError, match="read-only"):
        embedder.embed(["a"])[0, 0] = 5


def test_memory_is_bounded_and_the_oldest_goes_first():
    inner = HashingEmbedder()
    embedder = RememberingEmbedder(inner, most_bytes=2 * 256 * 4)
    for text in ("a", "b", "a", "c", "a", "b"):
        embedder.embed([text])
    assert len(inner.batches) == 4  # a, b, c, and b again: it was asked for longest ago when c came
    embedder.embed(["x", "y", "z"])  # more than may be kept at all
    embedder.embed(["b"])
    assert len(inner.batches) == 5


def test_one_embedder_for_each_model():
    assert shared_embedder() is shared_embedder(None)
    assert shared_embedder("some/model") is not shared_embedder()
    assert shared_embedder("some/model") is shared_embedder("some/model")
