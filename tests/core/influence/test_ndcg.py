import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from core.influence import influence_ndcg, ndcg_by_chance
from core.influence.ndcg import ndcg_rows, order_of_use

LEVELS = st.sampled_from([0.0, 0.1, 0.5, 0.9])


@st.composite
def questions(draw, largest=9):
    k = draw(st.integers(2, largest))
    ranks = draw(st.lists(st.integers(1, 6), min_size=k, max_size=k))
    return ranks, draw(st.lists(LEVELS, min_size=k, max_size=k))


def test_by_hand():
    # Gains 0.5 and 1 at places 1 and 3, the ideal has them at 2 and 1.
    dcg, ideal = 0.5 + 1 / 2, 1 + 0.5 / math.log2(3)
    assert influence_ndcg([1, 2, 3], [0.5, 0, 1]) == pytest.approx(dcg / ideal)
    assert influence_ndcg([3, 1, 2], [0, 1, 0.5]) == 1.0
    chance = ndcg_by_chance([1, 2, 3], [0.5, 0, 1])
    assert chance.mean == pytest.approx(0.5 * (1 + 1 / math.log2(3) + 0.5) / ideal)
    # Of six orders three are better and two worse; either way the observed one counts: 2 · min(4, 3) / 6.
    assert chance.p_value == 1
    # No order is better than this one: 2 · 1 / 6, since the worst would be told as well.
    assert ndcg_by_chance([1, 2, 3], [1, 0.5, 0]).p_value == pytest.approx(2 / 6)
    assert ndcg_by_chance([1, 2, 3], [0, 0.5, 1]).p_value == pytest.approx(2 / 6)


@given(questions())
def test_equals_scikit_learn_ties_in_retrieval_too(question):
    ranks, influence = question
    found = influence_ndcg(ranks, influence)
    if not any(influence):
        assert math.isnan(found) and math.isnan(ndcg_by_chance(ranks, influence).mean)
    else:
        assert found == pytest.approx(ndcg_score([influence], [[-rank for rank in ranks]]))
        assert 0 < found <= 1


@settings(max_examples=60, deadline=None)
@given(questions(largest=5), st.randoms(use_true_random=False))
def test_chance_is_that_of_all_orders(question, random):
    ranks, influence = question
    if not any(influence):
        return
    every = np.array([influence_ndcg(ranks, order) for order in itertools.permutations(influence)])
    chance = ndcg_by_chance(ranks, influence)
    assert chance.mean == pytest.approx(every.mean())
    found = influence_ndcg(ranks, influence)
    tails = (every >= found - 1e-9).mean(), (every <= found + 1e-9).mean()
    assert chance.p_value == pytest.approx(min(1, 2 * min(tails)))
    value, mean, variance = ndcg_rows(np.array([ranks], float), np.array([influence]))[0]
    assert (value, mean, variance) == pytest.approx(
        (influence_ndcg(ranks, influence), chance.mean, every.var())
    )
    # Which of two equal passages is which does not matter.
    shuffled = list(zip(ranks, influence, strict=True))
    random.shuffle(shuffled)
    assert influence_ndcg(*zip(*shuffled, strict=True)) == pytest.approx(value)


def test_undefined_where_nothing_was_used_or_a_value_is_missing():
    for ranks, influence in (([1, 2], [0, 0]), ([1, 2], [0.1, math.nan]), ([1, math.nan], [1, 0]), ([], [])):
        assert math.isnan(influence_ndcg(ranks, influence))
        assert all(math.isnan(value) for value in ndcg_by_chance(ranks, influence))
    with pytest.raises(ValueError, match="equally long"):
        influence_ndcg([1, 2], [1, 2, 3])


def test_of_equal_influences_every_order_is_the_best():
    assert influence_ndcg([1, 2, 3], [0.4] * 3) == 1.0
    assert ndcg_by_chance([1, 2, 3], [0.4] * 3) == (1.0, 1.0)


def test_p_value_of_ten_passages_is_that_of_random_orders():
    rng = np.random.default_rng(2)
    influence = rng.random(10).round(1)
    every = [influence_ndcg(range(10), rng.permutation(influence)) for _ in range(5_000)]
    above = (np.array(every) >= influence_ndcg(range(10), influence)).mean()
    expected = 2 * min(above, 1 - above)
    assert ndcg_by_chance(range(10), influence).p_value == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(("k", "extreme"), [(6, 2 / 720), (10, 2 / 2_001)])
def test_of_all_orders_one_is_the_best_and_of_2_000_random_ones_beside_the_observed_none(k, extreme):
    best = [0.9**i for i in range(k)]
    for influence in (best, best[::-1]):
        assert ndcg_by_chance(range(k), influence).p_value == pytest.approx(extreme)


def block(influence, ranks=None):
    influence = np.asarray(influence, float)
    k = influence.shape[1]
    return np.tile(np.arange(1.0, k + 1), (len(influence), 1)) if ranks is None else ranks, influence


def test_a_run_by_hand():
    # All on one of three: 1 and 0.5, by chance 0.7103 each; the third question is undefined.
    use = order_of_use([block([[1, 0, 0], [0, 0, 1], [0, 0, 0]])])
    chance = (1 + 1 / math.log2(3) + 0.5) / 3
    assert (use.n, use.mean, use.chance) == (2, 0.75, pytest.approx(chance))
    assert use.excess == pytest.approx((0.75 - chance) / (1 - chance))
    # Discounts 1, 0.63 and 0.5: of the nine pairs one reaches 2, as one falls to 1; both would be told.
    for same in ([1, 0, 0], [0, 0, 1]):
        assert order_of_use([block([same, same])]).p_value == pytest.approx(2 / 9, abs=0.02)


def test_a_run_in_order_reaches_all_and_one_upside_down_falls_below_chance():
    best = order_of_use([block([[0.9, 0.5, 0.1, 0]] * 20)])
    assert (best.mean, best.excess) == (1.0, pytest.approx(1.0)) and best.p_value == pytest.approx(2e-4)
    worst = order_of_use([block([[0, 0.1, 0.5, 0.9]] * 20)])
    assert worst.excess < 0 and worst.p_value == pytest.approx(2e-4)


def test_permutation_and_normal_p_values_agree(monkeypatch):
    rng = np.random.default_rng(5)
    influence = rng.random((60, 8))
    influence[:, 0] += 0.05
    exact = order_of_use([block(influence)]).p_value
    monkeypatch.setattr("core.influence.ndcg._CELLS", influence.size * 9_999)
    assert order_of_use([block(influence)]).p_value == exact
    monkeypatch.setattr("core.influence.ndcg._CELLS", 0)
    normal = order_of_use([block(influence)]).p_value
    assert 0.2 < normal < 0.4 and exact == pytest.approx(normal, abs=0.01)


def test_questions_of_several_sizes_count_alike():
    use = order_of_use([block([[1, 0, 0]]), block([[0, 0, 0, 1]]), block(np.zeros((1, 2)))])
    assert (use.n, use.mean) == (2, pytest.approx((1 + 1 / math.log2(5)) / 2))


def test_nothing_to_tell_apart(monkeypatch):
    assert order_of_use([]).n == 0 and math.isnan(order_of_use([]).mean)
    equal = order_of_use([block([[0.4] * 3] * 3)])
    assert (equal.mean, equal.chance, equal.p_value) == (1.0, 1.0, 1.0) and math.isnan(equal.excess)
    monkeypatch.setattr("core.influence.ndcg._CELLS", 0)
    assert order_of_use([block([[0.4] * 3] * 3)]).p_value == 1.0


def test_a_run_that_is_what_chance_gives_has_a_p_value_of_one():
    # Of the four pairs of orders one is better, one worse, and two are alike: either side has 3 / 4.
    use = order_of_use([block([[1, 0], [0, 1]])])
    assert use.p_value == 1.0 and use.excess == pytest.approx(0, abs=1e-12)
