"""Back-off on claims and prediction sets, by hand: which score of each answer or question the threshold is of."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.conformal import Backoff, SetRule, calibrate_sets, conformal_threshold, factuality_backoff, rarity
from core.errors import InputError
from core.stats import wilson_interval

NAN, INF = math.nan, math.inf


def test_back_off_by_hand():
    # The highest score of a wrong claim: 0.2, −inf (none wrong), 0.6 (not the wrong one without a score), −inf (no claim).
    scores = [[0.9, 0.2, 0.1], [0.3], [0.7, 0.6, NAN], []]
    correct = [[1, 0, 0], [1], [1, 0, 0], []]
    for alpha in (0.2, 0.4, 0.6):
        rule = factuality_backoff(scores, correct, alpha)
        assert rule.threshold == conformal_threshold([0.2, -INF, 0.6, -INF], alpha)
        assert (rule.n, rule.reason) == (4, "")
    # Above the threshold, not at it.
    assert Backoff(0.6, 4, "").kept([0.61, 0.6, 0.59, NAN]).tolist() == [True, False, False, False]
    assert Backoff(-INF, 4, "").kept([-5.0, NAN]).tolist() == [True, False]


def test_too_few_answers_keep_nothing():
    rule = factuality_backoff([[0.9]], [[1]], 0.1)
    assert rule.threshold == INF and not rule.kept([0.9, 1e9]).any()
    assert rule.reason == "1 label cannot certify α = 0.1; you need at least 9."


def test_an_answer_with_an_unknown_claim_is_left_out():
    rule = factuality_backoff([[0.9, 0.8], [0.5], [0.4]], [[0, NAN], [0], [1]], 0.4)
    assert (rule.n, rule.threshold) == (2, conformal_threshold([0.5, -INF], 0.4))


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
    rule = calibrate_sets(scores, correct, 0.6)
    assert rule.threshold == conformal_threshold([0.25, 0.6, INF, 0.1], 0.6)
    assert (rule.n, rule.n_without_correct, rule.reason) == (4, 1, "")
    assert rule.share_without_correct == 0.25 and (rule.low, rule.high) == wilson_interval(0.25, 4)
    held = SetRule(0.6, 4, 1, 0.25, 0.0, 1.0, "").holds([0.6, 0.61, 0.0, NAN])
    assert held.tolist() == [True, False, True, True]


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
