import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.influence import (
    attainable_rho,
    average_ranks,
    chance_band,
    rank_biased_overlap,
    rbo_by_chance,
    spearman,
)
from core.influence import chance as chance_module
from core.influence.chance import RandomRhos, random_sums

LEVELS = st.sampled_from([0.0, 0.1, 0.5, 0.9])


@st.composite
def questions(draw, largest=7):
    k = draw(st.integers(3, largest))
    ranks = draw(st.lists(st.integers(1, 4), min_size=k, max_size=k))
    influence = draw(st.lists(LEVELS, min_size=k, max_size=k))
    return ranks, influence


def all_rhos(ranks, influence):
    """The ρ of every order, with scipy."""
    return np.array(
        [stats.spearmanr(ranks, [-v for v in p]).statistic for p in itertools.permutations(influence)]
    )


@settings(max_examples=60, deadline=None)
@given(questions(largest=5), st.randoms(use_true_random=False))
def test_attainable_is_the_largest_rho_of_all_orders(question, random):
    ranks, influence = question
    found = attainable_rho(ranks, influence)
    if spearman(ranks, influence).reason:
        assert math.isnan(found)
        return
    rhos = all_rhos(ranks, influence)
    assert found == pytest.approx(rhos.max(), abs=1e-9)
    assert 0 < found <= 1 and spearman(ranks, influence).rho <= found + 1e-12
    shuffled = random.sample(influence, len(influence))
    assert attainable_rho(ranks, shuffled) == pytest.approx(found, abs=1e-12)


def test_attainable_by_hand():
    # One of ten: ranks 1 and nine times 6, against 1 to 10: (4.5² + 0.5 · 4.5) / √(22.5 · 82.5) = 0.5222.
    assert attainable_rho(range(1, 11), [0] * 9 + [1]) == pytest.approx(0.5222, abs=1e-4)
    assert attainable_rho([3, 1, 2], [0.1, 0.5, 0.3]) == 1.0
    assert math.isnan(attainable_rho([1, 2, 3], [0.2, 0.2, 0.2]))


@settings(max_examples=25, deadline=None)
@given(questions(largest=6))
def test_the_band_is_that_of_all_orders_ties_and_all(question):
    ranks, influence = question
    band = chance_band(ranks, influence)
    if spearman(ranks, influence).reason:
        assert math.isnan(band.low) and math.isnan(band.p_below(0)) and math.isnan(band.mean_rbo)
        return
    rhos = all_rhos(ranks, influence)
    for point in (-0.5, 0.0, 0.3, 0.7, 1.0):
        assert band.p_below(point) == pytest.approx((rhos < point - 1e-9).mean())
    expected = np.quantile(rhos, [0.025, 0.05, 0.95, 0.975], method="inverted_cdf")
    assert [band.low, band.q05, band.q95, band.high] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", [7, 8])
def test_the_band_without_ties_is_exact_up_to_eight(k):
    # Sums of squared differences of all orders, counted one by one.
    squares = np.array(
        [sum((i - p) ** 2 for i, p in enumerate(order)) for order in itertools.permutations(range(k))]
    )
    rhos = 1 - 6 * squares / (k * (k**2 - 1))
    band = chance_band(k)
    assert band.null.size == math.factorial(k)
    assert band.p_below(0.7) == pytest.approx((rhos < 0.7 - 1e-9).mean(), abs=1e-12)
    assert [band.low, band.high] == pytest.approx(np.quantile(rhos, [0.025, 0.975], method="inverted_cdf"))


def test_the_band_of_three_by_hand():
    # Six orders of three: ρ = 1, 0.5, 0.5, −0.5, −0.5, −1.
    band = chance_band(3)
    assert band.p_below(0.7) == band.p_below(1.0) == pytest.approx(5 / 6) and band.p_below(-1.0) == 0
    assert (band.low, band.q05, band.high) == (-1.0, -1.0, 1.0)


def test_one_influential_passage_among_ten():
    # Ten orders that differ; the only passage at place i has ρ = (11 − 2 i) / 9 · 0.5222.
    band = chance_band(range(1, 11), [0, 0, 0, 0, 1, 0, 0, 0, 0, 0])
    assert band.high == round(band.high, 12) != round(band.high, 11)
    values = np.array([(11 - 2 * i) / 9 for i in range(1, 11)]) * 0.52223
    assert np.unique(band.null) == pytest.approx(np.sort(values), abs=1e-4)
    for value in values:
        assert band.p_below(value + 0.01) == pytest.approx((values < value + 0.01).mean(), abs=0.01)
    assert (band.low, band.high) == pytest.approx((values.min(), values.max()), abs=1e-4)


def test_bands_are_compared_and_shown_by_their_points():
    band = chance_band(4)
    assert band == replace(band, null=band.null.copy()) and band != replace(band, low=0.0)
    assert "null" not in repr(band) and "low=-1.0" in repr(band)


def test_known_points_without_ties():
    ten, five = chance_band(10), chance_band(5)
    assert ten.p_below(0.7) == pytest.approx(0.987, abs=0.001)
    assert ten.q95 == pytest.approx(0.552, abs=0.01) and ten.q05 == pytest.approx(-0.552, abs=0.01)
    assert five.p_below(0.7) == pytest.approx(0.883, abs=0.001)
    assert math.isnan(chance_band(2).q95) and math.isnan(chance_band(2).p_below(0.7))


@pytest.mark.parametrize(("k", "n"), [(30, 200_000), (31, 20_000)])
def test_number_of_orders_drawn_without_ties(k, n):
    assert chance_band(k).null.size == n


@pytest.mark.parametrize(("k", "n"), [(9, 50_000), (12, 50_000), (13, 5_000)])
def test_number_of_orders_drawn_with_ties(k, n):
    assert chance_band(range(k), [1.0, 1.0, *np.arange(k - 2) / k]).null.size == n


def test_draws_are_seeded():
    first = chance_band(11), chance_band(range(11), [0, 0, *range(9)])
    chance_module._band.cache_clear()
    chance_module._orders.cache_clear()
    again = chance_band(11), chance_band(range(11), [0, 0, *range(9)])
    assert all((a.null == b.null).all() for a, b in zip(first, again, strict=True))


def test_many_questions_have_the_chances_of_each_alone():
    rng = np.random.default_rng(4)
    influence = np.vstack([rng.integers(0, 3, (30, 9)), rng.random((3, 9)), [[0] * 8 + [1]] * 2])
    order = np.tile(np.arange(1.0, 10), (len(influence), 1))
    order[::4, :2] = 1.5
    rank = np.array([average_ranks(row) for row in influence])
    known = np.flatnonzero(np.ptp(influence, axis=1) > 0)
    rhos = RandomRhos.of([(known, order[known], rank[known])], len(influence) + 1)
    below, bands = rhos.p_below([0.0, 0.7]), rhos.bands()
    assert np.isnan(below[-1]).all() and np.isnan(bands[-1]).all()
    for i in known:
        band = chance_band(order[i], influence[i])
        assert below[i].tolist() == [band.p_below(0.0), band.p_below(0.7)]
        assert bands[i].tolist() == pytest.approx(
            [band.low, band.high, band.q05, band.p_below(band.q05)], abs=1e-9
        )


def test_questions_of_other_sizes_and_patterns_do_not_change_a_result():
    one = np.array([[1.0, 2, 3, 4]])
    alone = RandomRhos.of([(np.array([0]), one, one)], 1)
    wide = np.array([[1.0, 2, 3, 4, 5, 6]])
    together = RandomRhos.of(
        [(np.array([1]), one, one), (np.array([0, 2]), *[np.vstack([wide, wide])] * 2)], 3
    )
    assert together.p_below([0.3])[1] == alone.p_below([0.3])[0]
    assert together.pattern.tolist() == [1, 0, 1]


def test_sums_over_all_orders_by_hand():
    ((rows, sums),) = random_sums(np.array([[1.0, 10, 100]]), np.array([[1.0, 2, 2]]), 6)
    assert rows.tolist() == [0] and sorted(sums[0]) == [122, 122, 212, 212, 221, 221]


def test_as_many_orders_as_are_asked_for_are_all_of_them():
    ((_, sums),) = random_sums(np.array([[1.0, 10, 100, 1_000]]), np.array([[1.0, 2, 3, 4]]), 24)
    assert np.unique(sums).size == 24


@settings(max_examples=40, deadline=None)
@given(questions(largest=5))
def test_overlap_by_chance_is_the_mean_over_all_orders(question):
    ranks, influence = question
    if spearman(ranks, influence).reason:
        return
    found = [rank_biased_overlap(ranks, order) for order in itertools.permutations(influence)]
    assert rbo_by_chance(len(ranks)) == pytest.approx(np.mean(found))
    assert chance_band(ranks, influence).mean_rbo == rbo_by_chance(len(ranks))
