"""Conformal risk control, back-off on claims and prediction sets, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.conformal import calibrate_sets, control_risk, factuality_backoff, rarity
from core.errors import InputError
from core.stats import wilson_interval

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("wrong", "n", "alpha", "expected"),
    [
        (1, 19, 0.1, True),  # (1 + 1) / 20 is just 0.1
        (2, 19, 0.1, False),
        (0, 9, 0.1, True),
        (0, 8, 0.1, False),  # 1 / 9
        (6, 9, 0.7, True),  # 7 / 10; in floats 0.7 is less
    ],
)
def test_the_loss_is_controlled_with_one_more_case_of_full_loss(wrong, n, alpha, expected):
    found = control_risk([[1]] * wrong + [[0]] * (n - wrong), [0.5], alpha)
    assert (found.setting == 0.5) == expected and found.n == n
    assert found.risk == pytest.approx(wrong / n)
    assert found.setting is None or not math.isnan(found.setting)


def test_the_mildest_setting_that_controls_it():
    losses = [[3, 2, 0]] * 2 + [[1, 1, 1]] * 2
    # Sums 8, 6, 2, and 3 for the new case: 11/5, 9/5, 5/5.
    for alpha, bound, setting, risk in [(0.99, 3, None, 0.5), (0.9, 2.5, 30.0, 0.5)]:
        if bound < 3:
            losses = [[2.5, 2, 0]] * 2 + [[1, 1, 1]] * 2
        found = control_risk(losses, [10, 20, 30], alpha, bound)
        assert (found.setting, found.risk) == (setting, risk)
    found = control_risk([[0.3, 0.2, 0.1]] * 9, [1, 2, 3], 0.29)
    assert found.setting == 2 and found.risk == pytest.approx(0.2)  # (9 · 0.2 + 1) / 10 = 0.28


def test_sums_of_decimals_do_not_slip():
    # (0.1 + 1) / 11 is 0.1 exactly.
    assert control_risk([[0.1]] + [[0.0]] * 9, [1.0], 0.1).setting == 1.0


@pytest.mark.parametrize(
    ("alpha", "bound", "n"), [(0.1, 1, 9), (0.05, 1, 19), (0.3, 1, 3), (0.1, 2, 19), (0.7, 0.1, 0)]
)
def test_cases_needed_even_without_any_loss(alpha, bound, n):
    for more, setting in ((0, 1.0), (1, 1.0)):
        assert control_risk(np.zeros((n + more, 1)), [1.0], alpha, bound).setting == setting
    if n:
        assert control_risk(np.zeros((n - 1, 1)), [1.0], alpha, bound).setting is None
    assert control_risk(np.zeros((1, 1)), [1.0], alpha, bound).labels_needed == n


def test_risk_without_cases_is_undefined():
    found = control_risk(np.zeros((0, 2)), [1, 2], 0.5)
    assert found.setting is None and math.isnan(found.risk) and found.n == 0


def test_back_off_by_hand():
    # The highest score of a wrong claim: 0.2, −inf (none wrong), 0.6 (not the wrong one without a score), −inf (no claim).
    scores = [[0.9, 0.2, 0.1], [0.3], [0.7, 0.6, NAN], []]
    correct = [[1, 0, 0], [1], [1, 0, 0], []]
    assert factuality_backoff(scores, correct, 0.2).threshold == 0.6  # the 4th of 4
    assert factuality_backoff(scores, correct, 0.4).threshold == 0.2
    assert factuality_backoff(scores, correct, 0.6).threshold == -INF
    rule = factuality_backoff(scores, correct, 0.2)
    assert (rule.n, rule.n_left_out, rule.reason) == (4, 0, "")
    # Above the threshold, not at it.
    assert rule.kept([0.61, 0.6, 0.59, NAN]).tolist() == [True, False, False, False]
    assert factuality_backoff(scores, correct, 0.6).kept([-5.0, NAN]).tolist() == [True, False]


def test_too_few_answers_keep_nothing():
    rule = factuality_backoff([[0.9]], [[1]], 0.1)
    assert rule.threshold == INF and not rule.kept([0.9, 1e9]).any()
    assert rule.reason == "1 label cannot certify α = 0.1; you need at least 9."


def test_an_answer_with_an_unknown_claim_is_left_out():
    rule = factuality_backoff([[0.9, 0.8], [0.5], [0.4]], [[0, NAN], [0], [1]], 0.4)
    assert (rule.n, rule.n_left_out, rule.threshold) == (2, 1, 0.5)


CLAIMS = st.lists(
    st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.booleans()), max_size=5), max_size=15
)


@given(CLAIMS, st.integers(1, 99))
def test_enough_of_the_calibration_answers_keep_correct_claims_only(answers, percent):
    scores, correct = ([[claim[i] for claim in one] for one in answers] for i in (0, 1))
    rule = factuality_backoff(scores, correct, percent / 100)
    clean = [
        all(right for right, kept in zip(label, rule.kept(score), strict=True) if kept)
        for score, label in zip(scores, correct, strict=True)
    ]
    # At least the ⌈(n+1)(1−α)⌉ lowest ones, or all.
    assert sum(clean) >= min(len(answers), (len(answers) + 1) * (100 - percent) / 100)


def test_sets_by_hand():
    # Scores of the most plausible correct group: 0.25, 0.6, none, 0.1 (of two correct ones).
    scores = [[0.25, 0.75], [0.4, 0.6], [0.0], [0.5, 0.1]]
    correct = [[1, 0], [0, 1], [0], [1, 1]]
    rule = calibrate_sets(scores, correct, 0.4)
    assert (rule.threshold, rule.n, rule.n_without_correct, rule.reason) == (0.6, 4, 1, "")
    assert rule.share_without_correct == 0.25 and (rule.low, rule.high) == wilson_interval(0.25, 4)
    assert rule.holds([0.6, 0.61, 0.0, NAN]).tolist() == [True, False, True, True]
    assert calibrate_sets(scores, correct, 0.6).threshold == 0.25


def test_too_many_questions_without_a_correct_sample():
    scores, correct = [[0.2]] * 8 + [[0.3, 0.1], []], [[1]] * 8 + [[0, 0], []]
    rule = calibrate_sets(scores, correct, 0.1)
    assert rule.threshold == INF and rule.n_without_correct == 2
    assert rule.holds([0.9, 1e9, NAN]).all()
    assert rule.reason == (
        "In 2 of 10 questions no sample was correct, more than α = 0.1 allows: "
        "each set holds every answer sampled, and may still miss."
    )
    assert (
        calibrate_sets(scores, correct, 0.05).reason
        == "10 labels cannot certify α = 0.05; you need at least 19."
    )


def test_sets_without_questions():
    rule = calibrate_sets([], [], 0.1)
    assert rule.threshold == INF and rule.n == 0 and math.isnan(rule.share_without_correct)
    assert math.isnan(rule.low) and rule.reason == "0 labels cannot certify α = 0.1; you need at least 9."


def test_rarity():
    assert rarity([2, 5, 1]).tolist() == [0.75, 0.375, 0.875]
    assert rarity([0, 4]).tolist() == [1, 0]
    assert rarity([]).size == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: control_risk([[1]], [], 0.1), "grid must hold at least one setting, in rising order"),
        (lambda: control_risk([[1, 0]], [2, 2], 0.1), "grid must hold at least one setting, in rising order"),
        (lambda: control_risk([[1, 0]], [1, 2, 3], 0.1), r"losses must have 3 columns, got the shape \(1, 2\)"),
        (lambda: control_risk([[1, 0, 0]], [1, 2], 0.1), r"losses must have 2 columns, got the shape \(1, 3\)"),
        (lambda: control_risk([[1], [1.5]], [1], 0.1), "losses must be finite and at most the bound, 1.0"),
        (lambda: control_risk([[NAN]], [1], 0.1), "losses must be finite and at most the bound, 1.0"),
        (lambda: control_risk([[1, 0], [0, 1]], [1, 2], 0.1), "losses must not rise from one setting to the next; row 1"),
        (lambda: control_risk([[1], [1, 2]], [1], 0.1), "losses must be numbers"),
        (lambda: control_risk([[1]], [1], 0.1, 0), "bound must be above 0, got 0"),
        (lambda: control_risk([[1]], [1], 0.1, INF), "bound must be above 0, got inf"),
        (lambda: control_risk([[1]], [1], 2), "alpha must lie between 0 and 1"),
        (lambda: factuality_backoff([[1]], [], 0.1), "claim_scores and claim_correct must be of equal length, got 1 and 0"),
        (lambda: factuality_backoff([[1], [1]], [[1], []], 0.1), r"claim_scores\[1\] and claim_correct\[1\] must be of equal"),
        (lambda: factuality_backoff([[1]], [[3]], 0.1), "claim_correct must be 1"),
        (lambda: factuality_backoff([["x"]], [[1]], 0.1), r"claim_scores\[0\] must be numbers"),
        (lambda: calibrate_sets([[1], [1, NAN]], [[1], [1, 0]], 0.1), r"scores\[1\] must be finite and correct\[1\] known"),
        (lambda: calibrate_sets([[1, 2]], [[1, NAN]], 0.1), r"scores\[0\] must be finite and correct\[0\] known"),
        (lambda: calibrate_sets([], [], 1), "alpha must lie between 0 and 1"),
        (lambda: rarity([1, -1]), "sizes must be at least 0, and not all 0"),
        (lambda: rarity([0, 0]), "sizes must be at least 0, and not all 0"),
        (lambda: rarity([NAN, 1]), "sizes must be at least 0, and not all 0"),
    ],
)  # fmt: skip
def test_messages_name_what_is_wrong(call, message):
    with pytest.raises(InputError, match=message):
        call()
