import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.retrieval import best

# Few values, so that many tie; two that differ beyond the tenth digit tie as well.
SCORE = st.sampled_from([-1.5, 0.0, 0.25, 0.25 + 1e-12, 3.0, math.inf, math.nan])


def test_the_best_by_hand():
    # 3 at places 1 and 4, then 2 at places 0 and 3: the tie for third keeps its order.
    assert best(np.array([2.0, 3.0, 1.0, 2.0, 3.0]), 3) == [1, 4, 0]
    assert best(np.array([]), 3) == best(np.array([1.0]), 0) == []


@given(st.lists(SCORE, max_size=30), st.integers(0, 31))
def test_the_best_are_the_first_of_all_sorted(scores, k):
    # Highest first, unknown last, ties by place: Python's sort of everything.
    order = sorted(range(len(scores)), key=lambda i: (math.isnan(scores[i]), -round(scores[i], 10), i))
    assert best(np.array(scores), k) == order[:k]
