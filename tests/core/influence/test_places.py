"""Retrieval rank against influence rank, against every order that chance could deal."""

from itertools import permutations

import numpy as np
import pytest

from core.influence import analyse
from core.influence.places import MOST_CELLS, places
from tests.core.charts.chart_runs import make_run


def shown(*influences, ranks=None, **more):
    return places(analyse(make_run(list(influences), ranks=ranks)), **more)


def test_passages_without_ties_by_hand():
    found = shown([0.9, 0.1, 0.5])
    assert found.observed.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert (found.n_passages, found.n, found.whole) == (3, 1, True)
    assert found.first.tolist() == found.last.tolist() == [1, 2, 3]


def test_a_tie_is_spread_over_the_ranks_that_it_spans():
    found = shown([0.9, 0.0, 0.0, 0.0])
    third = 1 / 3
    assert found.observed == pytest.approx(
        np.array([[1, 0, 0, 0], [0, third, third, third], [0, third, third, third], [0, third, third, third]])
    )
    # Each of the three tied passages counts where any part of it lies.
    assert found.n_questions.tolist() == [[1, 0, 0, 0], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]]


@pytest.mark.parametrize(
    "influences",
    [
        [[0.9, 0.1, 0.5]],
        [[0.9, 0.0, 0.0, 0.0]],
        [[0.3, 0.3, 0.0, 0.0]],
        [[0.3, 0.3, 0.0], [0.5, 0.4, 0.3, 0.2], [0.0, 0.0, 0.7]],
    ],
)
def test_the_expectation_is_the_mean_over_all_orders(influences):
    expected = shown(*influences).expected
    total = np.zeros_like(expected)
    for values in influences:
        orders = [shown(list(order)).observed for order in permutations(values)]
        mean = np.mean(orders, axis=0)
        total[: len(values), : len(values)] += mean
    assert expected == pytest.approx(total)


def test_an_order_that_chance_alone_gives_has_no_excess():
    found = shown(*[list(order) for order in permutations([0.9, 0.5, 0.1])])
    assert found.observed == pytest.approx(found.expected)


def test_questions_are_counted_once_for_each_place():
    # Two passages of one question share retrieval rank 1.5, which belongs to rank 2.
    found = shown([0.9, 0.0, 0.0], ranks=[[1, 1, 3]])
    assert found.n_questions.tolist() == [[0, 1, 0], [0, 1, 1], [0, 1, 1]]
    assert found.observed.sum() == found.expected.sum() == 3 and not found.whole


def test_only_the_questions_with_a_label():
    run = analyse(make_run([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0.0, 0.0, 0.0]]))
    assert places(run).n == 2
    assert places(run, "Aligned").observed.tolist() == np.eye(3).tolist()
    assert places(run, "Divergent").observed.tolist() == np.eye(3)[::-1].tolist()
    assert places(run.labelled(-1.0), "Divergent").n == 0


def test_many_ranks_share_cells():
    found = shown([1 - i / 200 for i in range(120)])
    assert len(found.first) == 20 == MOST_CELLS
    assert (found.first[1], found.last[1], found.last[-1]) == (7, 12, 120)
    assert found.observed == pytest.approx(6 * np.eye(20))
    assert found.expected == pytest.approx(np.full((20, 20), 36 / 120))


def test_nothing_defined():
    assert shown([0.0, 0.0, 0.0]).observed.shape == (0, 0)
    assert shown([0.0, 0.0, 0.0]).n == 0
