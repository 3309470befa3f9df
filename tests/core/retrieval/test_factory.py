"""What holds for every retriever, and for the packaged embedding model."""

import unicodedata

import pytest

from core.errors import InputError
from core.retrieval import RETRIEVERS, make_retriever
from tests.core.retrieval.hashing import HashingEmbedder

CHINESE = ["大运河连接北京和杭州。", "造纸术由蔡伦改进。", "长城在北方。"]
VIETNAMESE = ["Sông Hồng chảy qua Hà Nội.", "Phở là món ăn nổi tiếng.", "Vịnh Hạ Long có nhiều đảo đá."]
ENGLISH = [
    "The canal joins two cities.",
    "Paper was improved by an official.",
    "The wall stands in the north.",
]


@pytest.mark.parametrize("name", RETRIEVERS)
@pytest.mark.parametrize(
    ("texts", "query", "expected"),
    [
        (ENGLISH, "who improved paper?", 1),
        (CHINESE, "谁改进了造纸术？", 1),
        (CHINESE, "北京和杭州", 0),
        (VIETNAMESE, "món phở có nổi tiếng không", 1),
        (VIETNAMESE, "đảo ở vịnh Hạ Long", 2),  # written with combining accents below
    ],
)
def test_every_retriever_finds_in_every_language(name, texts, query, expected):
    retriever = make_retriever(name, texts, embedder=HashingEmbedder())
    for form in ("NFC", "NFD"):
        assert retriever.top(unicodedata.normalize(form, query), 1) == [expected]


@pytest.mark.parametrize("name", RETRIEVERS)
def test_every_retriever_keeps_corpus_order_in_ties_and_takes_any_size(name):
    retriever = make_retriever(name, ["same text", "same text", "same text"], embedder=HashingEmbedder())
    scores = retriever.scores("same")
    assert scores.shape == (3,) and scores.dtype == float
    assert retriever.top("same", 2) == [0, 1]
    assert make_retriever(name, [], embedder=HashingEmbedder()).top("a", 5) == []
    assert make_retriever(name, ["one"], embedder=HashingEmbedder()).top("", 5) == [0]


def test_the_tokenizer_reaches_the_index():
    # Split at white space, "pear," is a word of its own.
    for name in ("bm25", "bm25s"):
        texts = ["a pear, ripe", "one pear more", "blue sky"]
        assert make_retriever(name, texts, tokenizer="split").top("pear", 1) == [1]
        assert make_retriever(name, texts).scores("pear")[0] > 0


def test_hybrid_is_the_fusion_of_bm25s_and_dense():
    query = "paper improved in two cities"
    parts = [
        make_retriever(name, ENGLISH, embedder=HashingEmbedder()).scores(query).tolist()
        for name in ("bm25s", "dense")
    ]
    assert all(len(set(part)) == 3 for part in parts)  # no ties, so ranks are places
    ranks = [[sorted(part, reverse=True).index(v) + 1 for v in part] for part in parts]
    expected = [1 / (60 + a) + 1 / (60 + b) for a, b in zip(*ranks, strict=True)]
    hybrid = make_retriever("hybrid", ENGLISH, embedder=HashingEmbedder())
    assert hybrid.scores(query) == pytest.approx(expected)


def test_unknown_retriever_names_the_legal_ones():
    with pytest.raises(InputError, match="one of bm25, bm25s, dense, hybrid, got 'tfidf'"):
        make_retriever("tfidf", ["a"])


@pytest.mark.model
def test_the_packaged_model_finds_by_meaning_what_shares_no_word():
    texts = [
        "Shares fell sharply on Monday.",
        "The physician examined the child's fever.",
        "Bread is baked from flour and yeast.",
    ]
    assert make_retriever("bm25s", texts).scores("doctor of a sick kid").max() == 0
    assert make_retriever("dense", texts).top("doctor of a sick kid", 1) == [1]
    assert make_retriever("hybrid", texts).top("doctor of a sick kid", 1) == [1]


@pytest.mark.model
@pytest.mark.parametrize(("texts", "query"), [(CHINESE, "谁改进了造纸术"), (VIETNAMESE, "phở nổi tiếng")])
def test_the_packaged_model_takes_other_scripts(texts, query):
    scores = make_retriever("dense", texts).scores(query)
    assert ((scores >= -1) & (scores <= 1)).all()
    assert make_retriever("dense", texts).top(texts[2], 1) == [2]
