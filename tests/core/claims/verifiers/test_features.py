"""Likeness of claim and passage, by hand where a word is a vector of its own, and with the packaged model."""

import numpy as np
import pytest

from core.claims.verifiers.checks import CHECKS
from core.claims.verifiers.features import FEATURES, VectorMemory, pair_features
from core.llm.embeddings import SentenceEmbedder
from core.text.words import words
from tests.core.claims.claim_runs import WordByWord


class OneHot(WordByWord):
    """Each word its own direction: a token is matched by the same word and by nothing else."""

    def __init__(self):
        self.places, self.asked = {}, []

    def embed(self, texts):
        self.asked += texts
        vectors = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row, [self.places.setdefault(word, len(self.places)) for word in words(text)]] = 1
        return vectors


def measured(claim, passage):
    found = pair_features([([claim], [passage])], VectorMemory(OneHot()))[0]
    return dict(zip(FEATURES, found.values[0, 0], strict=True)), found


def test_features_by_hand():
    claim = "The red mill burned."
    passage = "The red mill stands. It burned in May."
    values, found = measured(claim, passage)
    # the red mill burned: three of four in the first sentence, all in the passage.
    assert values["sentence_match"] == pytest.approx(3 / 4)
    assert values["passage_match"] == pytest.approx(1)
    # (1 1 1 1) and (1 1 1 1 1 1 1 1): eight words, each once
    assert values["passage_cosine"] == pytest.approx(4 / np.sqrt(4 * 8), abs=1e-6)
    # with the red mill stands: 3 of 4 and 4; with it burned in may: 1
    assert values["sentence_cosine"] == pytest.approx(3 / np.sqrt(4 * 4), abs=1e-6)
    start, end = found.sentences[0, 0]
    assert passage[start:end].strip() == "The red mill stands."
    assert np.isnan(found.checks).all()


def test_what_has_no_word_is_not_measured():
    found = pair_features([(["A mill", "", "…"], ["A mill", " "])], VectorMemory(OneHot()))[0]
    assert np.isnan(found.values).all(axis=2).tolist() == [[False, True], [True, True], [True, True]]
    assert found.sentences[1, 1].tolist() == [-1, -1]


@pytest.mark.parametrize(("claims", "passages"), [([], ["a"]), (["a"], []), ([], [])])
def test_empty_groups_keep_their_shape(claims, passages):
    found = pair_features([(claims, passages)], VectorMemory(OneHot()))[0]
    assert found.values.shape == (len(claims), len(passages), len(FEATURES))
    assert found.checks.shape == (len(claims), len(passages), len(CHECKS))


def test_every_text_is_read_once_and_together():
    class Counting(OneHot):
        def __init__(self):
            super().__init__()
            self.batches = []

        def embed_tokens(self, texts):
            self.batches.append(list(texts))
            return super().embed_tokens(texts)

    embedder = Counting()
    memory = VectorMemory(embedder)
    groups = [(["red mill"], ["a mill", "a lake"]), (["red mill", "blue lake"], ["a mill"])]
    pair_features(groups, memory)
    assert embedder.batches == [["red mill", "a mill", "a lake", "blue lake"]]
    pair_features([*groups, (["new"], ["a mill"])], memory)
    assert embedder.batches[1:] == [["new"]]


def test_a_small_memory_forgets_but_answers_alike():
    groups = [([f"claim {i} mill"], ["a mill", "a lake"]) for i in range(5)]
    large, small = OneHot(), OneHot()
    a = pair_features(groups, VectorMemory(large))
    forgetful = VectorMemory(small, most_bytes=1)
    for x, y in zip(a, pair_features(groups, forgetful), strict=True):
        np.testing.assert_array_equal(x.values, y.values)
    assert pair_features(groups, forgetful)[0].values.shape == (1, 2, len(FEATURES))


def test_many_claims_and_passages_equal_one_at_a_time():
    claims = [f"mill number {i} is red" for i in range(4)]
    passages = [f"A mill {i}. " * 300 + "It is red." for i in range(6)]
    memory = VectorMemory(OneHot())
    whole = pair_features([(claims, passages)], memory)[0]
    for i in range(4):
        for j in range(6):
            one = pair_features([([claims[i]], [passages[j]])], memory)[0]
            np.testing.assert_allclose(whole.values[i, j], one.values[0, 0], atol=1e-6)


def test_the_packaged_model_reads_the_end_of_a_long_text():
    embedder = SentenceEmbedder()
    text = "The mill is old. " * 200 + "Zebras graze in Kenya."
    (found,) = embedder.embed_tokens([text])
    assert [text[s:e] for s, e in found.spans[-2:]] == ["Kenya", "."]
    assert len(found.vectors) > 900
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=1), 1, atol=1e-5)
    assert found.known.all()
    assert embedder.embed_tokens([]) == []
    values = pair_features([(["Zebras graze in Kenya."], [text])], VectorMemory(embedder))[0].values[0, 0]
    assert values[FEATURES.index("sentence_match")] > 0.6


def test_the_packaged_model_and_ideographs_it_does_not_know():
    memory = VectorMemory(SentenceEmbedder())
    (found,) = memory.vectors(["鱷魚"]).values()
    assert not found.known.all()
    values = pair_features([(["鱷魚"], ["鱷魚", "犀牛"])], memory)[0].values[0]
    assert (values[0] > 0.9).all()
    assert (values[1] < 0.5).all()
