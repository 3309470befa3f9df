"""*losses* by simulation: noise alone reports no fix, intervals cover, and as many questions as it says would tell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from core.losses.arms import ARMS, GOLD_ALONE, SENTENCES
from core.losses.findings import leading
from core.losses.fixes import fixes
from core.losses.ladder import READING
from tests.core.losses.losses_runs import made, told

pytestmark = pytest.mark.slow

RUNS = 200
FIXING = [arm.name for arm in ARMS if arm.fix]
# Shares of the questions whose prompt an arm changes, as in the recorded runs.
CHANGES = {
    "gold_added": 0.3,
    "gold_first": 0.4,
    "gold_alone": 1.0,
    "gold_sentences": 1.0,
    "fewer": 1.0,
    "reversed": 1.0,
}


def at_most(p, runs=RUNS):
    """Most events in so many runs where each has at most this probability, but for one case in 10,000."""
    return int(binom.ppf(0.9999, runs, p))


def noisy(rng, n, right, flips, same_sentences=0.0):
    """Outcomes of a run and its arms where nothing but noise moves answers: each call errs on its own."""
    truth = (rng.random(n) < right).astype(float)

    def asked():
        return np.abs(truth - (rng.random(n) < flips))

    base, changed = asked(), {name: rng.random(n) < CHANGES[name] for name in FIXING}
    arms = {name: np.where(changed[name], asked(), base) for name in FIXING}
    # Where a gold passage is one sentence, both prompts are one.
    arms[SENTENCES] = np.where(rng.random(n) < same_sentences, arms[GOLD_ALONE], arms[SENTENCES])
    return base, arms, asked(), changed


@pytest.mark.parametrize(
    ("n", "right", "flips"),
    [
        *((119, 0.35, flips) for flips in (0.0, 0.02, 0.05, 0.1)),
        *((n, right, 0.05) for n, right in ((120, 0.1), (120, 0.6), (20, 0.35), (20, 0.6))),
    ],
)
def test_noise_alone_reports_no_fix(flips, n, right, record_property):
    rng = np.random.default_rng([n, int(100 * right), int(1000 * flips)])
    helps = harms = found = leads = 0
    for run in range(RUNS):
        losses = made(*noisy(rng, n, right, flips, same_sentences=0.5))
        verdicts = {fix.verdict for fix in losses.fixes}
        helps += "helps" in verdicts
        harms += "harms" in verdicts
        assert sum(one.n for one in losses.steps) == n
        leads += losses.n_lost > 0 and READING not in [one.stage for one in leading(losses)]
        if run % 4 == 0:  # through every finding of the run, which takes longer
            found += any(one.name in FIXING for one in told(losses))
    shares = {
        "helps": helps / RUNS,
        "harms": harms / RUNS,
        "findings": 4 * found / RUNS,
        "another stage leads": leads / RUNS,
    }
    record_property("shares", shares)
    assert helps <= 0.05 * RUNS, shares
    assert harms <= 0.05 * RUNS, shares
    assert leads <= 0.05 * RUNS, shares
    assert found <= at_most(0.05, RUNS // 4), shares
    if not flips:
        assert helps == harms == found == leads == 0


@pytest.mark.parametrize("n", [20, 119])
@pytest.mark.parametrize("turned", [0.1, 0.25])
def test_another_prompt_that_turns_answers_like_the_placebo_is_no_fix(n, turned):
    """Every change of the prompt makes some answers correct: what the run says of it, the placebo says too."""
    rng = np.random.default_rng([n, int(100 * turned)])
    helps = alone = 0
    for _ in range(RUNS):
        base = (rng.random(n) < 0.2).astype(float)

        def asked(base=base):
            return np.where((base == 0) & (rng.random(n) < turned), 1.0, base)

        arms, changed = {name: asked() for name in FIXING}, dict.fromkeys(FIXING, np.full(n, True))
        helps += any(one.verdict == "helps" for one in fixes(base, arms, changed, asked()))
        alone += any(one.verdict == "helps" for one in fixes(base, arms, changed))
    assert helps <= 0.05 * RUNS
    # Without the placebo these would be fixes, where the questions are enough to show them.
    assert n == 20 or alone > 0.9 * RUNS


@pytest.mark.parametrize(
    ("n", "fixed", "broken"),
    [(119, 0.2, 0.05), (119, 0.05, 0.05), (60, 0.1, 0.0), (20, 0.2, 0.1), (20, 0.02, 0.02)],
)
def test_the_interval_of_the_net_gain_covers_it(n, fixed, broken):
    rng, runs, inside = np.random.default_rng(n), 2_000, 0
    truth = n * (fixed - broken)
    for _ in range(runs):
        kind = rng.choice(3, n, p=[fixed, broken, 1 - fixed - broken])
        base = np.where(kind == 0, 0.0, 1.0)
        after = np.where(kind == 1, 0.0, 1.0)
        [fix] = fixes(base, {"x": after}, {"x": np.full(n, True)})
        inside += fix.low <= truth <= fix.high
    share = inside / runs
    assert share > 0.93


@pytest.mark.parametrize(("fixed", "broken"), [(10, 5), (6, 3), (5, 0), (12, 4)])
def test_as_many_questions_as_it_says_would_tell_it(fixed, broken):
    """From one run in which it cannot be told: with so many questions like these a test succeeds in about 80 %."""
    n = 60
    before = np.array([0.0] * fixed + [1.0] * broken + [1.0] * (n - fixed - broken))
    after = np.array([1.0] * fixed + [0.0] * broken + [1.0] * (n - fixed - broken))
    [fix] = fixes(before, {"x": after}, {"x": np.full(n, True)})
    assert fix.verdict == "cannot be told" and fix.needed > n
    rng = np.random.default_rng(fixed)

    def power(size):
        told_it = 0
        for _ in range(1_000):
            drawn = rng.integers(0, n, size)
            [again] = fixes(before[drawn], {"x": after[drawn]}, {"x": np.full(size, True)})
            told_it += again.verdict == "helps"
        return told_it / 1_000

    enough, half = power(fix.needed), power(fix.needed // 2)
    # The exact test is a little weaker than the normal approximation behind the number.
    assert 0.65 <= enough <= 0.9
    assert half < enough - 0.15
