import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.claims.matrix import (
    CLAIM_STATES,
    ClaimEvidenceMatrix,
    KnownShare,
    any_support,
    any_true,
    claim_states,
    claim_uncertainty,
    passage_importance,
    share,
    support_maximum,
    thresholded,
)

nan = math.nan
matrices = st.tuples(st.integers(1, 7), st.integers(1, 7)).flatmap(
    lambda shape: arrays(float, shape, elements=st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0, nan]))
)

# Two worked matrices. The first as in the definition; the second with probabilities and unscored cells.
BINARY = [
    [1, 1, 0, 0],  # two of four
    [0, 0, 1, 0],  # one of four
    [0, 0, 0, 0],  # none
    [1, 1, 1, 1],  # all
]
MIXED = [
    [0.9, 0.1, nan],  # one support known, one cell unknown
    [0.2, 0.4, 0.3],  # all scored, none from 0.5 on
    [0.2, nan, nan],  # no support known, two cells unknown
    [nan, nan, nan],  # nothing known
    [0.5, 1.0, 0.0],  # 0.5 is reached, not missed
]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_the_binary_matrix_by_hand():
    close(claim_uncertainty(BINARY), [0.5, 0.75, 1, 0])
    close(support_maximum(BINARY), [1, 1, 0, 1])
    close(any_support(BINARY), [1, 1, 0, 1])
    close(passage_importance(BINARY), [0.5, 0.5, 0.5, 0.25])
    assert claim_states(BINARY).tolist() == ["well supported", "fragile", "unsupported", "well supported"]


def test_probabilities_and_unscored_cells_by_hand():
    close(claim_uncertainty(MIXED), [1 - 1.0 / 2, 1 - 0.9 / 3, 0.8, nan, 0.5])
    close(claim_uncertainty(MIXED, threshold=0.5), [0.5, 1, 1, nan, 1 / 3])
    close(support_maximum(MIXED), [0.9, 0.4, 0.2, nan, 1])
    close(any_support(MIXED), [1 - 0.1 * 0.9, 1 - 0.8 * 0.6 * 0.7, 0.2, nan, 1])
    close(passage_importance(MIXED), [(0.9 + 0.2 + 0.2 + 0.5) / 4, (0.1 + 0.4 + 1) / 3, 0.3 / 2])
    close(passage_importance(MIXED, threshold=0.5), [2 / 4, 1 / 3, 0])
    assert claim_states(MIXED).tolist() == [
        "fragile",
        "unsupported",
        "unscored",
        "unscored",
        "well supported",
    ]


def test_fragile_is_not_unsupported():
    row = [[1] + [0] * 9]
    close(claim_uncertainty(row), [0.9])
    close(support_maximum(row), [1])
    assert claim_states(row).tolist() == ["fragile"]


def test_an_answer_without_claims_or_passages():
    for function in (claim_uncertainty, support_maximum, any_support, claim_states):
        assert function([]).size == 0
    assert passage_importance(np.empty((0, 3))).tolist() == pytest.approx([nan] * 3, nan_ok=True)
    # No passage: nothing was scored.
    none = np.empty((2, 0))
    for function in (claim_uncertainty, support_maximum, any_support):
        assert np.isnan(function(none)).all() and function(none).shape == (2,)
    assert claim_states(none).tolist() == ["unscored"] * 2


@pytest.mark.parametrize("bad", [[[1.2]], [[-0.1]], [0.5], [[[0.5]]], [[math.inf]]])
def test_what_is_not_a_matrix_of_probabilities(bad):
    with pytest.raises(ValueError, match="M must"):
        claim_uncertainty(bad)


@pytest.mark.parametrize("threshold", [0, -1, 1.1, nan])
def test_thresholds_that_make_no_sense(threshold):
    with pytest.raises(ValueError, match="threshold"):
        claim_states(BINARY, threshold)


def test_one_yes_settles_any_whatever_is_unknown():
    table = np.array([[1, nan], [0, nan], [0, 0], [nan, nan]])
    close(any_true(table, axis=1), [1, nan, 0, nan])
    close(any_true(np.empty((2, 0)), axis=1), [nan, nan])
    close(thresholded([0.49, 0.5, nan], 0.5), [0, 1, nan])
    close(thresholded([0.99, 1.0, nan], 1), [0, 1, nan])


def test_a_share_says_what_it_leaves_out():
    found = share(np.array([1, 1, 0, nan]))
    assert found == KnownShare(pytest.approx(2 / 3), 3, 1, None)
    for values, reason in ((np.array([nan]), "unscored"), (np.empty(0), "no_claims")):
        found = share(values)
        assert math.isnan(found.value) and (found.n, found.reason) == (0, reason)


@given(matrices)
def test_ranges_and_unknown_never_becomes_a_number(m):
    dark = np.isnan(m).all(axis=1)
    for function in (claim_uncertainty, support_maximum, any_support):
        values = function(m)
        assert (np.isnan(values) == dark).all()
        assert ((values[~dark] >= 0) & (values[~dark] <= 1)).all()
    assert (np.isnan(passage_importance(m)) == np.isnan(m).all(axis=0)).all()
    # Some passage is at least as likely as the best one, and the best at least as likely as the mean.
    known = ~dark
    assert (any_support(m)[known] >= support_maximum(m)[known] - 1e-12).all()
    assert (support_maximum(m)[known] >= 1 - claim_uncertainty(m)[known] - 1e-12).all()


@given(matrices, st.randoms(use_true_random=False))
def test_order_of_claims_and_passages_is_of_no_account(m, random):
    rows, columns = list(range(m.shape[0])), list(range(m.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    mixed = m[rows][:, columns]
    for function in (claim_uncertainty, support_maximum, any_support):
        np.testing.assert_allclose(function(mixed), function(m)[rows], atol=1e-12)
    np.testing.assert_allclose(passage_importance(mixed), passage_importance(m)[columns], atol=1e-12)
    assert claim_states(mixed).tolist() == claim_states(m)[rows].tolist()


@given(matrices, st.integers(0, 48))
def test_losing_a_cell_never_makes_a_claim_unsupported(m, place):
    row, column = place // 7 % m.shape[0], place % m.shape[1]
    before = claim_states(m)[row]
    m[row, column] = nan
    after = claim_states(m)[row]
    assert after != "unsupported" and CLAIM_STATES.index(after) >= CLAIM_STATES.index(before)


def test_the_matrix_of_one_answer():
    m = ClaimEvidenceMatrix(tuple("abcde"), np.array(MIXED, dtype=float), np.ones(5, dtype=bool))
    close(m.uncertainty, [0.5, 0.7, 0.8, nan, 0.5])
    close(m.support_maximum, [0.9, 0.4, 0.2, nan, 1])
