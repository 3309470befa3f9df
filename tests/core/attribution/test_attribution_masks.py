"""Masks and orders of attribution."""

import numpy as np
import pytest

from core.stats.designs import all_masks, chains, latin_square, one_left_out, random_masks


def test_all_masks_are_all_and_different():
    for k in (1, 3, 5):
        assert np.unique(all_masks(k), axis=0).shape == all_masks(k).shape == (2**k, k)


def test_one_left_out_begins_with_all():
    assert one_left_out(3).astype(int).tolist() == [[1, 1, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_random_masks_keep_each_passage_half_the_time_and_come_from_the_seed():
    masks = random_masks(4, 4000, 7)
    # Standard deviation 0.5 / sqrt(4000) = 0.0079; each pair together a quarter of the time.
    assert np.abs(masks.mean(axis=0) - 0.5).max() < 0.04
    assert np.abs((masks[:, 0] & masks[:, 1]).mean() - 0.25) < 0.04
    np.testing.assert_array_equal(masks, random_masks(4, 4000, 7))
    # More masks begin with the same ones, so that drawing may go on.
    np.testing.assert_array_equal(masks[:50], random_masks(4, 50, 7))
    assert (masks != random_masks(4, 4000, 8)).any()


@pytest.mark.parametrize(("k", "n"), [(1, 2), (4, 6), (5, 3)])
def test_chains_add_one_passage_at_a_time_and_come_with_their_reverse(k, n):
    found = chains(k, n, 3)
    assert found.shape == (n, k + 1, k)
    assert found.sum(axis=2).tolist() == [list(range(k + 1))] * n
    assert (found[:, 1:] >= found[:, :-1]).all()
    for forth, back in zip(found[::2], found[1::2], strict=False):
        # What the first adds in its first m steps the reverse adds in its last m.
        np.testing.assert_array_equal(forth, ~back[::-1])


def test_in_a_latin_square_each_passage_stands_at_each_place_once():
    for k in (1, 2, 7):
        square = latin_square(k, 5)
        for lines in (square, square.T):
            assert [sorted(line) for line in lines.tolist()] == [list(range(k))] * k
    assert latin_square(7, 5).tolist() != latin_square(7, 6).tolist()
