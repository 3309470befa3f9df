"""What fixes bring: McNemar's test, its interval and Holm against values of others, gains and harms alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from core.losses.fixes import Fix, fixes, mcnemar

NAN = math.nan


def outcomes(fixed, broken, both_right=0, both_wrong=0):
    """Before and after, so many of each kind."""
    before = [0.0] * fixed + [1.0] * broken + [1.0] * both_right + [0.0] * both_wrong
    after = [1.0] * fixed + [0.0] * broken + [1.0] * both_right + [0.0] * both_wrong
    return np.array(before), np.array(after)


def judged(before, after, changed=None, **more):
    changed = np.full(before.size, True) if changed is None else changed
    return fixes(before, {"x": after}, {"x": changed}, **more)[0]


# statsmodels 0.15: mcnemar([[7, fixed], [broken, 9]], exact=True).pvalue
STATSMODELS = {
    (6, 0): 0.03125, (8, 1): 0.0390625, (10, 2): 0.03857421875, (12, 3): 0.03515625, (5, 0): 0.0625,
    (40, 25): 0.08168153394154003,
}  # fmt: skip


@pytest.mark.parametrize("counts", STATSMODELS)
def test_mcnemar(counts):
    fixed, broken = counts
    before, after = outcomes(fixed, broken, 7, 9)
    expected = STATSMODELS[counts]
    assert mcnemar(before, after) == pytest.approx(expected, rel=1e-12)
    # The same the other way round, and whatever answers stay as they are.
    assert mcnemar(after, before) == pytest.approx(expected, rel=1e-12)
    assert mcnemar(*outcomes(fixed, broken)) == pytest.approx(expected, rel=1e-12)
    fix = judged(before, after)
    assert (fix.p_value, fix.p, fix.p_adjusted) == pytest.approx((expected,) * 3, rel=1e-12)
    assert (fix.n, fix.fixed, fix.broken, fix.net) == (fixed + broken + 16, fixed, broken, fixed - broken)
    assert fix.verdict == ("helps" if expected <= 0.05 else "cannot be told")
    assert judged(after, before).verdict == ("harms" if expected <= 0.05 else "cannot be told")


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_sign_test_of_scipy(fixed, broken):
    before, after = outcomes(fixed, broken, 3, 3)
    expected = binomtest(fixed, fixed + broken).pvalue if fixed + broken else 1.0
    assert mcnemar(before, after) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_leaves_out_what_is_not_known():
    before = np.array([0.0] * 6 + [NAN, 1.0, NAN])
    after = np.array([1.0] * 6 + [1.0, NAN, NAN])
    assert mcnemar(before, after) == 0.03125
    assert math.isnan(mcnemar([NAN, 0.0], [1.0, NAN]))
    assert judged(before, after).n == 6


@pytest.mark.parametrize(("fixed", "broken", "same"), [(6, 0, 14), (0, 6, 14), (8, 1, 91), (0, 0, 30)])
def test_the_interval_is_that_of_bonett_and_price(fixed, broken, same):
    # By hand: one case added to each kind of change; d ± z·sqrt((p + q − d²)/(n + 2)).
    n = fixed + broken + same
    up, down = (fixed + 1) / (n + 2), (broken + 1) / (n + 2)
    half = norm.ppf(0.975) * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    fix = judged(*outcomes(fixed, broken, same))
    assert (fix.low, fix.high) == pytest.approx((n * (up - down - half), n * (up - down + half)), rel=1e-12)
    assert fix.low < fix.net < fix.high


def test_the_interval_of_six_of_twenty_in_numbers():
    # up 7/22, down 1/22, d = 6/22 = 0.27273; sqrt((8/22 − 0.07438)/22) = 0.11467; ± 0.22475; times 20.
    fix = judged(*outcomes(6, 0, 14))
    assert (fix.low, fix.high) == pytest.approx((0.960, 9.950), abs=0.002)


def test_holm_over_all_arms():
    # statsmodels 0.15: multipletests([0.03125, 0.0390625, 0.0625, 0.001953125], method="holm")[1]
    counts = {"a": (6, 0), "b": (8, 1), "c": (5, 0), "d": (10, 0)}
    n = 12
    base, arms = np.zeros(2 * n), {}
    base[n:] = 1.0
    for name, (fixed, broken) in counts.items():
        arms[name] = base.copy()
        arms[name][:fixed] = 1.0
        arms[name][n : n + broken] = 0.0
    arms["never"] = np.full(2 * n, NAN)
    found = fixes(base, arms, {name: np.full(2 * n, True) for name in arms})
    assert [one.arm for one in found] == ["a", "b", "c", "d", "never"]
    # An arm that was never asked is no test: the smallest of four is taken four times.
    assert [one.p_adjusted for one in found[:4]] == pytest.approx([0.09375, 0.09375, 0.09375, 0.0078125])
    assert math.isnan(found[4].p_adjusted) and found[4].verdict == "cannot be told" and found[4].n == 0
    assert [one.verdict for one in found[:4]] == ["cannot be told"] * 3 + ["helps"]


def test_a_fix_must_beat_the_placebo_too():
    before, after = outcomes(12, 1, 10, 10)
    # Another order of the others does nearly as much: of the same questions it turns ten.
    placebo = before.copy()
    placebo[:10] = 1.0
    alone, both = judged(before, after), judged(before, after, placebo=placebo)
    assert alone.verdict == "helps" and both.verdict == "cannot be told"
    # Against the placebo two differ one way and one the other: 2 · (1 + 3) / 8.
    assert both.p_placebo == 1.0 and both.p == 1.0 and both.p_value == alone.p_value
    # A placebo that does nothing is the run once more.
    idle = judged(before, after, placebo=before)
    assert (idle.p_placebo, idle.verdict) == (alone.p_value, "helps")


def test_the_placebo_is_compared_where_the_fix_changes_the_prompt():
    before = np.zeros(20)
    after, changed = before.copy(), np.arange(20) < 8
    after[:8] = 1.0
    placebo = before.copy()
    placebo[8:] = 1.0  # elsewhere it does much, which says nothing of this fix
    fix = judged(before, after, changed, placebo=placebo)
    assert (fix.p_placebo, fix.asked, fix.verdict) == (pytest.approx(2 / 2**8), 8, "helps")


def test_without_a_comparison_to_the_placebo_the_run_alone_decides():
    before, after = outcomes(8, 0, 10)
    fix = judged(before, after, placebo=np.full(18, NAN))
    assert math.isnan(fix.p_placebo) and fix.p == fix.p_value == pytest.approx(2 / 2**8)
    assert fix.p_adjusted == fix.p_value and fix.verdict == "helps"


def test_a_fix_must_beat_what_it_goes_beyond():
    before, more = outcomes(12, 0, 10, 10)
    most = more.copy()
    most[:3] = 0.0
    arms, changed = {"most": most, "more": more}, dict.fromkeys(("most", "more"), np.full(32, True))
    first, second = fixes(before, arms, changed, beyond={"more": "most"})
    # Three of 32 differ, all one way: 2 / 8. Against the run it would be 2 / 4,096.
    assert (second.p_nested, second.p, second.p_value) == (0.25, 0.25, 2 / 2**12)
    assert (second.verdict, first.verdict) == ("cannot be told", "helps") and math.isnan(first.p_nested)
    assert fixes(before, arms, changed)[1].verdict == "helps"
    # Where that arm was not tried there is nothing to beat.
    assert fixes(before, {"more": more}, changed, beyond={"more": "most"})[0].verdict == "helps"


def test_questions_whose_answers_are_not_both_judged_are_not_counted_as_asked():
    before, after = np.array([0.0, NAN, 1.0, 0.0]), np.array([1.0, 1.0, NAN, 0.0])
    fix = judged(before, after, np.array([True, True, True, False]))
    assert (fix.n, fix.asked, fix.fixed) == (2, 1, 1)


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, NAN])] * 4), max_size=40))
def test_gains_and_harms_are_mirror_images(rows):
    columns = np.array(rows, dtype=float).reshape(-1, 4).T
    base, a, b, placebo = columns
    changed = {"a": np.full(base.size, True), "b": np.arange(base.size) % 2 == 0}
    more = {"tokens": {"a": 0.5}, "beyond": {"b": "a"}}
    there = fixes(base, {"a": a, "b": b}, changed, placebo, **more)
    back = fixes(1 - base, {"a": 1 - a, "b": 1 - b}, changed, 1 - placebo, **more)
    mirrored = {"helps": "harms", "harms": "helps", "cannot be told": "cannot be told"}
    for one, other in zip(there, back, strict=True):
        assert (one.n, one.asked, one.fixed, one.broken) == (other.n, other.asked, other.broken, other.fixed)
        assert other.verdict == mirrored[one.verdict] and one.needed == other.needed
        np.testing.assert_allclose([one.low, one.high, one.p], [-other.high, -other.low, other.p])
        assert math.isnan(one.p_adjusted) or one.p <= one.p_adjusted <= 1
    assert [one.tokens for one in there] == [0.5, None]


@pytest.mark.parametrize(
    ("fixed", "broken", "same", "needed"),
    [
        # mean 0.09, sd 0.3210 of 100: (2.8016 · 0.3210 / 0.09)² = 99.8, and more than the 100 that do not tell it.
        (10, 1, 89, None),
        # mean 0.05, sd 0.2190 (n − 1): (2.8016 · 0.2190 / 0.05)² = 150.6
        (5, 0, 95, 160),
        # mean 0.02, sd 0.3759: (2.8016 · 0.3759 / 0.02)² = 2,773
        (8, 6, 86, 2_800),
        (0, 0, 20, 0),  # too few to say even that
        (0, 0, 60, None),  # surely nil
    ],
)
def test_how_many_questions_would_tell_it(fixed, broken, same, needed):
    fix = judged(*outcomes(fixed, broken, same))
    assert fix.needed == needed
    assert fix.verdict == ("helps" if fixed == 10 else "cannot be told")


def test_a_fix_has_no_verdict_without_a_test():
    fix = Fix("x", 0, 0, 0, 0, NAN, NAN, NAN, NAN, NAN, NAN, 0, None)
    assert (fix.verdict, fix.net) == ("cannot be told", 0) and math.isnan(fix.p)


@pytest.mark.parametrize(("p", "verdict"), [(0.05, "helps"), (0.0500001, "cannot be told")])
def test_the_border_of_five_per_cent(p, verdict):
    assert Fix("x", 9, 9, 5, 1, 0, 0, p, NAN, NAN, p, None, None).verdict == verdict


def test_a_placebo_that_does_better_is_not_beaten():
    base = np.zeros(20)
    arm = np.array([1.0] * 8 + [0.0] * 12)
    placebo = np.ones(20)  # 12 more than the arm: it differs clearly, the other way
    (fix,) = fixes(base, {"a": arm}, {"a": np.ones(20, dtype=bool)}, placebo)
    assert (fix.p_value, fix.p_placebo, fix.verdict) == (2 / 2**8, 1.0, "cannot be told")
    (worse,) = fixes(base, {"a": arm}, {"a": np.ones(20, dtype=bool)}, np.zeros(20))
    assert (worse.p_placebo, worse.verdict) == (2 / 2**8, "helps")


def test_what_goes_beyond_another_arm_must_differ_from_it():
    base, alone = np.zeros(40), np.array([1.0] * 20 + [0.0] * 20)
    more = np.array([1.0] * 21 + [0.0] * 19)  # one answer more: 1 of 0 to 1 pairs differs
    changed = dict.fromkeys(("alone", "more"), np.ones(40, dtype=bool))
    first, second = fixes(base, {"alone": alone, "more": more}, changed, beyond={"more": "alone"})
    assert (first.verdict, second.verdict) == ("helps", "cannot be told")
    # Of one pair in 40: mean 1/40, sd 0.158, so (2.8 * 0.158 * 40)**2 = 314, in two figures.
    assert (second.p_value, second.p_nested, second.needed) == (2 / 2**21, 1.0, 320)
