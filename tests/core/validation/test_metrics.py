"""Counters counted by hand, windows with their edges, and the comparison of validators on and off."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import pytest
from scipy.stats import binomtest

from core.validation import Code, FallbackHandler, Observation, metrics, observe, validate, windowed
from core.validation.metrics import flags_of

NOW = datetime(2026, 11, 23, 12, 0)
SOURCES = ["Ada Unwin designed the bridge.", "It is old."]
ANSWERS = [
    ("Brunel definitely built it.", []),  # stopped: overconfident and without a citation
    ("", []),  # stopped: empty
    ("I don't know.", []),  # passes, uncertain
    ("Perhaps Ada Unwin [1].", SOURCES),  # passes, uncertain, overlap 2/3: perhaps, Ada, Unwin
    ("Ada Unwin designed it [1].", SOURCES),  # passes, overlap 1
    ("Ada Unwin designed it.", SOURCES),  # no citation: a warning, shown
    ("Perhaps coffee [1].", SOURCES),  # low overlap, hedged: a warning, shown; overlap 0
]


def observed(answer, passages, at=NOW):
    served = FallbackHandler().serve(answer, validate("Who designed it?", answer, passages))
    return observe(served.outcome, at, served.used_fallback)


def test_the_counters_count_what_they_say():
    found = metrics(observed(*case) for case in ANSWERS)
    assert (found.passed.count, found.passed.n) == (3, 7)
    assert found.fallback.count == 2
    # Once each, although the first has two reasons and a fallback.
    assert found.prevented.count == 2 and found.prevented.rate == 2 / 7
    # Answers that said so, not those that failed for lack of it.
    assert found.uncertain.count == 3
    scores = [0.1, 0.1, 0.3, 0.9, 0.9, 0.6, 0.65]
    assert found.confidence.mean == pytest.approx(sum(scores) / 7) and found.confidence.n == 7
    # The nought belongs to the mean: 2/3, 1, 1, 0.
    assert found.overlap.n == 4 and found.overlap.mean == pytest.approx((2 / 3 + 2) / 4)
    assert found.overlap.low < found.overlap.mean < found.overlap.high
    assert found.reasons == {
        Code.MISSING_CITATION: 2,
        Code.OVERCONFIDENT: 1,
        Code.EMPTY_ANSWER: 1,
        Code.LOW_OVERLAP: 1,
    }


def test_a_share_has_wilsons_interval():
    found = metrics(observed(*case) for case in ANSWERS).prevented
    oracle = binomtest(2, 7).proportion_ci(method="wilson")
    assert found.interval == pytest.approx((oracle.low, oracle.high))


def test_a_critical_answer_that_was_shown_is_not_prevented():
    one = observe(validate("Who?", "Definitely Brunel.", []), NOW, used_fallback=False)
    assert (one.critical, metrics([one]).prevented.count) == (True, 0)


def test_a_fallback_for_another_reason_prevents_nothing():
    one = Observation(NOW, True, False, 0.9, None, True, False, ())
    assert (metrics([one]).fallback.count, metrics([one]).prevented.count) == (1, 0)


def test_without_answers_nothing_is_known():
    found = metrics([])
    assert math.isnan(found.passed.rate) and math.isnan(found.confidence.mean)
    assert all(math.isnan(end) for end in found.prevented.interval)


def test_validators_that_are_off_leave_no_trace(monkeypatch):
    monkeypatch.setenv("ENABLE_VALIDATORS", "no")
    assert observed("Definitely Brunel.", []) is None


def test_windows_count_all_answers_of_their_days():
    second = timedelta(seconds=1)
    ages = [
        timedelta(0), timedelta(days=1) - second, timedelta(days=1), timedelta(days=7) - second,
        timedelta(days=7), timedelta(days=30) - second, timedelta(days=30), -second,
    ]  # fmt: skip
    seen = [observed("I don't know.", [], NOW - age) for age in ages]
    assert {days: found.passed.n for days, found in windowed(seen, NOW).items()} == {1: 2, 7: 4, 30: 6}
    many = [observed("I don't know.", [], NOW)] * 250  # not the last hundred alone
    assert windowed(many, NOW)[1].passed.n == 250


def test_validators_on_against_off_by_hand():
    # 10 hallucinated, 6 of them stopped; 10 others, one of them stopped.
    label = [True] * 10 + [False] * 10
    stopped = [True] * 6 + [False] * 4 + [True] + [False] * 9
    found = flags_of(stopped, label)
    assert (found.off.count, found.on.count, found.off.n, found.n) == (10, 4, 20, 20)
    assert (found.wrong.count, found.wrong.n) == (6, 10)
    assert (found.right.count, found.right.n) == (1, 10)
    # Bonett & Price: (0 + 1) / 22 and (6 + 1) / 22.
    centre, half = -6 / 22, 1.959964 * math.sqrt((8 / 22 - (6 / 22) ** 2) / 22)
    assert found.change == pytest.approx((centre - half, centre + half), abs=1e-6)


def test_without_hallucinations_nothing_can_be_reduced():
    found = flags_of([True, False], [False, False])
    assert math.isnan(found.wrong.rate) and found.right.count == 1
