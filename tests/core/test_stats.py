"""Statistics by hand, against brute force, and against scipy, scikit-learn and published vectors."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from sklearn.metrics import average_precision_score, roc_auc_score

from core.stats import (
    FEWEST_OF_EACH,
    auprc,
    aurc,
    auroc,
    auroc_difference,
    auroc_interval,
    auroc_p_value,
    bootstrap_interval,
    cases_needed,
    clustered_interval,
    correlation,
    correlations,
    e_aurc,
    holm,
    hotelling,
    mean_in_unit,
    mean_interval,
    paired_interval,
    paired_permutation_test,
    poisson_binomial_interval,
    poisson_binomial_tail,
    prr,
    risk_coverage,
    significance,
    wilson_interval,
)
from core.text.display import needed

RNG = np.random.default_rng(7)
RANKINGS = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30)
NAN = math.nan


def columns(rows):
    return np.array([a for a, _ in rows], dtype=float), np.array([b for _, b in rows], dtype=bool)


def same(a, b):
    return a == pytest.approx(b, nan_ok=True)


# Intervals


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 20), (3, 10), (20, 20), (499, 1_000)])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_wilson_is_that_of_scipy(hits, n, level):
    expected = scipy_stats.binomtest(hits, n).proportion_ci(level, "wilson")
    assert wilson_interval(hits / n, n, level) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_solves_its_own_equation():
    # Its ends are the shares p at which the observed one is just z standard errors away.
    z = scipy_stats.norm.ppf(0.975)
    for p in wilson_interval(0.3, 10):
        assert abs(0.3 - p) == pytest.approx(z * math.sqrt(p * (1 - p) / 10))


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_the_share_and_has_a_width(case):
    hits, n = case
    low, high = wilson_interval(hits / n, n)
    assert 0 <= low <= hits / n <= high <= 1 and low < high


def test_no_cases_no_interval():
    assert all(map(math.isnan, (*wilson_interval(0.5, 0), *mean_interval([]), *mean_interval([1.0]))))
    assert all(map(math.isnan, mean_in_unit([NAN, NAN])))


def test_interval_of_a_mean():
    # Two values, 1 and -1: mean 0, standard error 1, t(0.975, 1) = 12.7062.
    assert mean_interval([1.0, -1.0, NAN]) == pytest.approx((-12.7062, 12.7062), abs=1e-4)
    assert mean_interval([1.0, -1.0], lower=-1, upper=1) == (-1, 1)
    values = RNG.normal(size=30)
    expected = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_interval(values, 0.9) == pytest.approx((expected.low, expected.high))
    assert mean_interval([0.4, 0.4, 0.4]) == pytest.approx((0.4, 0.4))


def test_interval_of_a_mean_of_values_in_the_unit():
    mean, low, high = mean_in_unit([0.2, 0.4, 0.6, NAN])
    # Student's t with two degrees of freedom: 4.3027 standard errors of 0.2 / sqrt 3.
    assert mean == pytest.approx(0.4) and low == 0 and high == pytest.approx(0.4 + 4.302653 * 0.2 / 3**0.5)
    mean, low, high = mean_in_unit(np.ones(10))
    assert (mean, high) == (1, 1) and low == pytest.approx(0.7224672)  # Wilson: 10 / (10 + 1.959964²)
    assert mean_in_unit([0.1] * 3)[0] == 0.1  # not the rounded sum of three tenths
    assert same(mean_in_unit([0.5]), (0.5, NAN, NAN))


def test_a_share_has_wilsons_interval_even_of_one_case():
    hits = [True, False, False, True, False]
    assert mean_in_unit(hits, share=True) == (0.4, *wilson_interval(0.4, 5))
    assert mean_in_unit([1], share=True) == (1.0, *wilson_interval(1.0, 1))


# The normal quantile over Student's of one degree of freedom fewer than there are clusters: 2, 3, 4 of them.
FEW_2, FEW_3, FEW_4 = 1.959964 / 12.706205, 1.959964 / 4.302653, 1.959964 / 3.182446


@pytest.mark.parametrize(
    ("hits", "cases", "worth"),
    [
        ([1], [2], 1),  # one cluster: one case, whatever its size
        ([3, 0], [4, 0], 1),  # no case, no cluster
        ([0], [3], 1),
        ([3], [3], 1),
        # Share ½, variance 2/1 · (¼ + ¼) / 2² = ¼: worth ¼ / ¼.
        ([1, 0], [1, 1], 1 * FEW_2**2),
        # Share ½, variance 4/3 · 1 / 4² = 1/12: worth ¼ · 12.
        ([1, 1, 0, 0], [1] * 4, 3 * FEW_4**2),
        # Sizes 1 and 3, all alike: 4² / (1 + 9).
        ([0, 0], [1, 3], 1.6 * FEW_2**2),
        ([1, 3], [1, 3], 1.6 * FEW_2**2),
        # No cluster differs in its share.
        ([1, 1, 1], [2, 2, 2], 6 * FEW_3**2),
        # Share 1/3, variance 3/2 · ((4/3)² + (2/3)² + (2/3)²) / 6² = 1/9: worth 2/9 · 9.
        ([2, 0, 0], [2, 2, 2], 2 * FEW_3**2),
        # Share 1/5, variance 2/1 · ((8/10)² + (8/10)²) / 5² = 0.1024: worth 0.16 / 0.1024.
        ([1, 0], [1, 4], 1.5625 * FEW_2**2),
        # More alike than by chance, 0.249375 / (4/3 · 0.75 / 40²) = 399: no more than there are.
        ([5, 5, 5, 6], [10] * 4, 40),
    ],
)
def test_clustered_cases_are_worth_fewer_and_their_share_has_the_exact_interval(hits, cases, worth):
    share = sum(hits) / sum(cases)
    low, high = clustered_interval(hits, cases)
    # Clopper and Pearson: the quantiles of beta distributions.
    assert low == pytest.approx(scipy_stats.beta.ppf(0.025, share * worth, worth + 1 - share * worth)
                                if share else 0, rel=1e-5)  # fmt: skip
    assert high == pytest.approx(scipy_stats.beta.ppf(0.975, share * worth + 1, worth - share * worth)
                                 if share < 1 else 1, rel=1e-5)  # fmt: skip


def test_the_level_of_a_clustered_interval_and_none_without_cases():
    # As above, of 90 %: Student's 0.95 quantile of 3 degrees of freedom.
    worth = 3 * (1.644854 / 2.353363) ** 2
    expected = [scipy_stats.beta.ppf(0.05, worth / 2, worth / 2 + 1),
                scipy_stats.beta.ppf(0.95, worth / 2 + 1, worth / 2)]  # fmt: skip
    assert clustered_interval([1, 1, 0, 0], [1] * 4, 0.9) == pytest.approx(expected, rel=1e-5)
    assert np.isnan([clustered_interval([], []), clustered_interval([0, 0], [0, 0])]).all()


# Bootstrap


def test_bootstrap_of_a_mean_is_that_of_scipy():
    values = RNG.exponential(size=80)
    expected = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=4_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert bootstrap_interval(values, np.mean, 4_000) == pytest.approx(tuple(expected), abs=0.02)


def test_bootstrap_of_all_resamples_by_hand():
    # Of (0, 1) the resamples 00, 01, 10, 11 are equally likely: the mean is 0, 1/2 or 1.
    assert bootstrap_interval([0, 1], np.mean, level=0.6) == (0, 1)
    assert bootstrap_interval([0, 1], np.mean, level=0.4) == (0.5, 0.5)


def test_bootstrap_keeps_pairs_together():
    gain = RNG.random(50)
    assert bootstrap_interval((gain, 2 * gain), lambda a, b: a.mean() / b.mean()) == pytest.approx((0.5, 0.5))
    score, label = RNG.random(60), RNG.random(60) < 0.5
    low, high = bootstrap_interval((score, score, label), lambda a, b, y: auroc(y, a) - auroc(y, b))
    assert (low, high) == (0, 0)


def test_bootstrap_is_seeded_and_narrows_with_the_level():
    values = RNG.random(40)
    assert bootstrap_interval(values, np.mean, 500) == bootstrap_interval(values, np.mean, 500)
    assert bootstrap_interval(values, np.mean, 500) != bootstrap_interval(values, np.mean, 500, seed=1)
    wide, narrow = (bootstrap_interval(values, np.mean, level=level) for level in (0.95, 0.5))
    assert wide[0] < narrow[0] < values.mean() < narrow[1] < wide[1]


def test_bootstrap_of_groups_does_not_count_copies_as_evidence():
    values = RNG.normal(size=40)
    once = bootstrap_interval(values, np.mean)
    copies, group = np.repeat(values, 9), np.repeat(np.arange(40), 9)
    assert bootstrap_interval(copies, np.mean, groups=group) == pytest.approx(once)
    alone = bootstrap_interval(copies, np.mean)
    assert (alone[1] - alone[0]) * 2 < once[1] - once[0]
    shuffled = RNG.permutation(copies.size)
    names = np.array([f"question {g:02}" for g in group])
    assert bootstrap_interval(copies[shuffled], np.mean, groups=names[shuffled]) == pytest.approx(once)


def test_bootstrap_of_degenerate_data():
    assert bootstrap_interval(np.ones(5), np.mean) == (1, 1)
    assert same(bootstrap_interval([1.0], np.mean), (NAN, NAN))
    assert same(bootstrap_interval([], np.mean), (NAN, NAN))
    assert same(bootstrap_interval([1.0, 2.0], np.mean, groups=["a", "a"]), (NAN, NAN))
    # With one class there is no AUROC; with one positive of ten, about a third of the resamples lack one.
    score, label = np.arange(10.0), np.arange(10) == 9
    assert same(bootstrap_interval((np.ones(10, dtype=bool), score), auroc, 200), (NAN, NAN))
    assert bootstrap_interval((label, score), auroc, 200) == (1, 1)
    with pytest.raises(ValueError, match="rows"):
        bootstrap_interval(([1.0, 2.0], [1.0]), np.subtract)


# Permutation tests and many tests


def sign_flip(differences):
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True))
            for signs in itertools.product((1, -1), repeat=len(differences))]  # fmt: skip
    return Fraction(sum(abs(value) >= abs(sum(differences)) for value in sums), len(sums))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=10))
def test_paired_permutation_is_the_share_of_all_sign_flips(differences):
    # Tenths are not exact in binary: sums that are equal on paper must count as equal.
    tenths = np.array(differences) / 10
    assert paired_permutation_test(tenths, np.zeros(tenths.size)) == pytest.approx(
        float(sign_flip(differences))
    )


def test_paired_permutation_with_random_flips():
    a, b = RNG.normal(size=400), RNG.normal(size=400)
    p = paired_permutation_test(a, b)
    assert p == pytest.approx(scipy_stats.ttest_rel(a, b).pvalue, abs=0.02)
    assert p == paired_permutation_test(a, b) == paired_permutation_test(b, a)
    assert paired_permutation_test(a, a + 1 + RNG.random(400), 999) == 1 / 1_000  # never 0
    assert paired_permutation_test(a, a) == 1
    with_gaps = np.r_[a, NAN], np.r_[b, 3.0]
    assert paired_permutation_test(*with_gaps) == p


@pytest.mark.parametrize("cells", [1, 12, 13, 100])
def test_all_sign_flips_are_counted_once_however_many_are_tried_at_a_time(cells, monkeypatch):
    monkeypatch.setattr(significance, "CELLS", cells)
    differences = [4, -1, 2, 3, 5, 1]
    assert paired_permutation_test(differences, [0] * 6) == float(sign_flip(differences))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80))
def test_paired_permutation_of_yes_and_no_is_the_exact_test_of_mcnemar(pairs):
    a, b = np.array(pairs, dtype=float).T
    up, down = int((b > a).sum()), int((b < a).sum())
    expected = scipy_stats.binomtest(up, up + down).pvalue if up + down else 1
    assert paired_permutation_test(a, b) == pytest.approx(expected)


def test_paired_permutation_is_that_of_scipy():
    a, b = RNG.normal(size=9), RNG.normal(0.5, size=9)
    expected = scipy_stats.permutation_test(
        (a, b), lambda x, y, axis: (x - y).mean(axis), permutation_type="samples", n_resamples=np.inf
    )
    assert paired_permutation_test(a, b) == pytest.approx(expected.pvalue)


def test_paired_interval_by_hand():
    # 5 of 20 up and 1 down: 6/22 and 2/22, Wald's interval of their difference over 22.
    a, b = np.r_[np.zeros(5), 1, np.ones(14)], np.r_[np.ones(5), 0, np.ones(14)]
    half = scipy_stats.norm.ppf(0.975) * math.sqrt((8 / 22 - (4 / 22) ** 2) / 22)
    assert paired_interval(a, b, share=True) == pytest.approx((4 / 22 - half, 4 / 22 + half))
    # No pair differs: still a width.
    low, high = paired_interval(a, a, share=True)
    assert low == pytest.approx(-high) and 0.1 < high < 0.2
    # Numbers: the t interval of the differences 1, 2, 3.
    found = scipy_stats.t.interval(0.95, 2, 2, 1 / math.sqrt(3))
    assert paired_interval([0, 0, 0, NAN], [1, 2, 3, 4]) == pytest.approx(found)
    assert np.isnan([paired_interval([1, 2], [2, 3]), paired_interval([1], [2], share=True)]).all()


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=300))
def test_paired_interval_of_shares_holds_the_difference(pairs):
    a, b = np.array(pairs, dtype=float).T
    low, high = paired_interval(a, b, share=True)
    assert -1 <= low <= (b - a).mean() + 1e-12 and (b - a).mean() - 1e-12 <= high <= 1 and low < high


def test_permutation_of_nothing_is_undefined():
    assert math.isnan(paired_permutation_test([NAN], [1.0]))
    with pytest.raises(ValueError, match="shape"):
        paired_permutation_test([1.0, 2.0], [1.0])


def test_holm_by_hand():
    # Sorted 0.01, 0.03, 0.04: times 3, 2, 1, never falling.
    assert holm([0.01, 0.04, 0.03, NAN]) == pytest.approx([0.03, 0.06, 0.06, NAN], nan_ok=True)
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([]).size == 0 and np.isnan(holm([NAN])).all()


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@given(p_values=st.lists(st.floats(0, 1), max_size=12))
def test_holm_rejects_what_the_step_down_rule_rejects(alpha, p_values):
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    left = sorted(p_values)
    passes = [(len(left) - i) * p <= alpha for i, p in enumerate(left)] + [False]
    assert (adjusted <= alpha).sum() == passes.index(False)


# Correlations


def mixed(n=60, seed=3):
    """Columns that go together and not, continuous, tied, of 0 and 1, and with gaps."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n, 5))
    data[:, 1] += data[:, 0]
    data[:, 2] = np.round(data[:, 1])
    data[:, 3] = data[:, 3] > 0
    data[::7, 4] = NAN
    data[:3, 0] = NAN
    return data


def shared(data, i, j):
    rows = ~np.isnan(data[:, [i, j]]).any(axis=1)
    return data[rows, i], data[rows, j]


@pytest.mark.parametrize("n", [60, 300])
def test_correlations_are_those_of_scipy_over_the_shared_cases(n):
    data = mixed(n)
    found = correlations(data)
    for i, j in itertools.combinations(range(5), 2):
        x, y = shared(data, i, j)
        assert found.n[i, j] == found.n[j, i] == len(x)
        for one, expected in (
            (found.pearson, scipy_stats.pearsonr(x, y)),
            (found.spearman, scipy_stats.spearmanr(x, y)),
        ):
            assert one.value[i, j] == pytest.approx(expected.statistic, abs=1e-12)
            # Student's t above 200 cases, permutation below: as far apart as 9,999 draws let expect.
            p = max(expected.pvalue, 1e-4)
            assert one.p_value[i, j] == pytest.approx(
                expected.pvalue if n > 200 else p, rel=1e-6 if n > 200 else 0.25, abs=0 if n > 200 else 0.02
            )
        assert one.value[i, j] == one.value[j, i] and one.p_value[i, j] == one.p_value[j, i]
    for one in (found.pearson, found.spearman):
        assert np.isnan([np.diag(part) for part in one]).all()


def test_the_point_biserial_correlation_is_pearsons():
    data = mixed()
    x, y = shared(data, 3, 4)
    expected = scipy_stats.pointbiserialr(x, y).statistic
    assert correlations(data).pearson.value[3, 4] == pytest.approx(expected)


def test_intervals_of_correlations_by_hand():
    # Ranks of the second are those of the first but for the swaps 1-2, ... 9-10: 6·10 / (10·99) off 1.
    x = np.arange(10.0)
    y = np.array([1, 0, 3, 2, 5, 4, 7, 6, 9, 8.0])
    found = correlations(np.column_stack([x, y]))
    rho = 1 - 60 / 990
    assert found.spearman.value[0, 1] == pytest.approx(rho)
    half = 1.959964 * math.sqrt((1 + rho**2 / 2) / 7)
    ends = [math.tanh(math.atanh(rho) + sign * half) for sign in (-1, 1)]
    assert [found.spearman.low[0, 1], found.spearman.high[0, 1]] == pytest.approx(ends, rel=1e-6)
    # Equal steps: the values are as good as ranks, and spread less than normal ones; Fisher's own width stays.
    half = 1.959964 / math.sqrt(7)
    ends = [math.tanh(math.atanh(rho) + sign * half) for sign in (-1, 1)]
    assert [found.pearson.low[0, 1], found.pearson.high[0, 1]] == pytest.approx(ends, rel=1e-6)


def test_the_interval_of_skewed_values_is_as_wide_as_the_bootstrap_says():
    rng = np.random.default_rng(5)
    x = rng.exponential(size=2_000)
    y = x * rng.exponential(size=2_000)
    found = correlations(np.column_stack([x, y])).pearson
    low, high = bootstrap_interval((x, y), lambda a, b: float(np.corrcoef(a, b)[0, 1]), 1_000)
    width = found.high[0, 1] - found.low[0, 1]
    assert width == pytest.approx(high - low, rel=0.2)
    normal = scipy_stats.pearsonr(x, y).confidence_interval()
    assert width > 1.3 * (normal.high - normal.low)


def test_two_columns_of_two_values_have_the_same_interval_in_both_kinds():
    data = np.array([[0, 0]] * 9 + [[0, 1]] * 6 + [[1, 0]] * 5 + [[1, 1]] * 10, dtype=float)
    found = correlations(data)
    for a, b in zip(found.pearson[:3], found.spearman[:3], strict=True):
        assert a[0, 1] == pytest.approx(b[0, 1])
    assert found.pearson.value[0, 1] == pytest.approx((90 - 30) / math.sqrt(15 * 15 * 14 * 16))


def test_correlations_of_rare_values_are_tested_exactly():
    # Six of 400 against eight of 400, four of them together: t would say 10^-60, Fisher's exact test says this.
    a, b = np.zeros((2, 400))
    a[:6], b[2:10] = 1, 1
    found = correlations(np.column_stack([a, b]), 99_999).spearman.p_value[0, 1]
    assert found == pytest.approx(1 / 100_000, abs=3e-5)
    assert scipy_stats.hypergeom.sf(3, 400, 6, 8) < 1e-5
    b = np.zeros(400)
    b[5:13] = 1
    exact = scipy_stats.hypergeom.sf(0, 400, 6, 8)
    found = correlations(np.column_stack([a, b])).spearman.p_value[0, 1]
    assert found == pytest.approx(exact, abs=0.03) and scipy_stats.spearmanr(a, b).pvalue < 0.02


def test_most_pairs_are_settled_by_a_tenth_of_the_draws():
    data = mixed()[:, 1:4]
    near, far = correlations(data).pearson.p_value[[0, 1], [1, 2]]
    # (1 + extreme) / (1 + draws), of 9,999 draws and of 999.
    assert near == 1 / 10_000 and far > 0.1 and far * 1_000 == pytest.approx(round(far * 1_000), abs=1e-9)
    by_default, zero = (correlations(data, 99, *seed).pearson.p_value for seed in ((), (0,)))
    np.testing.assert_array_equal(by_default, zero)


def test_only_the_rare_values_of_the_rarer_column_are_dealt():
    class Deal:
        def sums(self, few, of, draws):
            return few.tolist(), of.tolist(), draws

    unit = np.array([[1.0, 2], [1, 3], [1, 4], [1, 5], [2, 6], [1, 6], [-3, 6]])
    many = unit[:, 1].tolist()
    for i, j in ((0, 1), (1, 0)):
        assert correlation._few(unit, [2, 4], i, j, Deal(), 9) == ([1, -4], many, 9)
    # Of as many in both, those of the first; off 6, its commonest.
    assert correlation._few(unit, [4, 4], 1, 0, Deal(), 9)[0] == [-4, -3, -2, -1]


def test_permutation_p_values_of_small_data_are_those_of_all_orders():
    x = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 40.0])
    y = np.array([3, 1, 2, 2, 5, 4, 6, 9, 8, 50.0])
    rng = np.random.default_rng(0)
    dealt = np.array([np.corrcoef(x, rng.permutation(y))[0, 1] for _ in range(20_000)])
    observed = np.corrcoef(x, y)[0, 1]
    expected = np.mean(np.abs(dealt) >= observed - 1e-9)
    found = correlations(np.column_stack([x, y])).pearson.p_value[0, 1]
    assert found == pytest.approx(expected, abs=0.002)
    assert found > 10 * scipy_stats.pearsonr(x, y).pvalue  # one far point is little evidence


def test_correlations_are_undefined_rather_than_made_of_a_few_cases():
    x = np.arange(12.0)
    few, constant, nearly = x.copy(), np.ones(12), np.where(x < 4, x, 9.0)
    few[9:] = NAN
    enough = np.where(x < 5, x, 9.0)
    found = correlations(np.column_stack([x, few, constant, nearly, enough, -x]))
    undefined = np.isnan(found.spearman.value[0])
    assert undefined.tolist() == [True, True, True, True, False, False]
    assert found.n[0].tolist() == [12, 9, 12, 12, 12, 12]
    # The contrary order has no interval: a width of 0 would claim too much.
    assert found.spearman.value[0, 5] == -1 and math.isnan(found.spearman.low[0, 5])
    assert found.spearman.p_value[0, 5] == 1e-4
    assert correlations(np.empty((0, 2))).n.tolist() == [[0, 0], [0, 0]]


COLUMNS = st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=10, max_size=25).map(
    lambda rows: np.array(rows, dtype=float)
)


@given(COLUMNS)
def test_correlations_are_symmetric_bounded_and_around_the_value(data):
    found = correlations(data, 99)
    for one in (found.pearson, found.spearman):
        for part in one:
            np.testing.assert_array_equal(part, part.T)
        known = ~np.isnan(one.value)
        assert (np.abs(one.value[known]) <= 1).all() and (one.p_value[known] > 0).all()
        assert (one.p_value[known] <= 1).all() and not np.isnan(one.p_value[known]).any()
        inner = ~np.isnan(one.low)
        assert (inner == (known & (np.abs(one.value) < 1))).all()
        assert (one.low[inner] < one.value[inner]).all() and (one.value[inner] < one.high[inner]).all()
        assert (one.low[inner] >= -1).all() and (one.high[inner] <= 1).all()


@given(COLUMNS)
def test_spearmans_correlation_sees_only_the_order(data):
    before, after = correlations(data, 99), correlations(np.exp(data) * [1, 5, 0.1] - 7, 99)
    for a, b in zip(before.spearman, after.spearman, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    turned = correlations(data * [1, -1, 1], 99)
    np.testing.assert_allclose(turned.spearman.value[0, 1], -before.spearman.value[0, 1], atol=1e-9)


# Sums of unequal trials


@given(st.lists(st.floats(0, 1), max_size=8))
def test_tail_is_the_sum_over_all_outcomes(probabilities):
    chance = np.zeros(len(probabilities) + 1)
    for outcome in itertools.product((0, 1), repeat=len(probabilities)):
        chance[sum(outcome)] += math.prod(
            p if hit else 1 - p for p, hit in zip(probabilities, outcome, strict=True)
        )
    for count in range(-1, len(probabilities) + 2):
        expected = chance[max(0, count) :].sum()
        assert poisson_binomial_tail(probabilities, count) == pytest.approx(expected, abs=1e-12)
    low, high = poisson_binomial_interval(probabilities)
    assert 0 <= low <= high <= len(probabilities)
    assert chance[low : high + 1].sum() >= 0.95 - 1e-9
    assert chance[:low].sum() <= 0.025 + 1e-9 and chance[high + 1 :].sum() <= 0.025 + 1e-9


@pytest.mark.parametrize("n", [1, 1_000, 1_001, 5_000])
def test_equal_trials_are_binomial(n):
    p = np.full(n, 0.3)
    for count in {0, n // 4, int(0.3 * n), n // 3, n}:
        expected = scipy_stats.binom.sf(count - 1, n, 0.3)
        assert poisson_binomial_tail(p, count) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert poisson_binomial_interval(p, 0.9) == pytest.approx(scipy_stats.binom.interval(0.9, n, 0.3))


@pytest.mark.parametrize("n", [1_000, 1_001, 2_048])
def test_all_of_many_trials_may_succeed(n):
    assert poisson_binomial_tail(np.ones(n), n) == pytest.approx(1)
    assert poisson_binomial_tail(np.full(n, 0.9999), n) == pytest.approx(0.9999**n)
    assert poisson_binomial_interval(np.ones(n)) == (n, n) and poisson_binomial_tail(np.ones(n), n + 1) == 0


def test_tiny_tails_keep_their_digits():
    assert poisson_binomial_tail([1e-9] * 3, 3) == pytest.approx(1e-27)
    assert poisson_binomial_tail([0, 1, 1, 0.5], 3) == 0.5 and poisson_binomial_tail([0, 1, 1], 3) == 0


def test_many_unequal_trials_agree_with_scipy_and_the_normal_curve():
    p = RNG.random(3_000)
    assert poisson_binomial_tail(p, 1_550) == pytest.approx(
        scipy_stats.poisson_binom(p).sf(1_549), rel=1e-6, abs=1e-12
    )
    p = RNG.random(100_000)
    mean, spread = p.sum(), math.sqrt((p * (1 - p)).sum())
    low, high = poisson_binomial_interval(p)
    assert (low, high) == pytest.approx((mean - 1.96 * spread, mean + 1.96 * spread), abs=1)
    assert poisson_binomial_tail(p, high + 1) < 0.025 < poisson_binomial_tail(p, high)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, NAN])
def test_probabilities_outside_the_unit_are_refused(wrong):
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        poisson_binomial_tail([0.5, wrong], 1)


# Quality of a ranking


def test_published_vectors(vectors):
    for case in vectors("calibration"):
        rows = case["confidence"], case["correct"]
        assert auroc(*rows[::-1]) == pytest.approx(case["auroc"], abs=1e-6)
        assert auprc(*rows[::-1]) == pytest.approx(case["average_precision"], abs=1e-6)


@given(RANKINGS)
def test_auroc_and_auprc_are_those_of_scikit_learn(rows):
    score, label = columns(rows)
    if label.all() or not label.any():
        assert math.isnan(auroc(label, score)) and math.isnan(auprc(label, score))
        return
    assert auroc(label, score) == pytest.approx(roc_auc_score(label, score))
    assert auprc(label, score) == pytest.approx(average_precision_score(label, score))
    pairs = [(a > b) + 0.5 * (a == b) for a in score[label] for b in score[~label]]
    assert auroc(label, score) == pytest.approx(np.mean(pairs))


def test_risk_and_coverage_by_hand():
    # 0.9 right; then a tie of one right and one wrong: half an error is expected at each place.
    coverage, risk = risk_coverage([0.5, 0.9, 0.5, 0.1], [1, 1, 0, 0])
    assert coverage.tolist() == [0.25, 0.5, 0.75, 1]
    assert risk == pytest.approx([0, 0.25, 1 / 3, 0.5])
    assert aurc([0.5, 0.9, 0.5, 0.1], [1, 1, 0, 0]) == pytest.approx((0.25 + 1 / 3 + 0.5) / 4)
    # The best order has its errors at the end: 0, 0, 1/3, 1/2. At random every risk is 1/2.
    best, found = (1 / 3 + 1 / 2) / 4, (0.25 + 1 / 3 + 0.5) / 4
    assert e_aurc([0.5, 0.9, 0.5, 0.1], [1, 1, 0, 0]) == pytest.approx(found - best)
    assert prr([0.5, 0.9, 0.5, 0.1], [1, 1, 0, 0]) == pytest.approx((0.5 - found) / (0.5 - best))


@pytest.mark.parametrize(("answers", "coverage"), [(0, []), (1, [1]), (2, [0.5, 1])])
def test_risk_and_coverage_of_few_answers(answers, coverage):
    found = risk_coverage([0.3] * answers, [0.75] * answers)
    assert [one.tolist() for one in found] == [coverage, [0.25] * answers]


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_ties_count_as_the_mean_over_every_order_of_equals(rows):
    score, correct = columns(rows)
    risks = [
        np.cumsum(1 - correct[list(order)]) / np.arange(1, len(rows) + 1)
        for order in itertools.permutations(range(len(rows)))
        if (np.diff(score[list(order)]) <= 0).all()
    ]
    assert risk_coverage(score, correct)[1] == pytest.approx(np.mean(risks, axis=0))
    assert aurc(score, correct) == pytest.approx(np.mean(risks))


# All of a score and labels, in this order.
MEASURES = [lambda score, label, of=of: of(label, score) for of in (auroc, auprc)] + [aurc, e_aurc, prr]


@pytest.mark.parametrize("measure", MEASURES)
@given(rows=RANKINGS, order=st.randoms(use_true_random=False))
def test_only_the_order_of_the_scores_matters(measure, rows, order):
    score, label = columns(rows)
    found = measure(score, label)
    mixed = order.sample(range(len(rows)), len(rows))
    assert same(measure(score[mixed], label[mixed]), found)
    assert same(measure(np.exp(score) - 5, label), found)
    assert same(measure(np.where(score == 4, np.inf, score), label), found)
    assert same(measure(np.r_[score, NAN, 1.0], [*label, True, NAN]), found)


@given(RANKINGS)
def test_bounds_and_ends_of_the_scale(rows):
    score, correct = columns(rows)
    assert 0 <= aurc(score, correct) <= 1
    if correct.all() or not correct.any():
        assert math.isnan(prr(score, correct)) and math.isnan(e_aurc(score, correct))
        assert aurc(score, correct) == 1 - correct[0]
        return
    assert auroc(correct, -score) == pytest.approx(1 - auroc(correct, score))
    assert auroc(correct, correct) == auprc(correct, correct) == prr(correct, correct) == 1
    assert e_aurc(correct, correct) == 0 <= e_aurc(score, correct) <= aurc(score, correct)
    assert prr(score, correct) <= 1
    constant = np.zeros(len(rows))
    assert auroc(correct, constant) == 0.5 and prr(constant, correct) == pytest.approx(0, abs=1e-12)
    assert aurc(constant, correct) == pytest.approx(1 - correct.mean())
    assert auprc(correct, constant) == pytest.approx(correct.mean())


def test_labels_come_first_as_in_scikit_learn():
    for measure in (auroc, auprc, auroc_interval, auroc_p_value, lambda y, s: auroc_difference(y, s, s)):
        with pytest.raises(ValueError, match="Labels must be 0 or 1, and come before the scores"):
            measure([0.2, 0.9, 0.4], [0, 1, 1])


def test_prr_of_qualities_does_not_depend_on_their_scale():
    confidence, quality = RNG.random(50), RNG.random(50)
    assert prr(confidence, quality) == pytest.approx(prr(confidence, 0.2 + quality / 2))
    assert prr(quality, quality) == pytest.approx(1) and prr(-quality, quality) < 0


def test_oracle_of_many_answers_is_the_known_limit():
    # For error rate r the best AURC tends to r + (1 - r) ln(1 - r).
    correct = np.arange(100_000) >= 30_000
    assert aurc(correct, correct) == pytest.approx(0.3 + 0.7 * math.log(0.7), abs=1e-4)


@pytest.mark.parametrize("measure", MEASURES)
def test_no_rows_and_unequal_rows(measure):
    assert math.isnan(measure([], [])) and math.isnan(measure([NAN], [True]))
    with pytest.raises(ValueError, match="shape"):
        measure([0.1, 0.2], [True])


# What few cases of a class say of a ranking, and two rankings


@given(RANKINGS)
def test_an_auroc_has_an_interval_wherever_it_is_defined(rows):
    score, label = columns(rows)
    value, low, high = auroc_interval(label, score)
    assert same(value, auroc(label, score))
    if not math.isnan(value):
        assert 0 <= low <= value <= high <= 1 and high > low
        assert auroc_interval(label, -score) == pytest.approx((1 - value, 1 - high, 1 - low), abs=1e-9)


def test_the_interval_of_an_auroc_by_hand():
    # DeLong on the logit scale, by hand: placements of the positives 1, 1, 1/2, of the negatives 1 and 2/3.
    error = math.sqrt(1 / 12 / 3 + 1 / 18 / 2) / (5 / 6 * 1 / 6)
    low, high = (1 / (1 + math.exp(-(math.log(5) + side * 1.959964 * error))) for side in (-1, 1))
    found = auroc_interval([1, 1, 1, 0, 0], [0.9, 0.8, 0.5, 0.4, 0.6])
    assert found[0] == pytest.approx(5 / 6) and found[1] <= low + 1e-6 and found[2] >= high - 1e-6
    # Three above 57: DeLong has no spread. Newcombe's lower end is where its own error times z reaches 1.
    value, low, high = auroc_interval(np.arange(60) >= 57, np.arange(60))
    variance = low * (1 - low) * (1 + 29 * ((1 - low) / (2 - low) + low / (1 + low))) / (3 * 57)
    assert (value, high) == (1, 1) and 1 - low == pytest.approx(1.959964 * math.sqrt(variance), rel=1e-6)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=9))
def test_the_p_value_of_an_auroc_is_that_of_all_ways_to_deal_the_labels(rows):
    score, label = columns(rows)
    ways = [
        auroc(np.isin(np.arange(len(rows)), chosen), score)
        for chosen in itertools.combinations(range(len(rows)), int(label.sum()))
    ]
    extreme = [abs(one - 0.5) >= abs(auroc(label, score) - 0.5) - 1e-12 for one in ways]
    assert same(auroc_p_value(label, score), np.mean(extreme) if 0 < label.sum() < len(rows) else NAN)


@pytest.mark.parametrize("n", [30, 2_000])
def test_the_p_value_of_an_auroc_is_that_of_scipy(n):
    score, label = RNG.normal(size=n), np.arange(n) < n // 3
    expected = scipy_stats.mannwhitneyu(
        score[label], score[~label], method="exact" if n == 30 else "asymptotic"
    ).pvalue
    assert auroc_p_value(label, score) == pytest.approx(expected, rel=2e-3)
    assert auroc_p_value(label, np.zeros(n)) == 1
    tied = np.round(score)
    expected = scipy_stats.mannwhitneyu(
        tied[label], tied[~label], method="asymptotic", use_continuity=False
    ).pvalue
    assert auroc_p_value(label, tied) == pytest.approx(expected, rel=1e-6 if n > 30 else 0.1)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), min_size=1, max_size=20))
def test_the_difference_of_two_aurocs(rows):
    a, b, positive = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    difference, low, high, p = auroc_difference(positive, a, b)
    assert difference == pytest.approx(auroc(positive, a) - auroc(positive, b), abs=1e-12, nan_ok=True)
    if not math.isnan(low):
        assert low < difference < high and 0 <= p <= 1
        assert (p < 0.05) == (low > 0 or high < 0)
        assert auroc_difference(positive, b, a) == pytest.approx((-difference, -high, -low, p))


def test_delong_by_hand():
    # 15 pairs of positives and 15 of negatives: a ranks one of each pair above, b the other, as in
    # a, b = [3, 1, 0, 2], [1, 3, 0, 2] with two of each; every placement differs by +1/2 or -1/2.
    positive = [1] * 16 + [0] * 16
    a, b = [3, 1] * 8 + [0, 2] * 8, [1, 3] * 8 + [0, 2] * 8
    difference, low, high, p = auroc_difference(positive, a, b)
    # Differences of the positives 1/2 and -1/2, variance 16/15 / 4; the negatives do not differ.
    half = 2.13145 * math.sqrt(16 / 15 / 4 / 16)  # t with 15 degrees of freedom
    assert difference == 0 and p == 1 and (low, high) == pytest.approx((-half, half), abs=1e-4)


def test_two_rankings_of_few_cases_are_not_compared():
    """Reproduction: with 3 wrong of 60, nine useless scores are told apart in 74 % of samples."""
    a, b = RNG.random(60), RNG.random(60)
    for few, compared in ((3, False), (FEWEST_OF_EACH - 1, False), (FEWEST_OF_EACH, True)):
        for label in (np.arange(60) < few, np.arange(60) >= few):
            found = auroc_difference(label, a, b)
            assert not math.isnan(found[0]) and np.isfinite(found[1:]).all() == compared


def test_delong_agrees_with_the_bootstrap_and_knows_equal_rankings():
    positive = RNG.integers(0, 2, 150)
    a, b = positive + RNG.normal(size=150), positive + 2 * RNG.normal(size=150)
    found = auroc_difference(positive, a, b)
    low, high = bootstrap_interval((a, b, positive), lambda x, y, z: auroc(z, x) - auroc(z, y))
    assert found[1:3] == pytest.approx((low, high), abs=0.03)
    assert auroc_difference(positive, a, 2 * a + 1)[3] == 1
    # Perfect against perfectly wrong: no spread to judge by.
    found = auroc_difference([0] * 20 + [1] * 20, range(40), range(40, 0, -1))
    assert found[0] == 1 and math.isnan(found[3])
    assert np.isnan(auroc_difference([1, 1], [1, 2], [2, 1])).all()


def test_cases_needed_by_hand():
    def coins(heads, tails):
        return [1.0] * heads + [-1.0] * tails

    # (1.95996 + 0.84162)² · 1.00848 / 0.04² = 4,947, to two figures
    assert cases_needed(coins(52, 48)) == 5000
    # 1 in 100 is half of a fiftieth of the standard deviation: no number of questions makes that matter.
    assert cases_needed(coins(5050, 4950)) is None
    # 3 in 100: 8,714 would be enough, but the 10,000 there are were not.
    assert cases_needed(coins(5150, 4850)) == 11000
    # No spread, no difference: of 30 cases, not of 2; and one case has no spread.
    assert cases_needed([0.0] * 30) is None and cases_needed([0.0, 0.0]) == cases_needed([1.0]) == 0


@pytest.mark.parametrize("n", [1, 2, 3, 4, 10, 60])
def test_few_questions_never_say_that_more_would_not_help(n):
    """Reproduction: "the difference is nil, so more questions would not help" of 1 or 3 questions."""
    balanced = np.r_[np.resize([0.3, -0.3], n // 2 * 2), np.zeros(n % 2)]
    for differences in (np.zeros(min(n, 4)), balanced, balanced + 1e-9):
        assert cases_needed(differences) == 0
    assert needed(0) == "too few questions to tell"
    # 2,000 whose mean is nil with an interval of ±0.044 standard deviations do.
    assert "would not help" in needed(cases_needed(np.resize([0.3, -0.3], 2_000)))


@pytest.mark.parametrize(("n", "drawn"), [(10_000, 300), (10_001, 200)])
def test_many_rows_need_few_resamples(n, drawn):
    rng = np.random.default_rng(0)
    values = rng.random(n)
    calls = []
    bootstrap_interval(values, lambda found: calls.append(len(found)) or 0.0, n_resamples=300)
    assert calls == [n] * drawn


def test_hotelling_of_one_column_is_students_test_and_sees_a_direction_that_columns_hide():
    rng = np.random.default_rng(5)
    one = rng.normal(0.3, 1, (30, 1))
    assert hotelling(one) == pytest.approx(scipy_stats.ttest_1samp(one[:, 0], 0).pvalue)
    shared = rng.normal(0, 5, 40)
    assert hotelling(np.column_stack([shared + rng.normal(0.3, 0.1, 40), shared])) < 1e-9  # their difference
    assert math.isnan(hotelling(np.ones((20, 2)))) and math.isnan(hotelling(rng.normal(size=(3, 2))))
