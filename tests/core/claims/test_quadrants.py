import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.claims.quadrants import QUADRANTS, UNDEFINED, quadrant_counts, quadrants

nan = math.nan


def test_the_four_quadrants_and_the_unknown():
    found = quadrants(
        influence=[0.6, 0.6, 0.0, 0.0, nan, 0.6],
        above_noise=None,
        support=[0.9, 0.1, 0.5, 0.2, 0.9, nan],
    )
    assert found.tolist() == [
        "used evidence",
        "distractor",
        "redundant or wasted",
        "idle",
        "undefined",
        "undefined",
    ]


def test_the_noise_floor_decides_where_it_is_known():
    influence = [0.3, 0.3, 0.3, 0.0, 0.2, nan]
    above = [True, False, None, None, pd.NA, True]
    used, unused = "used evidence", "redundant or wasted"
    expected = [used, unused, used, unused, used, "undefined"]
    assert quadrants(influence, above, [1] * 6).tolist() == expected
    assert quadrants([0.3], [False], [1]).tolist() == [unused]
    column = pd.array([True, pd.NA], dtype="boolean")
    assert quadrants(pd.Series([0.1, 0.0]), column, [1, 1]).tolist() == [used, unused]


def test_a_threshold_for_support():
    assert quadrants([1.0], None, [0.6], threshold=0.7).tolist() == ["distractor"]
    assert quadrants([], None, []).tolist() == []
    with pytest.raises(ValueError, match="threshold"):
        quadrants([0.1], None, [0.5], 0.0)


def test_counts_by_hand():
    labels = ["idle", "idle", "used evidence", "undefined"]
    frame = quadrant_counts(labels)
    assert frame["quadrant"].tolist() == [*QUADRANTS, UNDEFINED]
    assert frame["n"].tolist() == [1, 0, 0, 2, 1]
    np.testing.assert_allclose(frame["share"], [1 / 3, 0, 0, 2 / 3, nan])
    # Nothing defined: no share, and not 0 %.
    assert quadrant_counts(["undefined"])["share"].isna().all()
    assert quadrant_counts([])["n"].sum() == 0


passages = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.2, 1.0, nan]),
        st.sampled_from([True, False, None]),
        st.sampled_from([0.0, 0.4, 0.5, 1.0, nan]),
    ),
    max_size=12,
)


@given(passages, st.randoms(use_true_random=False))
def test_each_passage_alone_and_in_any_order(rows, random):
    def of(listed):
        return quadrants([r[0] for r in listed], [r[1] for r in listed], [r[2] for r in listed]).tolist()

    mixed = list(rows)
    random.shuffle(mixed)
    one_by_one = [of([row])[0] for row in rows]
    assert of(rows) == one_by_one and sorted(of(mixed)) == sorted(one_by_one)
    for (influence, _, support), label in zip(rows, one_by_one, strict=True):
        assert (label == "undefined") == (math.isnan(influence) or math.isnan(support))
        if not math.isnan(influence) and not math.isnan(support):
            assert (label in ("used evidence", "redundant or wasted")) == (support >= 0.5)
    frame = quadrant_counts(one_by_one)
    assert frame["n"].sum() == len(rows)
    if frame["n"].iloc[:-1].sum():
        assert frame["share"].sum() == pytest.approx(1)
