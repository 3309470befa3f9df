"""A 95 % interval must contain the truth 95 % of the time, and a p-value below α must occur with probability α."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from core.stats import (
    auroc,
    bootstrap_interval,
    correlations,
    holm,
    mean_in_unit,
    mean_interval,
    paired_interval,
    paired_permutation_test,
    poisson_binomial_interval,
    poisson_binomial_tail,
    wilson_interval,
)

pytestmark = pytest.mark.slow
RUNS = 1_000


def covered(intervals, truth):
    return np.mean([low <= truth <= high for low, high in intervals])


def expected(share, at, runs=RUNS):
    """Whether a share of runs is what this probability gives, but for one case in 10,000."""
    low, high = binom.ppf([0.00005, 0.99995], runs, at)
    return low <= share * runs <= high


@pytest.mark.parametrize(("p", "n"), [(0.5, 20), (0.1, 50), (0.02, 200), (0.9, 30)])
def test_wilson(p, n):
    # Exact: the probability of all counts whose interval contains p. The target is met on average over p.
    hits = np.arange(n + 1)
    inside = [low <= p <= high for low, high in (wilson_interval(k / n, n) for k in hits)]
    assert 0.92 < binom.pmf(hits, n, p)[inside].sum() < 0.985


@pytest.mark.parametrize("kind", ["normal", "tied", "yes or no"])
@pytest.mark.parametrize("n", [15, 40, 250])
def test_correlations(kind, n):
    def drawn(rng, size):
        a = rng.normal(size=size)
        b = 0.5 * a + np.sqrt(0.75) * rng.normal(size=size)
        if kind == "tied":
            a, b = (np.digitize(one, [-1, -0.3, 0.3, 1]).astype(float) for one in (a, b))
        return np.column_stack([a > 0.3 if kind == "yes or no" else a, b])

    rng = np.random.default_rng(n)
    truth = correlations(drawn(rng, 300_000), 9)
    found = [correlations(drawn(rng, n), 9) for _ in range(RUNS)]
    for name in ("pearson", "spearman"):
        ends = [(one.low[0, 1], one.high[0, 1]) for one in (getattr(each, name) for each in found)]
        share = covered([each for each in ends if each[0] == each[0]], getattr(truth, name).value[0, 1])
        assert 0.92 < share < 0.985, name


@pytest.mark.parametrize("n", [15, 250])
def test_p_values_of_correlations(n):
    rng = np.random.default_rng(n)
    for rare in (0.5, 0.06 if n > 100 else 0.4):
        data = [
            np.column_stack([rng.random(n) < rare, rng.random(n) < rare, rng.exponential(size=n)])
            for _ in range(RUNS // 2)
        ]
        found = [correlations(each, 499) for each in data]
        for i, j in ((0, 1), (0, 2)):
            p = np.array([each.spearman.p_value[i, j] for each in found])
            p = p[~np.isnan(p)]
            # Of few cases with few values, p cannot come close to every level.
            assert binom.sf((p <= 0.05).sum() - 1, p.size, 0.05) > 1e-4


def test_means():
    rng = np.random.default_rng(0)
    normal = rng.normal(0.5, 1, (RUNS, 8))
    assert expected(covered(map(mean_interval, normal), 0.5), 0.95)
    beta = rng.beta(2, 3, (RUNS, 40))
    assert expected(covered((mean_in_unit(values)[1:] for values in beta), 0.4), 0.95)


def test_bootstrap_of_a_mean_a_ratio_and_groups():
    rng = np.random.default_rng(1)
    runs = 200
    means = [bootstrap_interval(rng.normal(0, 1, 50), np.mean, 400) for _ in range(runs)]
    ratios, grouped = [], []
    for _ in range(runs):
        base = rng.gamma(5, 1, 50)
        ratios.append(
            bootstrap_interval(
                (base * rng.uniform(0.5, 1.5, 50), base), lambda a, b: a.mean() / b.mean(), 400
            )
        )
        effect = np.repeat(rng.normal(0, 1, 50), 4) + rng.normal(0, 1, 200)
        grouped.append(bootstrap_interval(effect, np.mean, 400, groups=np.repeat(np.arange(50), 4)))
    for intervals, truth in ((means, 0), (ratios, 1), (grouped, 0)):
        assert 0.90 <= covered(intervals, truth) <= 0.98


def test_bootstrap_of_an_auroc():
    rng = np.random.default_rng(2)
    truth = norm.cdf(1 / np.sqrt(2))  # two normal curves one standard deviation apart
    label = np.arange(100) < 40
    intervals = [bootstrap_interval((label, rng.normal(0, 1, 100) + label), auroc, 200) for _ in range(120)]
    assert 0.88 <= covered(intervals, truth) <= 0.995


def test_p_values_of_permutations_are_uniform():
    rng = np.random.default_rng(3)
    a, b = rng.exponential(size=(2, RUNS, 30))
    paired = np.array([paired_permutation_test(x, y, 199) for x, y in zip(a, b, strict=True)])
    for level in (0.05, 0.2):
        assert expected((paired <= level).mean(), level)


def test_paired_shares_are_covered_and_rejected_as_often_as_promised():
    rng = np.random.default_rng(6)
    for n, p_up, p_down in ((20, 0.1, 0.1), (60, 0.1, 0.1), (60, 0.2, 0.05)):
        drawn = rng.choice([1, -1, 0], p=[p_up, p_down, 1 - p_up - p_down], size=(RUNS, n))
        a, b = (drawn < 0).astype(float), (drawn > 0).astype(float)
        intervals = [paired_interval(x, y, share=True) for x, y in zip(a, b, strict=True)]
        assert 0.93 <= covered(intervals, p_up - p_down) <= 0.995
        if p_up == p_down:  # exact and discrete: rejects at most as often as promised
            p = np.array([paired_permutation_test(x, y) for x, y in zip(a, b, strict=True)])
            assert (p <= 0.05).mean() <= 0.06


def test_holm_keeps_the_familywise_error():
    p = np.random.default_rng(4).random((RUNS, 9))
    any_rejected = np.array([(holm(row) <= 0.05).any() for row in p])
    assert expected(any_rejected.mean(), 1 - (1 - 0.05 / 9) ** 9)


def test_counts_by_chance_are_rarely_above_chance():
    rng = np.random.default_rng(5)
    p = rng.beta(1, 4, 60)
    counts = (rng.random((RUNS, 60)) < p).sum(axis=1)
    tails = np.array([poisson_binomial_tail(p, int(count)) for count in counts])
    # Counts are discrete: the level reached is the largest tail below 5 %.
    assert expected((tails <= 0.05).mean(), max(tails[tails <= 0.05]))
    low, high = poisson_binomial_interval(p)
    assert 0.93 < ((low <= counts) & (counts <= high)).mean() <= 1
