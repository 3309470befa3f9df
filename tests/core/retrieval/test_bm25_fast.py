import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.retrieval import BM25Retriever, FastBM25Retriever

WORDS = [f"w{i}" for i in range(300)]


def corpus(n, length, seed):
    """Passages whose words are drawn like those of a language: a few very often, most seldom."""
    rng = random.Random(seed)
    weights = [1 / (i + 1) for i in range(len(WORDS))]
    return [" ".join(rng.choices(WORDS, weights, k=length)) for _ in range(n)]


# Computed with rank_bm25 0.2.2, tokens = lower().split(); "the" stands everywhere: the idf floor.
TINY = [
    ("windy London", ["Hello there good man!", "It is quite windy in London", "How is the weather today?"],
     [0.0, 0.9372947225, 0.0]),
    ("a a b", ["a b c", "a a a", "b c d", "c d e"], [0.0] * 4),
    ("the the", ["the cat", "the dog", "the bird", "the fish"], [0.1191966864] * 4),
    ("zzz", ["a b c", "d e f"], [0.0, 0.0]),
    ("", ["a b", "c d"], [0.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "texts", "expected"), TINY)
def test_scores_equal_the_published_implementation(query, texts, expected):
    assert FastBM25Retriever(texts, "split").scores(query) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("tokenizer", ["words", "split"])
def test_scores_and_order_are_those_of_rank_bm25_on_a_corpus(tokenizer):
    texts = corpus(400, 60, 1)
    slow, fast = BM25Retriever(texts, tokenizer), FastBM25Retriever(texts, tokenizer)
    frequent = sum("w0" in text.split() for text in texts)
    assert frequent > 300  # its idf is negative, so rank_bm25 puts its floor in place
    for query in ["w0", "w0 w1 w250", "w7 w7 w40 unknown", *corpus(20, 6, 2)]:
        assert fast.scores(query).tolist() == slow.scores(query).tolist()  # to the last bit
        assert fast.top(query, 50) == slow.top(query, 50)


# One passage, passages without a word, words in many passages, Vietnamese, Chinese, words not in the collection.
TEXT = st.text("ab c大ồ", max_size=12)


@given(st.lists(TEXT, max_size=8), TEXT)
def test_any_texts_score_as_in_rank_bm25(texts, query):
    slow, fast = BM25Retriever(texts), FastBM25Retriever(texts)
    assert fast.scores(query).tolist() == slow.scores(query).tolist()
    assert fast.top(query, 5) == slow.top(query, 5)


def test_ties_keep_corpus_order_and_k_may_exceed_the_corpus():
    assert FastBM25Retriever(["z", "x y", "x y", "u", "v"]).top("x", 10) == [1, 2, 0, 3, 4]
    assert FastBM25Retriever(["z", "x y", "x y"]).top("nothing here", 10) == [0, 1, 2]


def test_empty_corpora_and_texts_score_zero():
    assert FastBM25Retriever([]).scores("a").shape == FastBM25Retriever([]).holding("a").shape == (0,)
    assert FastBM25Retriever(["", "…"]).scores("a").tolist() == [0.0, 0.0]
    assert FastBM25Retriever(["", "a", "b"]).scores("a").tolist() == pytest.approx([0, np.log(2.5 / 1.5) * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 1.5)), 0])  # fmt: skip


def test_unknown_tokenizer_names_the_legal_ones():
    with pytest.raises(ValueError, match="words, split, got 'stem'"):
        FastBM25Retriever(["a"], tokenizer="stem")


def test_ten_thousand_passages_take_little_memory():
    texts = corpus(10_000, 100, 3)
    retriever = FastBM25Retriever(texts)
    index = retriever._scores
    held = index.data.nbytes + index.indices.nbytes + index.indptr.nbytes
    assert held < 12 * sum(len(set(text.split())) for text in texts) + 20_000
    assert retriever.top(texts[77], 1) == [77]
