"""Methods of attribution on planted games, with scores worked out by hand."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import linregress
from scipy.stats import t as student

from core.attribution.methods import (
    METHODS,
    PREDICT,
    banzhaf,
    exact,
    leave_one_out,
    method_of,
    shapley,
    surrogate,
)
from core.errors import InputError
from core.stats.designs import all_masks, chains, one_left_out, random_masks

GAMES = {
    # name: passages, game of a mask, then leave one out, Banzhaf and Shapley value of each.
    "additive": (3, lambda m: 2.0 * m[0] - m[1], [2, -1, 0], [2, -1, 0], [2, -1, 0]),
    # Either of two: alone each adds 1, and half of the time the other is there.
    "either": (2, lambda m: float(m[0] or m[1]), [0, 0], [0.5, 0.5], [0.5, 0.5]),
    "both": (2, lambda m: float(m[0] and m[1]), [1, 1], [0.5, 0.5], [0.5, 0.5]),
    # Three of whom any is enough: only without the two others, a quarter of the time, one adds 1; of 3! orders it is first in 2.
    "any of three": (3, lambda m: float(any(m)), [0, 0, 0], [0.25] * 3, [1 / 3] * 3),
    # A left glove and two right ones: left is worth 1 unless it comes first (2/3), a right one only if it comes directly
    # behind left and before the other: 1 order of 6. Banzhaf: left 3 of 4 subsets of the others, right 1 of 4.
    "gloves": (3, lambda m: float(m[0] and (m[1] or m[2])), [1, 0, 0], [0.75, 0.25, 0.25], [4 / 6, 1 / 6, 1 / 6]),
    "one passage": (1, lambda m: 3.0 * m[0], [3], [3], [3]),
    "nothing": (3, lambda _: 7.0, [0, 0, 0], [0, 0, 0], [0, 0, 0]),
}  # fmt: skip


def game(name):
    k, rule, *wanted = GAMES[name]
    masks = all_masks(k)
    return masks, np.array([rule(mask) for mask in masks.tolist()]), wanted


def by_orders(masks, values):
    """Shapley values as they are defined: the mean contribution over all orders of arrival."""
    score = dict(zip(map(tuple, masks.tolist()), values.tolist(), strict=True))
    k = masks.shape[1]
    orders = list(permutations(range(k)))
    total = np.zeros(k)
    for order in orders:
        there = [False] * k
        for one in order:
            before = score[tuple(there)]
            there[one] = True
            total[one] += score[tuple(there)] - before
    return total / len(orders)


@pytest.mark.parametrize("name", GAMES)
def test_by_hand(name):
    masks, values, (alone, mean, shared) = game(name)
    assert leave_one_out(masks, values).scores.tolist() == alone
    np.testing.assert_allclose(shapley(masks, values).scores, shared, atol=1e-12)
    for method in (exact, banzhaf):  # with all masks both are the Banzhaf value
        np.testing.assert_allclose(method(masks, values).scores, mean, atol=1e-12)


def test_exact_interactions_by_hand():
    # Either: 1 - 1 - 1 + 0 = -1 with the sign of the second difference; both: 1 - 0 - 0 + 0.
    assert exact(*game("either")[:2]).pairs.tolist() == [[0, -1], [-1, 0]]
    assert exact(*game("both")[:2]).pairs.tolist() == [[0, 1], [1, 0]]
    # Left and a right glove: +1 where the other right one is not there, else 0: a half. The right ones: -1 with left.
    pairs = [[0, 0.5, 0.5], [0.5, 0, -0.5], [0.5, -0.5, 0]]
    np.testing.assert_allclose(exact(*game("gloves")[:2]).pairs, pairs, atol=1e-12)


def test_exact_intervals_have_no_width_and_an_estimate_has_one():
    masks, values, _ = game("gloves")
    for method in (exact, shapley):
        found = method(masks, values)
        np.testing.assert_array_equal(found.interval, np.column_stack([found.scores] * 2))
    missing = values.copy()
    missing[5] = np.nan
    estimated = exact(masks, missing)
    np.testing.assert_array_equal(estimated.scores, banzhaf(masks, missing).scores)
    assert (estimated.interval[:, 0] < estimated.scores).all() and not estimated.pairs.any()


def test_banzhaf_of_one_passage_is_a_regression_line():
    rng = np.random.default_rng(0)
    masks = random_masks(1, 20, 1)
    values = masks[:, 0] * 2 + rng.normal(size=20)
    line = linregress(masks[:, 0].astype(float), values)
    width = student.ppf(0.975, 18) * line.stderr
    found = banzhaf(masks, values)
    np.testing.assert_allclose(found.scores, [line.slope])
    np.testing.assert_allclose(found.interval, [[line.slope - width, line.slope + width]])


def test_too_few_masks_give_no_interval():
    masks = random_masks(6, 7, 0)
    assert np.isnan(banzhaf(masks, np.arange(7.0)).interval).all()
    # A passage that was never left out: nothing tells.
    masks = all_masks(3)
    masks[:, 0] = True
    assert np.isnan(banzhaf(masks, np.arange(8.0)).interval).all()


@pytest.mark.parametrize("method", [surrogate, banzhaf])
def test_without_any_score_everything_is_undefined(method):
    found = method(all_masks(3), np.full(8, np.nan))
    assert np.isnan(found.scores).all() and np.isnan(found.interval).all()


def test_failed_measurements_are_left_out():
    masks, values, _ = game("additive")
    lost = values.copy()
    lost[[1, 4]] = np.nan
    np.testing.assert_allclose(banzhaf(masks, lost).scores, [2, -1, 0], atol=1e-9)
    without = values.copy()
    without[3] = np.nan  # 011: without the first passage
    found = leave_one_out(masks, without).scores
    assert np.isnan(found[0]) and found[1:].tolist() == [-1, 0]
    without[-1] = np.nan  # of all passages
    assert np.isnan(leave_one_out(masks, without).scores).all()


def test_leave_one_out_has_no_interval_and_no_pairs():
    found = leave_one_out(*game("gloves")[:2])
    assert np.isnan(found.interval).all() and found.interval.shape == (3, 2)
    assert found.pairs.tolist() == [[0, 0, 0]] * 3


def test_one_mask_is_one_measurement_however_often_it_is_drawn():
    masks, values, _ = game("gloves")
    assert leave_one_out(masks[[7, 7, 3, 5, 6]], values[[7, 7, 3, 5, 6]]).scores.tolist() == [1, 0, 0]


# --- chains ---


def test_shapley_along_chains_by_hand():
    masks, values, _ = game("gloves")
    score = dict(zip(map(tuple, masks.tolist()), values.tolist(), strict=True))
    orders = [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)]
    drawn = np.array([[np.isin(range(3), order[:m]) for m in range(4)] for order in orders]).reshape(-1, 3)
    found = shapley(drawn, np.array([score[tuple(mask)] for mask in drawn.tolist()]))
    # The gain goes to 1, 0, 0 and 0 in turn. Pairs: (.5, .5, 0) and (1, 0, 0): mean .75, .25, 0, and deviation
    # .5 / sqrt(2), so that the standard error is .25; Student's t with one degree of freedom is 12.706.
    assert found.scores.tolist() == [0.75, 0.25, 0]
    np.testing.assert_allclose(found.interval[0], 0.75 + 12.7062 * 0.25 * np.array([-1, 1]), rtol=1e-4)
    assert found.interval[2].tolist() == [0, 0]


def test_a_chain_with_a_failed_mask_is_left_out():
    drawn = chains(6, 4, 0).reshape(-1, 6)
    values = drawn @ np.array([3.0, 2, 1, 0, 0, -1])
    values[2] = np.nan
    np.testing.assert_allclose(shapley(drawn, values).scores, [3, 2, 1, 0, 0, -1])
    values[::7] = np.nan  # every chain
    found = shapley(drawn, values)
    assert np.isnan(found.scores).all() and np.isnan(found.interval).all()


def test_orders_stay_with_their_reverse_where_another_chain_failed():
    drawn = chains(6, 8, 0)
    # Of an order and its reverse the mean contribution is the same: the pairs do not differ.
    values = np.array([len({*np.flatnonzero(mask)}) ** 2 for mask in drawn.reshape(-1, 6)], dtype=float)
    assert (np.ptp(shapley(drawn.reshape(-1, 6), values).interval, axis=1) < 1e-9).all()
    values[3] = np.nan
    assert (np.ptp(shapley(drawn.reshape(-1, 6), values).interval, axis=1) < 1e-9).all()


def test_one_pair_of_chains_gives_scores_without_an_interval():
    drawn = chains(6, 2, 0).reshape(-1, 6)
    found = shapley(drawn, drawn @ np.arange(6.0))
    np.testing.assert_allclose(found.scores, np.arange(6))
    assert np.isnan(found.interval).all() and found.interval.shape == (6, 2) and found.pairs.shape == (6, 6)


def test_shapley_along_chains_comes_near_the_closed_form():
    k, rng = 6, np.random.default_rng(3)
    masks = all_masks(k)
    values = rng.normal(size=2**k)
    score = dict(zip(map(tuple, masks.tolist()), values.tolist(), strict=True))
    drawn = chains(k, 4000, 1).reshape(-1, k)
    estimated = shapley(drawn, np.array([score[tuple(mask)] for mask in drawn.tolist()]))
    # A contribution has a standard deviation of about sqrt(2): 0.022 in the mean of 4,000.
    np.testing.assert_allclose(estimated.scores, by_orders(masks, values), atol=0.1)


# --- surrogate ---


@pytest.mark.parametrize("n", [10, 30])
def test_the_surrogate_of_few_masks_or_one_passage_is_a_lasso(n):
    # One passage, which has no pairs to choose a penalty for, standardised: ordinary least squares, drawn towards 0 by alpha.
    masks = np.array([[True], [False]] * n)
    values = np.array([4.0, 0.0] * n)
    # Deviation of the column 1/2, covariance 1: the weight is (2 - 0.01) / (1/2).
    np.testing.assert_allclose(surrogate(masks, values).scores, [3.98])
    # Of an answer of 10 tokens the penalty is per token: ((4 / 10) / 2 - 0.01) * 2 * 10.
    np.testing.assert_allclose(surrogate(masks, values, 10.0).scores, [3.8])


def test_pairs_are_in_the_surrogate_from_48_masks_on():
    masks = random_masks(6, 48, 2)
    values = masks[:, 0] + 2.0 * (masks[:, 1] & masks[:, 2])
    assert not surrogate(masks[:-1], values[:-1]).pairs.any()
    found = surrogate(masks, values)
    np.testing.assert_allclose(found.scores, [1, 1, 1, 0, 0, 0], atol=0.1)  # both: half of 2 each
    wanted = np.zeros((6, 6))
    wanted[1, 2] = wanted[2, 1] = 2
    np.testing.assert_allclose(found.pairs, wanted, atol=0.1)
    assert np.corrcoef(found.predict(masks), values)[0, 1] > 0.99


def test_two_passages_have_a_pair():
    two = np.tile(all_masks(2), (12, 1))
    assert surrogate(two, two.all(axis=1) * 2.0).pairs[0, 1] == pytest.approx(2, abs=0.1)


def test_a_constant_answer_has_scores_of_0():
    for n in (32, 64):
        assert not surrogate(random_masks(6, n, 0), np.full(n, 2.0)).scores.any()


def test_predictions_by_hand():
    found = exact(*game("both")[:2])
    # z is plus or minus a half: 0.5 z1 + 0.5 z2 + z1 z2.
    assert found.predict(all_masks(2)).tolist() == [-0.25, -0.25, -0.25, 0.75]
    np.testing.assert_allclose(np.diff(found.predict(all_masks(2))), np.diff(game("both")[1]))


# --- the table ---


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_their_masks_within_the_budget(name):
    method = method_of(name)
    for k in (1, 2, 5):  # all masks are fewer than the budget
        masks = method.masks(k, 32, 0)
        assert masks.tolist() == (one_left_out(k) if name == "leave_one_out" else all_masks(k)).tolist()
    assert len(np.unique(method.masks(10, 64, 0), axis=0)) <= (1024 if name == "exact" else 64)
    assert str(method) == name and method.answers == (PREDICT if name != "shapley" else "share")


def test_shapley_draws_as_many_pairs_of_orders_as_the_budget_holds():
    """The two ends cost a call once, every order the k - 1 masks between them; no budget is too small for a pair."""
    masks = method_of("shapley").masks
    # (64 - 2) // (2 * 9) = 3 pairs of orders, each of 11 masks; (98 - 2) // (2 * 6) = 8 pairs, each of 8 masks.
    assert masks(10, 64, 0).shape == (2 * 3 * 11, 10) and masks(7, 98, 0).shape == (2 * 8 * 8, 7)
    assert masks(10, 12, 0).shape == masks(10, 37, 0).shape == (2 * 11, 10)
    assert masks(10, 38, 0).shape == (4 * 11, 10)
    assert masks(6, 64, 0).tolist() == all_masks(6).tolist() and masks(6, 63, 0).shape == (2 * 6 * 7, 6)


def test_exact_has_a_limit_and_names_are_listed():
    with pytest.raises(InputError, match="at most 10 passages, got 11"):
        method_of("exact").masks(11, 4096, 0)
    with pytest.raises(InputError, match=r"one of leave_one_out, surrogate.*got 'loo'"):
        method_of("loo")


# --- properties ---

scores = st.floats(-10, 10, allow_nan=False).map(lambda x: round(x, 3))
games = st.integers(1, 5).flatmap(lambda k: st.lists(scores, min_size=2**k, max_size=2**k)).map(np.array)


@settings(max_examples=60, deadline=None)
@given(games, st.integers(0, 1000))
def test_properties_of_exact_values(values, seed):
    k = int(np.log2(len(values)))
    masks = all_masks(k)
    shared = shapley(masks, values).scores
    np.testing.assert_allclose(shared, by_orders(masks, values), atol=1e-9)
    np.testing.assert_allclose(shared.sum(), values[-1] - values[0], atol=1e-9)
    turn = np.random.default_rng(seed).permutation(k)
    for name in METHODS:
        fit = METHODS[name].fit
        found = fit(masks, values, 1.0).scores
        np.testing.assert_allclose(fit(masks, values + 5, 1.0).scores, found, atol=1e-6)
        relabelled = fit(masks[:, turn], values, 1.0).scores
        np.testing.assert_allclose(relabelled, found[turn], atol=0.02)
        if name != "surrogate":  # its penalty is in the unit of the values
            np.testing.assert_allclose(fit(masks, values * -3, 1.0).scores, found * -3, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(games)
def test_symmetric_passages_have_equal_values(values):
    k = int(np.log2(len(values)))
    if k < 2:
        return
    masks = all_masks(k)
    swapped = masks.copy()
    swapped[:, [0, 1]] = masks[:, [1, 0]]
    other = (swapped @ 2 ** np.arange(k)[::-1]).astype(int)  # row of the mask with both exchanged
    even = values + values[other]
    for name in ("leave_one_out", "exact", "shapley", "banzhaf"):
        found = METHODS[name].fit(masks, even, 1.0).scores
        np.testing.assert_allclose(found[0], found[1], atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([32, 64]))
def test_properties_of_estimates(seed, n):
    k, rng = 8, np.random.default_rng(seed)
    masks, values = random_masks(k, n, seed), rng.normal(size=n)
    turn = rng.permutation(k)
    for name in ("surrogate", "banzhaf"):
        fit = METHODS[name].fit
        found = fit(masks, values, 1.0)
        shifted, relabelled = fit(masks, values + 100, 1.0), fit(masks[:, turn], values, 1.0)
        np.testing.assert_allclose(shifted.scores, found.scores, atol=1e-6)
        np.testing.assert_allclose(shifted.interval, found.interval, atol=1e-6)
        np.testing.assert_allclose(relabelled.scores, found.scores[turn], atol=0.02)
        # A value in another unit, with as many times the tokens, is the same attribution.
        scaled = fit(masks, values * 7, 7.0)
        np.testing.assert_allclose(scaled.scores, found.scores * 7, atol=1e-6)
