import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.claims.matrix import CLAIM_STATES, claim_states
from core.claims.rafe import VERDICTS, f1_at_k, f1_curve, verdicts

nan = math.nan
some = st.integers(0, 40)


def test_the_verdict_on_every_state():
    expected = ["SUPPORTED", "SUPPORTED", "SUPPORTED", "NOT_SUPPORTED", "UNSCORED", "IRRELEVANT"]
    assert verdicts(CLAIM_STATES).tolist() == expected
    assert set(expected) == set(VERDICTS) and verdicts([]).size == 0


def test_verdicts_by_hand():
    m = [[0.1, 0.6], [0.1, 0.2], [0.1, nan], [nan, 0.5], [0.9, 0.9], [nan, nan]]
    found = verdicts(claim_states(m))
    assert found.tolist() == ["SUPPORTED", "NOT_SUPPORTED", "UNSCORED", "SUPPORTED", "SUPPORTED", "UNSCORED"]
    assert verdicts(claim_states(m, 0.7))[0] == "NOT_SUPPORTED"
    assert verdicts(claim_states(np.empty((1, 0)))).tolist() == ["UNSCORED"]


@pytest.mark.parametrize(
    ("supported", "not_supported", "k", "expected"),
    [
        (6, 2, 8, 0.75),  # P = R = 3/4
        (5, 5, 10, 0.5),  # P = R = 1/2
        (10, 0, 10, 1.0),
        (20, 0, 10, 1.0),  # recall stops at 1
        (2, 0, 10, 1 / 3),  # P = 1, R = 1/5: 2 * 0.2 / 1.2
        (30, 10, 10, 6 / 7),  # P = 3/4, R = 1: 1.5 / 1.75
        (1, 3, 2, 1 / 3),  # P = 1/4, R = 1/2: 0.25 / 0.75
        (3, 0, 7.5, 4 / 7),  # a median number of claims may be K: R = 0.4
        (0, 4, 10, 0.0),
        (0, 0, 10, None),  # nothing was judged: no score, and not 0
    ],
)
def test_f1_at_k_by_hand(supported, not_supported, k, expected):
    found = f1_at_k(supported, not_supported, k)
    assert found is None if expected is None else found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1, 0, 5), "supported"),
        ((0, -1, 5), "not_supported"),
        ((1.5, 0, 5), "supported"),
        ((nan, 0, 5), "supported"),
        ((1, math.inf, 5), "not_supported"),
        ((1, 1, 0), "k"),
        ((1, 1, -3), "k"),
        ((1, 1, nan), "k"),
        ((0, 0, 0), "k"),
    ],
)
def test_refused_counts(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        f1_at_k(*arguments)
    s, n, k = arguments
    with pytest.raises(ValueError, match=f"^{name} must"):
        f1_curve([s], [n], [k])


def test_the_curve_of_one_answer_and_of_a_run():
    # S = 2, N = 2: P = 1/2; R = 1, 1, 1/2 at K = 1, 2, 4.
    np.testing.assert_allclose(f1_curve(2, 2, [1, 2, 4]), [2 / 3, 2 / 3, 1 / 2])
    run = f1_curve([2, 0, 0], [2, 3, 0], [1, 4])
    np.testing.assert_allclose(run, [[2 / 3, 1 / 2], [0, 0], [nan, nan]])


@given(some, some, st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_the_curve_equals_the_score(s, n, ks):
    expected = [f1_at_k(s, n, k) for k in ks]
    np.testing.assert_allclose(f1_curve(s, n, ks), [nan if e is None else e for e in expected], atol=1e-12)


@given(some, some, st.integers(1, 60))
def test_range_and_direction(s, n, k):
    value = f1_at_k(s, n, k)
    if value is None:
        assert s == n == 0
        return
    assert 0 <= value <= 1
    assert f1_at_k(s + 1, n, k) >= value - 1e-12  # more support never hurts
    assert f1_at_k(s, n + 1, k) <= value + 1e-12
    assert f1_at_k(s, n, k + 1) <= value + 1e-12  # a longer good answer asks for more
    p, r = s / (s + n), min(s / k, 1)
    assert min(p, r) - 1e-12 <= value <= max(p, r) + 1e-12
