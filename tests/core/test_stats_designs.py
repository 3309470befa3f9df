"""Designs by hand: what is all, what is drawn, and that draws of one seed stay what they are."""

import numpy as np
import pytest

from core.stats import designs


def test_all_masks_and_those_without_one_thing():
    assert designs.all_masks(2).tolist() == [[False, False], [False, True], [True, False], [True, True]]
    assert designs.all_masks(0).shape == (1, 0)
    assert designs.one_left_out(2).tolist() == [[True, True], [False, True], [True, False]]


@pytest.mark.parametrize(("budget", "all_of_them"), [(7, False), (8, True), (9, True)])
def test_all_subsets_where_the_budget_is_enough_else_as_many_random_ones(budget, all_of_them):
    expected = designs.all_masks(3) if all_of_them else designs.random_masks(3, 7, 5)
    np.testing.assert_array_equal(designs.subsets(3, budget, 5), expected)


def test_random_masks_keep_half_and_differ_from_those_to_test_on():
    masks, test = designs.random_masks(20, 400, 3), designs.held_out(20, 400, 3)
    assert masks.shape == test.shape == (400, 20) and masks.dtype == bool
    assert masks.mean() == pytest.approx(0.5, abs=0.03) == test.mean()
    assert (masks == test).mean() == pytest.approx(0.5, abs=0.03)
    np.testing.assert_array_equal(masks, np.random.default_rng([3, 0]).random((400, 20)) < 0.5)
    np.testing.assert_array_equal(test, designs.random_masks(20, 400, 1_000_006))


@pytest.mark.parametrize("drawn", [designs.random_masks, designs.subsets, designs.held_out, designs.chains])
def test_the_seed_is_0_unless_another_is_given(drawn):
    np.testing.assert_array_equal(drawn(8, 6), drawn(8, 6, 0))
    assert (drawn(8, 6) != drawn(8, 6, 1)).any()


@pytest.mark.parametrize(("k", "n"), [(0, 2), (1, 1), (3, 4), (4, 5)])
def test_chains_add_one_thing_after_the_other_and_every_second_in_reverse(k, n):
    found = designs.chains(k, n, 2)
    assert found.shape == (n, k + 1, k)
    assert (found.sum(axis=2) == np.arange(k + 1)).all() and (found[:, 1:] >= found[:, :-1]).all()
    for there, back in zip(found[::2], found[1::2], strict=False):
        np.testing.assert_array_equal(back, ~there[::-1])
    first = np.random.default_rng([2, 1]).permutation(k)
    assert [np.flatnonzero(row).tolist() for row in found[0]] == [sorted(first[:m]) for m in range(k + 1)]


@pytest.mark.parametrize("k", [0, 1, 5])
def test_in_a_latin_square_each_stands_at_each_place_once(k):
    found = designs.latin_square(k, 4)
    assert found.shape == (k, k)
    for lines in (found, found.T):
        assert (np.sort(lines, axis=1) == np.arange(k)).all()
    np.testing.assert_array_equal(designs.latin_square(k), designs.latin_square(k, 0))
    rng = np.random.default_rng([4, 2])
    order, turns = rng.permutation(k).tolist(), rng.permutation(k).tolist()
    assert found.tolist() == [order[k - turn :] + order[: k - turn] for turn in turns]
