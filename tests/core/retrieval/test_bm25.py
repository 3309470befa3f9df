from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.retrieval import BM25Retriever

# Computed with rank_bm25 0.2.2, tokens = lower().split().
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
    assert BM25Retriever(texts, "split").scores(query) == pytest.approx(expected, abs=1e-9)


def test_scores_by_hand():
    # idf(cat) over 3 texts, in 1: ln(2.5 / 1.5); tf part: 2 words, average length 2, so 1 * 2.5 / 2.5.
    scores = BM25Retriever(["cat sits", "dog runs", "bird flies"]).scores("cat")
    assert scores == pytest.approx([np.log(2.5 / 1.5), 0, 0])


def test_shares_of_the_largest_score_by_hand():
    # A word's score grows with its number towards 2.5 idf; these occur once in texts of average length: 1 idf.
    retriever = BM25Retriever(["cat sits", "dog runs", "bird flies"])
    assert retriever.shares("cat", [2, 0]) == pytest.approx([0, 1 / 2.5])
    assert retriever.shares("cat dog", [0, 1, 2]) == pytest.approx([0.5 / 2.5, 0.5 / 2.5, 0])
    assert retriever.shares("cat cat zebra", [0]) == pytest.approx([1 / 2.5])
    # No text, no known word, or only words that tell no texts apart.
    assert BM25Retriever([]).shares("cat", []) is None is retriever.shares("zebra", [0])
    assert BM25Retriever(["cat", "cat"]).shares("cat", [0]) is None


def test_stop_words_do_not_retrieve_but_a_query_of_stop_words_still_works():
    texts = ["the the the the", "a whale swims in the sea", "to be or not to be"]
    retriever = BM25Retriever(texts)
    assert retriever.top("where does the whale swim", 1) == [1]
    assert retriever.top("to be or not to be", 1) == [2]


def test_ties_keep_corpus_order_and_k_may_exceed_the_corpus():
    assert BM25Retriever(["x y", "x y", "z"]).top("nothing here", 10) == [0, 1, 2]


def test_chinese_finds_by_ideograph():
    texts = ["大运河连接北京和杭州。", "造纸术由蔡伦改进。", "长城在北方。"]
    assert BM25Retriever(texts).top("谁改进了造纸术？", 1) == [1]


def test_empty_corpora_and_texts_score_zero():
    assert BM25Retriever([]).scores("a").shape == (0,)
    assert BM25Retriever(["", "…"]).scores("a").tolist() == [0.0, 0.0]


def test_unknown_tokenizer_names_the_legal_ones():
    with pytest.raises(ValueError, match="words, split, got 'stem'"):
        BM25Retriever(["a"], tokenizer="stem")


@given(st.lists(st.text("ab c大", max_size=12), max_size=6), st.text("ab c大", max_size=8))
def test_top_is_sorted_by_score(texts, query):
    retriever = BM25Retriever(texts)
    scores, top = retriever.scores(query), retriever.top(query, 4)
    assert len(top) == min(4, len(texts))
    assert all(scores[a] >= scores[b] for a, b in pairwise(top))
