"""The martingale by hand, its invariants, and the p-values it is fed with."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.conformal import drift_martingale, online_p_values, p_values
from core.errors import InputError

NAN = math.nan


def test_the_first_bets_by_hand():
    # p = 0 pays 1.5, 1 and 0.5 on capitals of a third each: 1 in all. Then 99 % of 1/2, 1/3 and 1/6 stay and 1 % is
    # spread evenly: 0.498333, 0.333333, 0.168333, which p = 0 turns into 1.165, and p = 1 into 0.835.
    assert drift_martingale([0.0]).log_martingale == pytest.approx([0], abs=1e-12)
    assert drift_martingale([0.0, 0.0]).log_martingale == pytest.approx([0, math.log(1.165)], abs=1e-12)
    assert drift_martingale([0.0, 1.0]).log_martingale == pytest.approx([0, math.log(0.835)], abs=1e-12)


@given(st.lists(st.floats(0, 1), max_size=40))
def test_it_is_a_fair_bet_and_takes_no_side(p):
    start = drift_martingale(p).log_martingale
    last = math.exp(start[-1]) if p else 1.0
    # Linear in the next p-value, so the mean over a uniform one is the value at ½, which is what there was.
    assert math.exp(drift_martingale([*p, 0.5]).log_martingale[-1]) == pytest.approx(last)
    ends = [math.exp(drift_martingale([*p, end]).log_martingale[-1]) for end in (0.0, 1.0)]
    assert np.mean(ends) == pytest.approx(last)
    mirrored = drift_martingale([1 - one for one in p]).log_martingale
    assert mirrored == pytest.approx(start, abs=1e-9)


def test_the_alarm_is_at_the_first_value_of_one_over_level():
    found = drift_martingale(np.full(60, 0.02), level=0.01)
    assert found.log_martingale[found.alarm] >= math.log(100) > found.log_martingale[found.alarm - 1]
    assert found.level == 0.01 and found.n == 60
    assert drift_martingale(np.full(60, 0.98), level=0.01).alarm == found.alarm
    assert drift_martingale(np.full(60, 0.02), level=0.001).alarm > found.alarm
    assert drift_martingale(np.full(60, 0.5)).alarm is None
    # It stays an alarm, though what comes later looks as it should.
    assert drift_martingale([*np.full(60, 0.02), *np.full(900, 0.5), 0.99], level=0.01).alarm == found.alarm


def test_capital_of_exactly_one_over_level_is_enough():
    path = drift_martingale(np.zeros(20)).log_martingale
    # From e⁴ on the logarithm of the exponential is the same float again.
    for place in np.flatnonzero(path > 4):
        assert drift_martingale(np.zeros(20), level=math.exp(-path[place])).alarm == place


def test_a_long_stream_overflows_nothing():
    path = drift_martingale(np.zeros(5_000)).log_martingale
    assert np.isfinite(path).all() and path[-1] > 1_800  # e^709 is the largest float
    assert np.diff(path)[-1] == pytest.approx(math.log(1.49), abs=0.01)


def test_missing_p_values_are_passed_over():
    found = drift_martingale([NAN, 0.0, NAN, 0.0])
    assert found.log_martingale == pytest.approx([0, 0, 0, math.log(1.165)], abs=1e-12)
    assert (
        found.n == 2 and drift_martingale([]).log_martingale.size == 0 and drift_martingale([]).alarm is None
    )


def test_online_p_values_compare_with_all_before():
    found = online_p_values([1, 2, NAN, 3], [4, NAN, 2.5, 2.5], seed=0)
    assert 0 < found[0] <= 1 / 4  # none of 3 is above
    assert math.isnan(found[1])
    assert 2 / 5 < found[2] <= 3 / 5  # 3 and 4 of four
    assert 2 / 6 < found[3] <= 4 / 6  # 3 and 4, and one equal
    assert online_p_values([], [7.0], seed=0)[0] > 0
    assert (online_p_values([1, 2], [1, 1], seed=4) == online_p_values([1, 2], [1, 1], seed=4)).all()


def test_the_first_online_p_value_is_that_of_the_calibration_set():
    calibration = [0.1, 0.2, 0.2, 0.4]
    for seed in range(20):
        assert online_p_values(calibration, [0.2], seed) == pytest.approx(
            p_values(calibration, [0.2], seed=seed)
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: drift_martingale([0.5, 1.1]), "p_values must lie from 0 to 1"),
        (lambda: drift_martingale([-0.1]), "p_values must lie from 0 to 1"),
        (lambda: drift_martingale([0.5], level=0), "level must lie between 0 and 1"),
        (lambda: drift_martingale([[0.5]]), "p_values must have one dimension"),
        (lambda: online_p_values([1], ["x"], 0), "new must be numbers"),
    ],
)
def test_messages_name_what_is_wrong(call, message):
    with pytest.raises(InputError, match=message):
        call()
