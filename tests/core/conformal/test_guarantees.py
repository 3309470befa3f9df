"""What each function promises, over 2,000 calibration sets: coverage in its exact band, errors in at most their share."""

import itertools

import numpy as np
import pytest
from scipy.stats import beta, binom

from core.conformal import (
    calibrate_sets,
    certify_threshold,
    conformal_threshold,
    coverage_band,
    drift_martingale,
    factuality_backoff,
    group_thresholds,
    online_p_values,
    p_values,
)

pytestmark = pytest.mark.slow
RUNS = 2_000
# Too few for any level, just enough for 0.05, and many.
SIZES = [5, 19, 500]
ALPHAS = [0.05, 0.1, 0.2]
RANK = {(n, a): -(-(n + 1) * (100 - round(100 * a)) // 100) for n in SIZES for a in ALPHAS}
EVERY = pytest.mark.parametrize(("n", "alpha"), [(n, alpha) for n in SIZES for alpha in ALPHAS])


def expected(count, p, runs=RUNS):
    """Whether a number of runs is what this probability gives, but for one case in 10,000."""
    low, high = binom.ppf([0.00005, 0.99995], runs, p)
    return low <= count <= high


def at_least(count, p, runs=RUNS):
    return count >= binom.ppf(0.0001, runs, p)


def at_most(count, p, runs=RUNS):
    return count <= binom.ppf(0.9999, runs, p)


def in_the_band(coverage, n, alpha):
    """Whether realised coverages are distributed as the exact band says: 95 % in it, and with the exact mean."""
    low, high = coverage_band(n, alpha)
    k = RANK[n, alpha]
    if k > n:
        return (low, high) == (1, 1) and (coverage == 1).all()
    inside = np.count_nonzero((low <= coverage) & (coverage <= high))
    error = beta.std(k, n + 1 - k) / np.sqrt(coverage.size)
    return expected(inside, 0.95, coverage.size) and abs(coverage.mean() - k / (n + 1)) < 4 * error


@EVERY
def test_split(n, alpha):
    rng = np.random.default_rng(n)
    # The coverage of a threshold among uniform scores is the threshold itself.
    thresholds = np.array([conformal_threshold(scores, alpha) for scores in rng.random((RUNS, n))])
    coverage = np.minimum(thresholds, 1)
    assert in_the_band(coverage, n, alpha)
    low, high = coverage_band(n, alpha, n_test=30)
    share = rng.binomial(30, coverage) / 30
    assert at_least(np.count_nonzero((low <= share) & (share <= high)), 0.95)


@EVERY
def test_p_values_are_never_too_small_and_uniform_if_randomised(n, alpha):
    rng = np.random.default_rng(n)
    # Ten values only, so that most are tied.
    scores, new = rng.integers(10, size=(RUNS, n)), rng.integers(10, size=RUNS)
    plain = np.array([p_values(s, [x])[0] for s, x in zip(scores, new, strict=True)])
    drawn = np.array([p_values(s, [x], seed=i)[0] for i, (s, x) in enumerate(zip(scores, new, strict=True))])
    assert at_most(np.count_nonzero(plain <= alpha), alpha)
    assert expected(np.count_nonzero(drawn <= alpha), alpha)
    assert expected(np.count_nonzero(drawn <= 0.5), 0.5)


def shifted(n, alpha, rng):
    """New questions are easier or harder: density 1 in calibration, 2x among the new; the score grows with x."""
    x = rng.random((RUNS, n))
    new_x = np.sqrt(rng.random(RUNS))
    return x, x * rng.random((RUNS, n)), new_x, new_x * rng.random(RUNS)


@EVERY
def test_weighted_under_a_known_shift(n, alpha):
    x, scores, new_x, new = shifted(n, alpha, np.random.default_rng(n))
    thresholds = [conformal_threshold(scores[i], alpha, 2 * x[i], 2 * new_x[i]) for i in range(RUNS)]
    assert at_least(np.count_nonzero(new <= thresholds), 1 - alpha)
    if n == 500:
        # The weight of one case is at most 2 of about 500, so no more than that is given away.
        assert at_most(np.count_nonzero(new <= thresholds), 1 - alpha + 3 / n)
        unweighted = [conformal_threshold(scores[i], alpha) for i in range(RUNS)]
        assert not at_least(np.count_nonzero(new <= unweighted), 1 - alpha)


@EVERY
def test_mondrian(n, alpha):
    rng = np.random.default_rng(n)
    groups = ["easy", "hard"] * n
    easy, hard = rng.random((RUNS, n)), rng.random((RUNS, n))
    mixed = np.stack([easy, 1 + 5 * hard], axis=2).reshape(RUNS, -1)
    found = [group_thresholds(scores, groups, alpha) for scores in mixed]
    for name, low, width in (("easy", 0, 1), ("hard", 1, 5)):
        thresholds = np.array([one[name].threshold for one in found])
        assert in_the_band(np.minimum((thresholds - low) / width, 1), n, alpha)
    if n == 500:
        # One threshold for all would cover the easy ones always, at the cost of the hard ones.
        pooled = np.array([conformal_threshold(scores, alpha) for scores in mixed])
        assert ((pooled - 1) / 5).mean() < 1 - 1.5 * alpha


def sampled_questions(runs, n, never, rng):
    """Shares of four groups of samples, and whether each is correct: by its share, and none for some questions."""
    shares = rng.dirichlet(np.ones(4), (runs, n))
    correct = np.zeros(shares.shape)
    drawn = (shares.cumsum(axis=2) < rng.random((runs, n, 1))).sum(axis=2)
    np.put_along_axis(correct, drawn[:, :, None], 1.0, axis=2)
    correct[rng.random((runs, n)) < never] = 0
    return 1 - shares, correct


@EVERY
def test_sets_of_samples(n, alpha):
    scores, correct = sampled_questions(RUNS, n + 1, 0.03, np.random.default_rng(n))
    covered, promised = np.zeros(RUNS, bool), np.zeros(RUNS, bool)
    for i in range(RUNS):
        rule = calibrate_sets(scores[i, :n], correct[i, :n], alpha)
        promised[i] = rule.reason == ""
        assert promised[i] == (rule.threshold < np.inf)
        covered[i] = (rule.holds(scores[i, n]) & (correct[i, n] == 1)).any()
    k = RANK[n, alpha]
    if k > n:
        assert not promised.any()
        return
    # A question without a correct sample is missed even by the set of everything, which then promised nothing.
    assert at_least(np.count_nonzero(covered | ~promised), 1 - alpha)
    if promised.all():
        assert expected(covered.sum(), k / (n + 1))


def test_sets_promise_nothing_where_too_many_questions_have_no_correct_sample():
    scores, correct = sampled_questions(RUNS, 201, 0.2, np.random.default_rng(3))
    rules = [calibrate_sets(scores[i, :200], correct[i, :200], 0.1) for i in range(RUNS)]
    assert sum("no sample was correct" in rule.reason for rule in rules) > 0.99 * RUNS
    assert at_least(sum(rule.low <= 0.2 <= rule.high for rule in rules), 0.94)
    covered = [(rules[i].holds(scores[i, 200]) & (correct[i, 200] == 1)).any() for i in range(RUNS)]
    assert expected(np.count_nonzero(covered), 0.8)


@EVERY
def test_kept_claims_are_all_correct(n, alpha):
    rng = np.random.default_rng(n)
    scores = rng.random((RUNS, n + 1, 5))
    # Hard and easy answers, so that the claims of one are not independent.
    correct = (rng.random(scores.shape) < scores ** rng.uniform(0.1, 2, (RUNS, n + 1, 1))).astype(float)
    clean = 0
    for i in range(RUNS):
        rule = factuality_backoff(scores[i, :n], correct[i, :n], alpha)
        clean += bool((correct[i, n][rule.kept(scores[i, n])] == 1).all())
    k = RANK[n, alpha]
    # Keeping nothing is always right; else exactly the share that the rank stands for.
    assert clean == RUNS if k > n else expected(clean, k / (n + 1))


def uniform_steps(edges, wrong):
    """A uniform confidence, whose share of wrong answers is constant between edges."""

    def draw(rng, n):
        confidence = rng.random(n)
        at = np.asarray(wrong)[np.searchsorted(edges, confidence, side="right")]
        return confidence, (rng.random(n) >= at).astype(float)

    def risk(threshold):
        ends = np.clip(np.r_[0, edges, 1], threshold, 1)
        return np.diff(ends) @ np.asarray(wrong) / (1 - threshold)

    return draw, risk


def ties(values, mass, wrong):
    def draw(rng, n):
        at = rng.choice(len(values), size=n, p=mass)
        return np.asarray(values)[at], (rng.random(n) >= np.asarray(wrong)[at]).astype(float)

    def risk(threshold):
        above = np.asarray(mass) * (np.asarray(values) >= threshold)
        return above @ np.asarray(wrong) / above.sum() if above.any() else 1.0

    return draw, risk


CASES = {
    # Every threshold is bad by a hair: the most there can be certified wrongly.
    "at the limit": uniform_steps([0.5], [0.1001, 0.1001]),
    "rising with confidence": uniform_steps([0.3, 0.6, 0.9], [0.05, 0.1, 0.12, 0.2]),
    "to and fro around the limit": uniform_steps([0.2, 0.35, 0.5, 0.62, 0.76, 0.9], [0.14, 0.08, 0.13, 0.05, 0.14, 0.06, 0.11]),
    "a jump between two thresholds": uniform_steps([0.523, 0.5231, 0.748, 0.7481], [0.12, 1, 0.101, 1, 0.1]),
    "few values": ties([0, 0.25, 0.5, 0.75, 1], [0.3, 0.1, 0.2, 0.1, 0.3], [0.4, 0.0, 0.2, 0.05, 0.101]),
    "one value": ties([0.8], [1.0], [0.1001]),
    "hardly anybody confident": ties([0.97, 0.1], [0.02, 0.98], [0.5, 0.093]),
}  # fmt: skip


STARTS = {"default": None, "one": (0.75,), "all": tuple(step / 20 for step in range(20))}


# Where the walk begins matters most where every threshold is bad, or every other one.
@pytest.mark.parametrize(
    ("case", "start"),
    [
        *((case, "default") for case in CASES),
        *itertools.product(("at the limit", "to and fro around the limit"), ("one", "all")),
    ],
)
def test_a_certified_risk_is_above_alpha_in_at_most_delta_of_the_draws(case, start):
    draw, risk = CASES[case]
    rng = np.random.default_rng(list(CASES).index(case))
    bad = {step / 20 for step in range(20) if risk(step / 20) > 0.1}
    violated = sum(
        any(
            row.certified and row.threshold in bad
            for row in certify_threshold(*draw(rng, n), 0.1, 0.1, starts=STARTS[start]).table
        )
        for n in rng.choice([60, 150, 400], size=RUNS)
    )
    assert bad and at_most(violated, 0.1)


def test_the_share_of_wrong_certificates_is_not_far_below_delta():
    # One bad threshold, as much as δ for itself: the exact size of a binomial test.
    draw, _ = CASES["one value"]
    rng = np.random.default_rng(5)
    wrong = sum(
        certify_threshold(*draw(rng, 150), 0.1, 0.1, starts=[0.75]).threshold is not None for _ in range(RUNS)
    )
    allowed = max(count for count in range(150) if binom.cdf(count, 150, 0.1) <= 0.1)
    assert expected(wrong, binom.cdf(allowed, 150, 0.1001))


def alarms(streams, level=0.05):
    return sum(drift_martingale(stream, level).alarm is not None for stream in streams)


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_false_alarms_are_at_most_the_level_however_long_one_watches(level):
    assert at_most(alarms(np.random.default_rng(1).random((RUNS, 300)), level), level)


def test_false_alarms_with_a_small_calibration_set_and_ties():
    rng = np.random.default_rng(2)
    runs = RUNS // 2
    scores = rng.integers(8, size=(runs, 10 + 200)).astype(float)
    assert at_most(
        alarms(online_p_values(row[:10], row[10:], seed=i) for i, row in enumerate(scores)), 0.05, runs
    )
    # Against the calibration set alone its own chance deviations would be found.
    fixed = (p_values(row[:10], row[10:], seed=i) for i, row in enumerate(scores))
    assert not at_most(alarms(fixed), 0.05, runs)


@pytest.mark.parametrize("shift", [1.5, -1.5])
def test_a_planted_shift_raises_the_alarm_and_not_before(shift):
    rng = np.random.default_rng(3)
    places = []
    for seed in range(300):
        before, after = rng.normal(size=200), rng.normal(shift, size=60)
        place = drift_martingale(online_p_values(before[:100], [*before[100:], *after], seed), 0.01).alarm
        places.append(np.inf if place is None else place)
    assert np.mean(np.isfinite(places)) > 0.98
    assert at_most(np.count_nonzero(np.array(places) < 100), 0.01, 300)
    assert np.median(places) < 100 + 40
