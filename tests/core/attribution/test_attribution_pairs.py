"""Pairs of passages whose effects do not add up."""

import math

import numpy as np
import pytest
from scipy.stats import f as fisher
from scipy.stats import t as student

from core.attribution.pairs import enough_for_pairs, interacting
from core.stats.designs import all_masks, random_masks


def noise(n, seed=0, size=0.2):
    return np.random.default_rng([seed, 7]).normal(size=n) * size


def test_either_and_both_by_hand():
    masks = random_masks(8, 64, 1)
    either = 3.0 * (masks[:, 1] | masks[:, 4])
    found = interacting(masks, either + noise(64))
    # Leaving out both costs 3, or 0 alone where the other is there: 3 beyond the sum.
    assert [(one.first, one.second, one.either) for one in found] == [(1, 4, True)]
    assert found[0].interaction == pytest.approx(3, abs=0.4) and found[0].low < 3 < found[0].high
    both = 3.0 * (masks[:, 0] & masks[:, 7])
    found = interacting(masks, both + noise(64, 1))
    assert [(one.first, one.second, one.either) for one in found] == [(0, 7, False)]
    assert found[0].interaction == pytest.approx(-3, abs=0.4) and found[0].p_value < 1e-6


def test_several_pairs_come_strongest_first():
    masks = random_masks(8, 80, 2)
    values = 2.0 * (masks[:, 0] | masks[:, 1]) + 4.0 * (masks[:, 2] & masks[:, 3])
    found = interacting(masks, values + noise(80))
    assert [(one.first, one.second, one.either) for one in found] == [(2, 3, False), (0, 1, True)]


def test_p_value_and_interval_are_those_of_a_regression():
    """One pair found: F test of its column in ordinary least squares, corrected for the 6 pairs of 4 passages."""
    masks = all_masks(4)
    values = masks @ np.array([1.0, 2, 0, -1]) + 1.5 * (masks[:, 0] & masks[:, 2]) + noise(16, 4)
    (found,) = interacting(masks, values)
    z = masks - 0.5
    small = np.column_stack([np.ones(16), z])
    large = np.column_stack([small, z[:, 0] * z[:, 2]])
    (_, rest, *_), (beta, error, *_) = (np.linalg.lstsq(x, values, rcond=None) for x in (small, large))
    free = 16 - 6
    p_value = fisher.sf((rest[0] - error[0]) / (error[0] / free), 1, free)
    assert found.p_value == pytest.approx(6 * p_value) and found.interaction == pytest.approx(-beta[-1])
    width = student.ppf(1 - 0.05 / 12, free) * np.sqrt(error[0] / free / np.sum(large[:, -1] ** 2))
    assert (found.low, found.high) == pytest.approx((-beta[-1] - width, -beta[-1] + width))


def test_an_additive_answer_has_no_pairs():
    masks = random_masks(8, 64, 3)
    values = masks @ np.arange(8.0)
    assert interacting(masks, values) == ()
    assert interacting(masks, values + noise(64, 5)) == ()
    for constant in (2.0, 0.0):
        assert interacting(masks, np.full(64, constant)) == ()


def test_rounding_errors_are_no_pair():
    """Without noise all that is left of an additive answer are rounding errors; of a few games they look like a pair."""
    for k, seed in ((3, 0), (4, 0), (6, 26)):
        masks = all_masks(k)
        assert interacting(masks, masks @ np.random.default_rng(seed).normal(size=k)) == ()


def test_fewer_masks_say_nothing_of_pairs():
    masks = random_masks(10, 60, 0)
    values = 5.0 * (masks[:, 0] | masks[:, 1])
    assert len(np.unique(masks[:44], axis=0)) >= 43
    assert enough_for_pairs(masks[:48]) and not enough_for_pairs(masks[:40])
    assert interacting(masks, values) and not interacting(masks[:40], values[:40])
    # Nine tenths of 48 different masks, rounded down, are enough.
    different = np.unique(masks, axis=0)
    assert enough_for_pairs(different[:43]) and not enough_for_pairs(different[:42])
    # The same masks again are no further ones.
    twice = np.vstack([masks[:30], masks[:30]])
    assert not enough_for_pairs(twice)
    # Of few passages all masks are enough.
    assert enough_for_pairs(all_masks(3)) and not enough_for_pairs(all_masks(3)[1:])
    assert not enough_for_pairs(all_masks(1))


def test_two_passages_leave_no_error_to_test_against():
    masks = all_masks(2)
    assert not enough_for_pairs(masks) and interacting(masks, np.array([0.0, 1, 1, 1.01])) == ()


def test_a_mask_that_was_drawn_twice_is_measured_once():
    masks = random_masks(8, 60, 6)
    values = 2.0 * (masks[:, 1] & masks[:, 2]) + noise(60, 6)
    again = np.vstack([masks, masks[:20]])
    assert interacting(again, np.append(values, values[:20])) == interacting(masks, values)


def test_without_noise_every_pair_that_does_not_add_up_is_told():
    masks = all_masks(3)
    values = masks @ np.array([1.0, 1, 5]) - 1.0 * (masks[:, 0] & masks[:, 1])
    wanted = ((0, 1, pytest.approx(1), pytest.approx(1), pytest.approx(1), 0.0),)
    assert interacting(masks, values) == wanted
    # Scores that are 0 or 1, and nothing between.
    assert interacting(masks, 1.0 * (masks[:, 0] | masks[:, 1])) == wanted


def test_an_interval_needs_one_degree_of_freedom():
    """Of three passages a constant, three effects and three pairs leave one of the 8 masks.

    What all three do together is the error: w times a product of three halves in every mask, so its squares add
    up to 8 (w / 8)²; the squares of a pair's column to 8 / 16. Student's t with one degree is a tangent.
    """
    masks, w = all_masks(3), 0.0002
    z = masks - 0.5
    planted = {(0, 1): 1000.0, (1, 2): -5.0, (0, 2): 0.1}
    values = sum((effect * z[:, i] * z[:, j] for (i, j), effect in planted.items()), w * z.prod(axis=1))
    found = interacting(masks, values)
    assert {one[:2]: one.interaction for one in found} == {
        pair: pytest.approx(-effect) for pair, effect in planted.items()
    }
    width = math.tan(math.pi * (0.5 - 0.05 / 2 / 3)) * math.sqrt(8 * (w / 8) ** 2) / math.sqrt(8 / 16)
    for one in found:
        assert one.high - one.interaction == pytest.approx(width, rel=1e-6)
        assert one.interaction - one.low == pytest.approx(width, rel=1e-6)


def test_no_more_than_five_pairs_are_told():
    masks = all_masks(6)
    values = sum((w * (masks[:, i] & masks[:, j]) for w, (i, j) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (4, 5)], start=1)), np.zeros(64))  # fmt: skip
    found = interacting(masks, values)
    assert len(found) == 5 and (found[0].first, found[0].second) == (4, 5)


def test_relabelling_passages_relabels_pairs():
    masks = random_masks(8, 64, 8)
    values = 3.0 * (masks[:, 1] | masks[:, 4]) + noise(64, 8)
    turn = np.array([7, 4, 0, 1, 2, 3, 5, 6])  # 1 is now at 3, 4 at 1
    (found,) = interacting(masks[:, turn], values * -10 + 3)
    (before,) = interacting(masks, values)
    assert (found.first, found.second, found.either) == (1, 3, False)
    assert found.interaction == pytest.approx(-10 * before.interaction)
    assert found.p_value == pytest.approx(before.p_value)


@pytest.mark.parametrize(("k", "n"), [(46, 48), (41, 43), (45, 48)])
def test_noise_has_no_pair_where_the_masks_are_hardly_more_than_the_passages(k, n):
    # With two masks more than passages one number is left over, which any pair fits.
    for seed in range(3):
        masks = random_masks(k, n, seed)
        assert interacting(masks, np.random.default_rng(seed).normal(size=n)) == ()
