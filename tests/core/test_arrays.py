"""Many groups at once: the same as one after the other."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from core.arrays import constant_within, equal_sized, ranks_within, spearman_within, tie_spans

PAIRS = [
    ([1, 2, 3, 4], [10, 20, 30, 40]),
    ([1, 2, 3], [3, 2, 1]),
    ([1, 2, 3, 4], [2, 4, 1, 3]),  # neither way: 0
    ([5, 1, 4, 2, 2, 9], [1, 3, 3, 0, 7, 7]),
    ([1, 2, 3, 4, 5, 6, 7], [2, 1, 3, 4, 5, 7, 6]),
]


def test_rank_agreement_within_groups_is_that_of_scipy():
    group = np.concatenate([[number] * len(a) for number, (a, _) in enumerate(PAIRS)])
    a, b = (
        ranks_within(np.concatenate([*values]).astype(float), group) for values in zip(*PAIRS, strict=True)
    )
    mixed = np.random.default_rng(0).permutation(len(group))  # rows of a group need not be adjacent
    rho, p = spearman_within(a[mixed], b[mixed], group[mixed], len(PAIRS))
    wanted = [spearmanr(*pair) for pair in PAIRS]
    assert rho == pytest.approx([one.statistic for one in wanted], abs=1e-12)
    assert p == pytest.approx([one.pvalue for one in wanted], abs=1e-12)
    assert rho[:3].tolist() == [1.0, -1.0, 0.0] and p[:3].tolist() == [0.0, 0.0, 1.0]


def test_what_is_too_little_for_an_agreement_is_undefined():
    group = np.array([0, 0, 1, 1, 1, 3])  # group 2 has no rows
    rho, p = spearman_within(np.array([1.0, 2, 2, 2, 2, 1]), np.array([2.0, 1, 1, 2, 3, 1]), group, 4)
    assert rho[0] == -1 and np.isnan(rho[1:]).all() and np.isnan(p).all()


def test_a_tie_spans_the_ranks_that_its_rows_would_have():
    group = np.array([1, 0, 1, 1, 0, 1, 0])
    ranks = ranks_within(np.array([5.0, 7, 9, 5, 3, 5, np.nan]), group)
    assert ranks.tolist() == pytest.approx([2, 2, 4, 2, 1, 2, np.nan], nan_ok=True)
    first, last = tie_spans(ranks, group)
    assert first == pytest.approx([1, 2, 4, 1, 1, 1, np.nan], nan_ok=True)
    assert last == pytest.approx([3, 2, 4, 3, 1, 3, np.nan], nan_ok=True)


def test_ranks_may_start_at_the_largest_value():
    found = ranks_within(np.array([5.0, 7, np.nan, 5]), np.zeros(4, dtype=int), descending=True)
    assert found.tolist() == pytest.approx([2.5, 1, np.nan, 2.5], nan_ok=True)


def test_rows_of_groups_of_a_size_come_together():
    group = np.array([2, 0, 3, 2, 0, 4, 2, 5, 5])  # group 1 has no rows, and 0 is not chosen
    found = list(equal_sized(group, np.array([False, True, True, True, True, True])))
    assert [(numbers.tolist(), rows.tolist()) for numbers, rows in found] == [
        ([3, 4], [[2], [5]]), ([5], [[7, 8]]), ([2], [[0, 3, 6]]),
    ]  # fmt: skip


@pytest.mark.parametrize(("values", "constant"), [([2.0, 2], True), ([2.0, 3], False), ([], True)])
def test_a_group_is_constant_where_all_its_values_are_equal(values, constant):
    group = np.zeros(len(values), dtype=int)
    assert constant_within(np.array(values), group, 1).tolist() == [constant]
