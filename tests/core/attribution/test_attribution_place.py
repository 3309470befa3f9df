"""The effects of passages and of their places."""

import math

import numpy as np
import pytest
from scipy.stats import f as fisher

from core.attribution.attribute import Game, placed, swapped
from core.attribution.place import split
from core.stats.designs import latin_square, random_masks

K = 5
PASSAGES = np.array([3.0, -1, 0, 2, 0])
SLOTS = np.array([2.0, 0.5, -1.0, -2.0, 0.5])  # they add up to 0


def measured(passages, slots, n=40, noise=0.0, seed=0):
    """Masks, orders and the scores of a game of passages and slots."""
    orders = np.resize(latin_square(K, seed), (n, K))
    masks = random_masks(K, n, seed + 50)
    there = np.take_along_axis(masks, orders, axis=1)
    values = masks @ passages + there @ slots + np.random.default_rng([seed, 3]).normal(size=n) * noise
    return masks, orders, values


def test_both_effects_are_found():
    found = split(*measured(PASSAGES, SLOTS))
    np.testing.assert_allclose(found.passages, PASSAGES, atol=1e-9)
    np.testing.assert_allclose(found.slots, SLOTS, atol=1e-9)
    assert found.slot_p_value == 0 and found.n == 40
    assert found.passage_share > 0.2 and found.slot_share > 0.2


def test_where_only_passages_matter_places_have_no_share():
    found = split(*measured(PASSAGES, SLOTS * 0))
    np.testing.assert_allclose(found.slots, 0, atol=1e-9)
    assert found.passage_share > 0.3 and found.slot_share == pytest.approx(0, abs=1e-9)
    assert found.slot_p_value == 1  # without noise, too
    noisy = split(*measured(PASSAGES, SLOTS * 0, noise=1.0, seed=1))
    assert noisy.slot_p_value > 0.05 and abs(noisy.slot_share) < 0.1 < noisy.passage_share


def test_where_only_places_matter_passages_have_no_share():
    found = split(*measured(PASSAGES * 0, SLOTS))
    np.testing.assert_allclose(found.passages, 0, atol=1e-9)
    np.testing.assert_allclose(found.slots, SLOTS, atol=1e-9)
    assert found.passage_share == pytest.approx(0, abs=1e-9) and found.slot_share > 0.5
    assert split(*measured(PASSAGES * 0, SLOTS, noise=1.0)).slot_p_value < 1e-4


def test_what_all_passages_gain_alike_is_in_neither_share():
    found = split(*measured(np.full(K, 4.0), SLOTS * 0, noise=0.5))
    np.testing.assert_allclose(found.passages, 4, atol=0.6)
    assert max(found.passage_share, found.slot_share) < 0.05


def test_shares_and_the_f_test_by_dummy_variables():
    """The same model with a column for every passage and every place, as another library would fit it."""
    masks, orders, values = measured(PASSAGES, SLOTS / 4, noise=1.0, seed=4)
    there = np.take_along_axis(masks, orders, axis=1)
    one, size = np.ones((40, 1)), masks.sum(axis=1, keepdims=True)

    def rest(*columns):
        x = np.hstack([one, size, *columns]).astype(float)
        return np.sum((values - x @ np.linalg.lstsq(x, values, rcond=None)[0]) ** 2)

    error, total = rest(masks, there), np.sum((values - values.mean()) ** 2)
    mean = error / (40 - 2 * K)  # 1 + 5 + 5 columns, of which one is told by the others
    found = split(masks, orders, values)
    statistic = (rest(masks) - error) / (K - 1) / mean
    assert found.slot_p_value == pytest.approx(fisher.sf(statistic, K - 1, 40 - 2 * K))
    assert found.slot_share == pytest.approx((rest(masks) - error - (K - 1) * mean) / total)
    assert found.passage_share == pytest.approx((rest(there) - error - (K - 1) * mean) / total)


@pytest.mark.parametrize(
    "how", ["few", "one order", "constant", "nothing"]
)  # fmt: skip
def test_undefined(how):
    masks, orders, values = measured(PASSAGES, SLOTS, noise=1.0)
    if how == "one order":  # places and passages are the same
        orders = np.tile(np.arange(K), (40, 1))
    values = np.full(40, 2.0) if how == "constant" else values
    n = {"few": 2 * K + 1, "nothing": 0}.get(how, 40)
    found = split(masks[:n], orders[:n], values[:n])
    assert found.n == n and np.isnan(found.passages).all() and np.isnan(found.slots).all()
    assert math.isnan(found.slot_share) and math.isnan(found.passage_share) and math.isnan(found.slot_p_value)


def test_two_more_measurements_than_columns_are_enough():
    """1 + 1 + 2 (K - 1) = 10 columns: of 12 measurements, in full squares of orders, the effects are exact."""
    orders = np.resize(latin_square(K, 0), (12, K))
    masks = random_masks(K, 12, 2)
    there = np.take_along_axis(masks, orders, axis=1)
    found = split(masks, orders, masks @ PASSAGES + there @ SLOTS)
    np.testing.assert_allclose(found.passages, PASSAGES, atol=1e-9)
    np.testing.assert_allclose(found.slots, SLOTS, atol=1e-9)
    assert found.n == 12


def test_one_more_measurement_than_columns_is_too_few():
    """With 11, one degree of freedom is left: too few for an F test."""
    masks, orders, values = measured(PASSAGES, SLOTS, n=12, noise=1.0)
    assert np.isfinite(split(masks, orders, values).passages).all()
    for left_out in range(12):
        kept = np.arange(12) != left_out
        found = split(masks[kept], orders[kept], values[kept])
        assert np.isnan(found.passages).all() and found.n == 11


@pytest.mark.parametrize("unit", [1e-5, 1e5])
def test_the_unit_of_the_scores_changes_no_share(unit):
    masks, orders, values = measured(PASSAGES, SLOTS / 4, noise=1.0, seed=4)
    one, other = split(masks, orders, values), split(masks, orders, values * unit)
    np.testing.assert_allclose(other.passages, one.passages * unit)
    assert other.slot_p_value == pytest.approx(one.slot_p_value) and 0 < one.slot_p_value < 1
    assert other.slot_share == pytest.approx(one.slot_share)


def test_of_one_passage_nothing_is_told():
    game = Game(1, lambda masks: masks[:, 0] * 1.0, in_order=lambda masks, orders: masks[:, 0] * 1.0)
    assert math.isnan(placed(game).slot_share) and swapped(game).shape == (0,)


def ordered(passages, slots):
    def score(masks, orders):
        return masks @ passages + np.take_along_axis(masks, orders, axis=1) @ slots

    plain = np.arange(len(passages))
    return Game(len(passages), lambda masks: score(masks, np.tile(plain, (len(masks), 1))), in_order=score)


def test_placed_measures_every_passage_at_every_place_equally_often():
    seen = []
    game = ordered(PASSAGES, SLOTS)
    own = game._in_order
    game._in_order = lambda masks, orders: seen.append(orders) or own(masks, orders)
    found = placed(game, seed=3)
    np.testing.assert_allclose(found.slots, SLOTS, atol=1e-9)
    # 32 masks, or 4 (k + 1) = 24 for 5 passages: 32, in full squares 35.
    assert found.n == 35
    assert len(np.unique(np.vstack(seen), axis=0)) == K
    big = ordered(np.arange(10.0), np.zeros(10))
    assert placed(big).n == 50  # 4 * 11, in full squares


def test_failed_measurements_in_other_orders_are_left_out():
    game = ordered(PASSAGES, SLOTS)
    own = game._in_order
    game._in_order = lambda masks, orders: np.where(masks[:, 0] & masks[:, 1], np.nan, own(masks, orders))
    found = placed(game, 64)
    assert found.n < 64 and game.n_failed > 0
    nothing = Game(K, lambda masks: np.zeros(len(masks)))  # it cannot be measured in other orders
    assert placed(nothing).n == 0 and math.isnan(placed(nothing).slot_share)


def test_swaps_of_neighbours_by_hand():
    # Neighbours that change places change the score by their difference times that of the places.
    passages, slots = np.zeros(4), np.array([5.0, 3.0, 2.0, 0.0])
    game = ordered(passages, slots)
    assert swapped(game).tolist() == [0, 0, 0]  # all are there: places alone do not see who stands there

    def weighted(masks, orders):
        return np.take_along_axis(np.tile([1.0, 2, 4, 8], (len(masks), 1)), orders, axis=1) @ slots

    game = Game(4, lambda masks: weighted(masks, np.tile(np.arange(4), (len(masks), 1))), in_order=weighted)
    assert sorted(swapped(game).tolist()) == [2, 2, 8]  # (2-1)(5-3), (4-2)(3-2), (8-4)(2-0)
    assert game.n_calls == 4
    many = ordered(np.zeros(10), np.zeros(10))
    assert len(swapped(many)) == 4 and many.n_calls == 5


def test_without_a_seed_it_is_0():
    def uneven(masks, orders):
        return np.take_along_axis(masks, orders, axis=1) * 2.0**orders @ 3.0 ** np.arange(10)

    game = Game(10, lambda masks: uneven(masks, np.tile(np.arange(10), (len(masks), 1))), in_order=uneven)
    assert swapped(game).tolist() == swapped(game, 0).tolist() != swapped(game, 1).tolist()
    drawn = [placed(game, *seed).slots.tolist() for seed in ((), (0,), (1,))]
    assert drawn[0] == drawn[1] != drawn[2]
