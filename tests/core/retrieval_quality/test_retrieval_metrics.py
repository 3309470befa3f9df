import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.retrieval_quality.metrics import hit_at_k, ideal_gain, ndcg_at_k, recall_at_k, reciprocal_rank

NO, YES = False, True


@pytest.mark.parametrize(
    ("relevant", "k", "expected"),
    [([NO, YES], 1, 0), ([NO, YES], 2, 1), ([NO, YES], 9, 1), ([YES, YES], 1, 1), ([], 3, 0), ([NO], 1, 0)],
)
def test_hit(relevant, k, expected):
    assert hit_at_k(relevant, k) == expected


@pytest.mark.parametrize(
    ("relevant", "k", "n", "expected"),
    [
        ([NO, YES, YES], 2, 2, 0.5),
        ([NO, YES, YES], 3, 2, 1),
        ([NO, YES, YES], 3, 4, 0.5),
        ([YES, YES, YES], 1, 3, 1 / 3),  # k is smaller than what there is to find
        ([], 5, 2, 0),
        ([NO, NO], 2, 0, None),
        ([NO, YES], 2, None, None),
    ],
)
def test_recall(relevant, k, n, expected):
    assert recall_at_k(relevant, k, n) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("relevant", "expected"), [([YES, NO], 1), ([NO, NO, YES, YES], 1 / 3), ([NO, NO], 0), ([], 0)]
)
def test_reciprocal_rank(relevant, expected):
    assert reciprocal_rank(relevant) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("relevant", "k", "n", "expected"),
    [
        ([YES], 1, 1, 1),
        ([NO, YES], 2, 1, 1 / math.log2(3)),
        ([NO, YES], 1, 1, 0),
        # gains 1 and 1/2 of places 1 and 3; ideal 1 + 1/log2(3)
        ([YES, NO, YES], 3, 2, 1.5 / (1 + 1 / math.log2(3))),
        # ideal is cut at k: 5 to be found, 2 looked at
        ([YES, YES, NO], 2, 5, 1),
        ([YES, NO], 10, 3, 1 / (1 + 1 / math.log2(3) + 0.5)),
        ([NO], 1, 0, None),
        ([YES], 1, None, None),
        ([], 3, 1, 0),
    ],
)
def test_ndcg(relevant, k, n, expected):
    assert ndcg_at_k(relevant, k, n) == (None if expected is None else pytest.approx(expected))


def test_the_largest_gain_of_nothing_to_find_is_not_a_number():
    two = 1 + 1 / math.log2(3)
    found = ideal_gain(np.array([0, math.nan, 1, 2, 5]), 2)
    assert found == pytest.approx([math.nan, math.nan, 1, two, two], nan_ok=True)


@given(st.lists(st.booleans(), min_size=2, max_size=12).filter(any), st.integers(1, 15))
def test_ndcg_is_that_of_scikit_learn(relevant, k):
    sklearn = pytest.importorskip("sklearn.metrics")
    order = np.arange(len(relevant), 0, -1)  # a score that gives the places
    expected = sklearn.ndcg_score([np.array(relevant, dtype=float)], [order], k=k)
    assert ndcg_at_k(relevant, k, sum(relevant)) == pytest.approx(expected)


@given(st.lists(st.booleans(), max_size=12), st.integers(1, 15), st.integers(1, 5))
def test_metrics_stay_in_range_and_grow_with_k(relevant, k, more):
    n = sum(relevant) + more
    assert 0 <= recall_at_k(relevant, k, n) <= recall_at_k(relevant, k + 1, n) < 1
    assert 0 <= ndcg_at_k(relevant, k, n) <= 1
    assert hit_at_k(relevant, k) <= hit_at_k(relevant, k + 1)
    assert (reciprocal_rank(relevant) >= 1 / k) == bool(hit_at_k(relevant, k))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        hit_at_k([YES], 0)
    with pytest.raises(ValueError, match="2 passages are relevant, but n_relevant is 1"):
        recall_at_k([YES, YES], 1, 1)
    with pytest.raises(ValueError, match="one row"):
        reciprocal_rank([[YES], [NO]])
    with pytest.raises(ValueError, match="one row"):
        reciprocal_rank(YES)
