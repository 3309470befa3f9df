"""Quality of estimators: equal to the statistics one by one, and honest where labels are few."""

import math

import numpy as np

from core.stats import auprc, aurc, prr, risk_coverage
from core.uncertainty import comparisons, leaderboard, risk_coverage_band, told_apart

RNG = np.random.default_rng(3)
CORRECT = RNG.integers(0, 2, 120).astype(float)
NOISE = RNG.normal(size=120)
SCORES = {
    "good": -CORRECT + 0.5 * RNG.normal(size=120),
    "again": None,
    "random": NOISE,
    "same": NOISE * 2 + 1,
    "constant": np.zeros(120),
    "absent": np.full(120, math.nan),
}
SCORES["again"] = SCORES["good"] + 0.01 * RNG.normal(size=120)


def test_the_best_is_first_and_what_has_no_value_last():
    board = leaderboard(SCORES, CORRECT)
    assert {board[0].name, board[1].name} == {"good", "again"} and board[-1].name == "absent"
    best, constant = board[0], next(one for one in board if one.name == "constant")
    assert best.n == 120 and best.n_wrong == int((CORRECT == 0).sum())
    assert best.auroc[1] < best.auroc[0] < best.auroc[2] and best.p_value < 0.001
    assert (best.auprc, best.prr, best.aurc) == (
        auprc(1 - CORRECT, SCORES[best.name]),
        prr(-SCORES[best.name], CORRECT),
        aurc(-SCORES[best.name], CORRECT),
    )
    assert constant.auroc[0] == 0.5 and constant.auroc[1] < 0.5 < constant.auroc[2]
    assert constant.p_value == 1 and board[-1].n == 0 and math.isnan(board[-1].auroc[0])


def test_three_wrong_answers_do_not_make_an_estimator_perfect():
    """Reproduction: AUROC 1.00 (1.00 to 1.00) from 3 wrong of 60, and pairs told apart by it."""
    correct = (np.arange(60) >= 3).astype(float)
    scores = {"best": -np.arange(60.0), "useless": RNG.random(60)}
    best = leaderboard(scores, correct)[0]
    assert best.auroc[0] == 1 and 0.6 < best.auroc[1] < 0.75
    # The exact test: 2 of the 34,220 ways to choose 3 of 60 are as extreme; two estimators.
    assert best.p_value == 2 * 2 / math.comb(60, 3)
    (pair,) = comparisons(scores, correct)
    assert math.isnan(pair.p_value) and not pair.distinguishable
    assert "with 57 correct and 3 incorrect answers" in told_apart(0, 1, 60, 3)
    assert told_apart(1, 36, 60, 15).startswith("1 of 36 pairs of estimators differs beyond chance")


def test_missing_labels_and_one_class():
    label = CORRECT.copy()
    label[:20] = math.nan
    (found,) = leaderboard({"good": SCORES["good"]}, label)
    assert found.n == 100
    (found,) = leaderboard({"good": SCORES["good"]}, np.ones(120))
    assert found.n_wrong == 0 and found.aurc == 0
    assert all(
        math.isnan(one) for one in (found.auroc[0], found.p_value, found.auprc, found.prr, found.e_aurc)
    )


def test_pairs_are_told_apart_only_where_they_differ():
    found = {frozenset(pair[:2]): pair for pair in comparisons(SCORES, CORRECT)}
    assert len(found) == 15
    assert (
        found[frozenset(("good", "random"))].distinguishable
        and found[frozenset(("good", "random"))].first == "good"
    )
    assert not found[frozenset(("good", "again"))].distinguishable
    alike = found[frozenset(("random", "same"))]
    assert alike.difference == 0 and alike.p_value == 1
    absent = found[frozenset(("good", "absent"))]
    assert absent.n == 0 and math.isnan(absent.p_value) and not absent.distinguishable
    assert all(pair.difference >= 0 or math.isnan(pair.difference) for pair in found.values())


def test_the_band_holds_the_curve():
    coverage, risk, low, high = risk_coverage_band(SCORES["good"], CORRECT)
    expected = risk_coverage(-SCORES["good"], CORRECT)
    assert coverage.tolist() == expected[0].tolist() and risk.tolist() == expected[1].tolist()
    assert (low <= risk).all() and (risk <= high).all() and (high > low).all()
    assert all(part.size == 0 for part in risk_coverage_band([math.nan], [1.0]))


def test_an_estimator_without_values_comes_after_one_that_is_always_wrong():
    opposite = [1.0, 2.0, 3.0, 4.0]
    board = leaderboard({"absent": 4 * [math.nan], "opposite": opposite}, [0, 0, 1, 1])
    assert [one.name for one in board] == ["opposite", "absent"] and board[0].auroc[0] == 0
