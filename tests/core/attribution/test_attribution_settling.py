"""When the order of the first passages is settled."""

import math

import numpy as np
import pytest

from core.attribution.methods import banzhaf
from core.attribution.settling import settled
from core.stats.designs import random_masks
from tests.core.attribution.attribution_runs import evidence_over_time

STRICT = np.array([4.0, 2.5, 1.2, 0, 0, 0])


def drawn(effects, n, seed=0, noise=0.1):
    masks = random_masks(len(effects), n, seed)
    return masks, masks @ effects + np.random.default_rng([seed, 9]).normal(size=n) * noise


def places(masks, values):
    return settled(masks, values, banzhaf(masks, values).scores)


def test_a_strict_order_is_settled_in_its_order():
    masks, values = drawn(STRICT, 96)
    assert places(masks, values) == 3
    assert settled(masks, values, -STRICT) == 0  # the wrong order
    # Second and third exchanged: only the first place is settled.
    assert settled(masks, values, STRICT[[0, 2, 1, 3, 4, 5]]) == 1


def test_passages_that_tie_are_not_settled():
    masks, values = drawn(np.array([4.0, 2.5, 1.2, 1.2, 0, 0]), 96)
    assert places(masks, values) == 2
    masks, values = drawn(np.array([4.0, 4.0, 0, 0, 0, 0]), 96)
    assert places(masks, values) == 0


@pytest.mark.parametrize("n", [0, 1, 4])
def test_nothing_is_settled_by_a_few_masks(n):
    masks, values = drawn(STRICT * 1000, n, noise=0)
    assert settled(masks, values, STRICT) == 0


def test_one_passage_has_no_order_and_two_can_have_one():
    masks, values = drawn(np.array([3.0]), 40)
    assert settled(masks, values, np.array([3.0])) == 0
    masks, values = drawn(np.array([0.0, 5.0]), 60)
    assert settled(masks, values, np.array([0.0, 5.0])) == 2


def test_a_constant_answer_settles_nothing():
    masks = random_masks(6, 64, 0)
    assert settled(masks, np.full(64, -3.0), np.arange(6.0)) == 0


def test_neither_units_nor_labels_matter():
    masks, values = drawn(STRICT, 40, noise=0.8)
    turn = np.array([3, 0, 5, 1, 4, 2])
    wanted = places(masks, values)
    assert places(masks, values * 1000 - 40) == wanted == places(masks[:, turn], values)


@pytest.mark.parametrize("k", [2, 3, 6, 10])
def test_the_evidence_is_that_of_another_implementation(k):
    games = 20
    masks = np.array([random_masks(k, 80, seed) for seed in range(games)])
    rng = np.random.default_rng(k)
    effects = np.array([rng.permutation(np.resize([8.0, 5, 3, *[0] * 7], k)) for _ in range(games)])
    values = np.einsum("gtk,gk->gt", masks, effects) + rng.normal(size=(games, 80)) * 0.6
    seen = set()
    for n, evidence, direction in evidence_over_time(masks, values):
        if n not in (5, 16, 24, 40, 80):
            continue
        apart = (evidence >= math.log(max(1, 3 * k - 6) / 0.05)) & (direction > 0)
        for game in range(games):
            order = np.argsort(-effects[game])
            wanted = 0
            for place in range(min(3, k)):
                if not apart[game, order[place], order[place + 1 :]].all():
                    break
                wanted = place + 1
            assert settled(masks[game, :n], values[game, :n], effects[game]) == wanted
            seen.add(wanted)
    assert len(seen) > 1, seen
