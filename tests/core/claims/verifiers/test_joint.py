"""Two passages together where neither is enough."""

import numpy as np
import pytest

from core.claims.verifiers.checked import CheckedVerifier, joint_support


class Both:
    """Supported where every word of the claim is in the text; remembers what it was asked."""

    name = "both"

    def __init__(self):
        self.asked = []

    def support(self, claims, passages):
        self.asked += [(c, p) for c in claims for p in passages]
        return np.array([[float(set(c.split()) <= set(p.split())) for p in passages] for c in claims])


class Many(Both):
    def support_many(self, groups):
        self.groups = len(groups)
        return [self.support(*group) for group in groups]


@pytest.mark.parametrize("verifier", [Both(), Many()])
def test_a_pair_is_found(verifier):
    passages = ["mill red", "lake", "old big", "sea"]
    M = np.array([[0.4, 0.1, 0.3, 0.2], [0.9, 0.1, 0.1, 0.1]])
    assert joint_support(["red old", "mill"], passages, M, CheckedVerifier(verifier)) == [(0, (0, 2), 1.0)]
    # three pairs among the best three of the first claim; the second has its passage already
    assert verifier.asked == [
        ("red old", "mill red\n\nold big"),
        ("red old", "mill red\n\nsea"),
        ("red old", "old big\n\nsea"),
    ]


def test_the_best_pair_comes_first_and_unscored_cells_are_left_out():
    class Sizes(Both):
        def support(self, claims, passages):
            return np.array([[0.5 + 0.01 * len(p) if "c" not in p else np.nan for p in passages]])

    M = np.array([[0.1, 0.2, np.nan, 0.3, 0.05]])
    passages = ["a", "bb", "x", "dddd", "c"]
    found = joint_support(["claim"], passages, M, CheckedVerifier(Sizes()))
    assert [pair for _, pair, _ in found] == [(1, 3), (0, 3), (0, 1)]


@pytest.mark.parametrize("row", [[np.nan, np.nan], [0.2, np.nan], [0.5, 0.1]])
def test_nothing_to_try(row):
    verifier = Both()
    assert joint_support(["a b"], ["a", "b"], np.array([row]), CheckedVerifier(verifier)) == []
    assert verifier.asked == []


def test_no_claims():
    assert joint_support([], ["a", "b"], np.zeros((0, 2)), CheckedVerifier(Both())) == []
