"""Quality of estimators: equal to the statistics one by one, and honest where labels are few."""

import math

import numpy as np

from core.stats import RANKING_MEASURES, risk_coverage
from core.uncertainty import comparisons, leaderboard, risk_coverage_band

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
    board = leaderboard(SCORES, CORRECT, n_resamples=200)
    assert {board[0].name, board[1].name} == {"good", "again"} and board[-1].name == "absent"
    best, constant = board[0], next(one for one in board if one.name == "constant")
    assert best.n == 120 and best.n_wrong == int((CORRECT == 0).sum())
    assert all(best[i][1] <= best[i][0] <= best[i][2] for i in range(3, 8))
    assert constant.auroc == (0.5, 0.5, 0.5) and board[-1].n == 0 and math.isnan(board[-1].auroc[0])
    assert leaderboard(SCORES, CORRECT, n_resamples=200)[:-1] == board[:-1]  # same seed, same intervals


def test_missing_labels_and_one_class():
    label = CORRECT.copy()
    label[:20] = math.nan
    (found,) = leaderboard({"good": SCORES["good"]}, label, n_resamples=50)
    assert found.n == 100
    (found,) = leaderboard({"good": SCORES["good"]}, np.ones(120), n_resamples=50)
    assert found.n_wrong == 0 and found.aurc[0] == 0
    assert all(math.isnan(getattr(found, name)[0]) for name in RANKING_MEASURES if name != "aurc")


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
    coverage, risk, low, high = risk_coverage_band(SCORES["good"], CORRECT, n_resamples=300)
    expected = risk_coverage(-SCORES["good"], CORRECT)
    assert coverage.tolist() == expected[0].tolist() and risk.tolist() == expected[1].tolist()
    assert (low <= high).all() and ((low <= risk) & (risk <= high)).mean() > 0.95
    assert all(part.size == 0 for part in risk_coverage_band([math.nan], [1.0]))
    assert math.isnan(risk_coverage_band([0.5], [1.0])[2][0])
