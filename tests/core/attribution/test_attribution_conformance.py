"""The methods give the numbers of context-cite, of shapiq and of games that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from core.attribution.methods import METHODS, surrogate
from core.stats.designs import all_masks

EVERY = all_masks(5)


def five_players(masks):
    """Additive, but either 0 or 1 is enough, 2 and 3 are needed together, and 1, 2 and 4 spoil each other."""
    a, b, c, d, e = masks.T
    added = masks @ [2.0, 1.0, 0.5, -1.0, 0.0]
    return -6 + added + 3 * (a | b) + 1.5 * (c & d) - 0.7 * (b & c & e)


# LassoRegression().fit(masks, values, tokens)[0] of context-cite 0.0.4 (scikit-learn 1.9.1).
CONTEXT_CITE = {
    1: [4.006748, 1.886028, 4.205206, -1.064371, -0.285935, 0.035968],
    12: [3.793020, 1.594601, 4.033462, -0.875602, 0.0, 0.0],
}


@pytest.mark.parametrize("tokens", CONTEXT_CITE)
def test_the_surrogate_is_that_of_context_cite(tokens):
    """On the masks that it draws itself, 0 to 31; the penalty depends on the number of tokens."""
    drawn = (np.random.RandomState(seed) for seed in range(32))
    masks = np.array([one.choice([False, True], size=6, p=[0.5, 0.5]) for one in drawn])
    added = masks @ [4.0, 0.0, 2.0, -1.5, 0.3, 0.0]
    values = -9 + added + 3 * (masks[:, 1] & masks[:, 2]) + np.sin(np.arange(32))
    found = surrogate(masks, values, float(tokens))
    np.testing.assert_allclose(found.scores, CONTEXT_CITE[tokens], atol=1e-3)
    assert not found.pairs.any()


# ExactComputer(n_players=5, game=five_players) of shapiq 1.4.1: SV, BV, and BII of order 2.
SHAPLEY = [3.5, 2.2666666666666675, 1.0166666666666673, -0.2499999999999996, -0.23333333333333311]
BANZHAF = [3.5, 2.3249999999999993, 1.0750000000000002, -0.25, -0.17499999999999993]
PAIRS = {(0, 1): -3.0, (1, 2): -0.35, (1, 4): -0.35, (2, 3): 1.5, (2, 4): -0.35}  # all others 0


@pytest.mark.parametrize(
    ("name", "expected"), [("shapley", SHAPLEY), ("banzhaf", BANZHAF), ("exact", BANZHAF)]
)
def test_scores_of_all_masks_are_those_of_shapiq(name, expected):
    found = METHODS[name].fit(EVERY, five_players(EVERY), 1.0)
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=1e-9)


def test_pairs_of_all_masks_are_those_of_shapiq():
    expected = np.zeros((5, 5))
    for (i, j), value in PAIRS.items():
        expected[i, j] = expected[j, i] = value
    found = METHODS["exact"].fit(EVERY, five_players(EVERY), 1.0)
    np.testing.assert_allclose(found.pairs, expected, rtol=0, atol=1e-9)


# By hand. Gloves: 0 and 1 own a left one, 2 the only right one; a pair is worth 1. Of the six orders, 0 makes
# the pair in one (1 comes last, 2 before 0: 2 0 1), 1 in one, 2 in four. Of the four subsets of the others,
# 0 makes a pair of one ({2}), 2 of three. Either of 0 and 1: each does it alone, half of the time first.
GLOVES = [0, 0, 0, 1, 0, 1, 0, 1]  # of {}, {2}, {1}, {1, 2}, {0}, {0, 2}, {0, 1}, {0, 1, 2}
EITHER = [0, 0, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("values", "name", "scores", "pairs"),
    [
        (GLOVES, "shapley", [1 / 6, 1 / 6, 2 / 3], None),
        (GLOVES, "exact", [1 / 4, 1 / 4, 3 / 4], {(0, 1): -1 / 2, (0, 2): 1 / 2, (1, 2): 1 / 2}),
        (GLOVES, "leave_one_out", [0, 0, 1], None),
        (EITHER, "shapley", [1 / 2, 1 / 2, 0], None),
        (EITHER, "exact", [1 / 2, 1 / 2, 0], {(0, 1): -1, (0, 2): 0, (1, 2): 0}),
        (EITHER, "leave_one_out", [0, 0, 0], None),
    ],
)
def test_games_worked_out_by_hand(values, name, scores, pairs):
    found = METHODS[name].fit(all_masks(3), np.array(values, dtype=float), 1.0)
    np.testing.assert_allclose(found.scores, scores, rtol=0, atol=1e-9)
    for pair, expected in (pairs or {}).items():
        assert found.pairs[pair] == pytest.approx(expected, abs=1e-9)
