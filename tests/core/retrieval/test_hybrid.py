import numpy as np
import pytest

from core.retrieval import HybridRetriever


class Fixed:
    def __init__(self, *scores):
        self.values = np.array(scores, dtype=float)

    def scores(self, query):
        return self.values

    def top(self, query, k):
        raise AssertionError("the fusion ranks by scores")


def test_scores_by_hand():
    # Ranks 1, 2, 3 and 3, 1, 2.
    fused = HybridRetriever([Fixed(9, 5, 1), Fixed(0.1, 0.9, 0.5)])
    assert fused.scores("") == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])
    assert fused.top("", 3) == [1, 0, 2]


def test_another_k():
    assert HybridRetriever([Fixed(1, 2)], k=0).scores("").tolist() == [0.5, 1]


def test_ties_share_their_average_rank():
    # The first ranks 1, then three that share 3; corpus order alone would have put the last text behind.
    fused = HybridRetriever([Fixed(7, 0, 0, 0), Fixed(0, 1, 2, 3)])
    assert fused.scores("") == pytest.approx([1 / 61 + 1 / 64, 2 / 63, 1 / 63 + 1 / 62, 1 / 63 + 1 / 61])
    assert fused.top("", 4) == [3, 0, 2, 1]


def test_scores_equal_but_for_rounding_are_tied():
    assert HybridRetriever([Fixed(0.1 + 0.2, 0.3)]).scores("").tolist() == [1 / 61.5] * 2


def test_full_ties_keep_corpus_order():
    assert HybridRetriever([Fixed(1, 2), Fixed(2, 1)]).top("", 2) == [0, 1]


def test_an_empty_corpus():
    assert HybridRetriever([Fixed(), Fixed()]).scores("").shape == (0,)
