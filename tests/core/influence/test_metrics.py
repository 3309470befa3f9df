import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from core.influence import (
    above_noise_by_chance,
    average_ranks,
    dominance_ratio,
    influence_entropy,
    influence_score,
    label,
    noise_quantile,
    rank_biased_overlap,
    spearman,
)
from core.influence.metrics import influence_scores

influences = st.integers(3, 15).flatmap(
    lambda k: arrays(float, k, elements=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
)


def same(found, expected):
    return math.isnan(found) if expected is None else found == pytest.approx(expected, abs=1e-9)


def test_published_vectors(vectors):
    for case in vectors("influence_metrics"):
        result = spearman(case["retrieval_ranks"], case["influence"])
        assert same(result.rho, case["spearman"]) and same(result.p_value, case["spearman_p"]), case
        assert same(dominance_ratio(case["influence"]), case["dominance"])
        assert same(influence_entropy(case["influence"]), case["entropy_nats"])
        assert average_ranks(case["influence"]).tolist() == case["average_influence_ranks"]


@given(influences, st.randoms(use_true_random=False))
def test_spearman_equals_scipy(influence, random):
    order = list(range(1, influence.size + 1))
    random.shuffle(order)
    result = spearman(order, influence)
    if np.ptp(influence) == 0:
        assert math.isnan(result.rho) and result.reason == ("all_equal" if influence[0] else "inert")
        return
    expected = stats.spearmanr(order, -influence)
    assert result.rho == pytest.approx(expected.statistic, abs=1e-9)
    # Near |rho| = 1 scipy's p-value is dominated by rounding in rho itself.
    assert result.p_value == pytest.approx(expected.pvalue, abs=1e-6)


@given(influences)
def test_ranks_equal_scipy(influence):
    assert average_ranks(influence).tolist() == stats.rankdata(-influence).tolist()


@pytest.mark.parametrize(
    ("ranks", "influence", "reason"),
    [
        ([1, 2, 3], [0, 0, 0], "inert"),
        ([1, 2, 3], [1, 1, 1], "all_equal"),
        ([1, 2], [0.1, 0.9], "too_few_passages"),
        ([], [], "too_few_passages"),
        ([1, 2, 3], [0.1, math.nan, 0.2], "incomplete"),
        ([1, math.nan, 3], [0.1, 0.3, 0.2], "incomplete"),
        ([2, 2, 2], [0.1, 0.3, 0.2], "no_retrieval_order"),
    ],
)
def test_undefined_is_a_value_with_a_reason(ranks, influence, reason):
    result = spearman(ranks, influence)
    assert math.isnan(result.rho) and math.isnan(result.p_value) and result.reason == reason
    assert label(result.rho) == "Undefined"


def test_ties_are_not_broken_in_retrieval_order():
    # One passage of ten matters, the one retrieved last. Breaking ties by row would give rho 0.45.
    influence = [0.0] * 9 + [1.0]
    assert spearman(range(1, 11), influence).rho == pytest.approx(-0.5222, abs=1e-4)


def test_different_lengths_are_an_error():
    with pytest.raises(ValueError, match="equally long, got 2 and 3"):
        spearman([1, 2], [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("baseline", "ablated", "expected"),
    [
        ("The capital is Paris", "The capital is Paris", 0.0),
        ("The capital is Paris", "The capital is Rome", 0.25),
        ("Paris", "", 1.0),
        ("Paris", "I don't know", 1.0),
        ("I don't know", "", 1.0),
        ("", "Paris", None),
        ("", "", None),
        ("I don't know.", "The passages do not contain the answer.", 0.0),
        ("北京", "北平", 0.5),
    ],
)
def test_influence_score(baseline, ablated, expected):
    assert same(influence_score(baseline, ablated), expected)


@pytest.mark.parametrize(
    ("influence", "dominance", "entropy"),
    [
        ([1, 0, 0], 1.0, 0.0),
        ([0.5, 0.5], 0.5, math.log(2)),
        ([0, 0], None, None),
        ([], None, None),
        ([0.5, math.nan], None, None),
    ],
)
def test_dominance_and_entropy(influence, dominance, entropy):
    assert same(dominance_ratio(influence), dominance)
    assert same(influence_entropy(influence), entropy)


def test_rank_biased_overlap_by_hand():
    # Orders 1,2,3 and 2,1,3 with p = 0.5: agreements 0, 1, 1.
    # (1 - p)(p * 1 + p^2 * 1) + p^3 * 1 = 0.5 * 0.75 + 0.125 = 0.5
    assert rank_biased_overlap([1, 2, 3], [0.5, 0.9, 0.1], p=0.5) == pytest.approx(0.5)
    assert rank_biased_overlap([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(1.0)
    # Of eleven passages in the same order the sum is above 1 by rounding.
    assert rank_biased_overlap(range(11), range(11, 0, -1), p=0.8) == 1
    assert math.isnan(rank_biased_overlap([1, 2, 3], [0.2, 0.2, 0.2]))
    for p in (0.0, 1.0):
        with pytest.raises(ValueError, match=rf"p must lie in \(0, 1\), got {p}"):
            rank_biased_overlap([1, 2, 3], [1, 2, 3], p=p)


def test_rank_biased_overlap_of_ties_is_the_mean_over_all_ways_to_break_them():
    # Passages 2 and 3 tie: the average over the two possible orders, each by hand as above.
    ties = rank_biased_overlap([1, 2, 3], [0.9, 0.5, 0.5], p=0.5)
    broken = [rank_biased_overlap([1, 2, 3], order, p=0.5) for order in ([0.9, 0.6, 0.5], [0.9, 0.5, 0.6])]
    assert ties == pytest.approx(np.mean(broken))


def test_label_follows_one_threshold():
    assert label(0.7) == label(0.6999999999999999) == "Aligned" and label(math.nan) == "Undefined"
    assert label(0.6999) == "Divergent" and label(0.6999, threshold=0.5) == "Aligned"
    # What rounding may take away is allowed, and no more.
    assert label(-1e-12, threshold=0.0) == "Aligned" and label(-1.1e-12, threshold=0.0) == "Divergent"
    assert label(0.5, threshold=0.0, attainable=-1e-12) == "Aligned"


def test_a_label_that_ties_decide_is_undefined():
    assert label(0.52, attainable=0.52) == label(-0.5, attainable=0.6999) == "Undefined"
    assert label(0.52, 0.5, attainable=0.52) == "Aligned"
    assert label(0.2, attainable=0.6999999999999999) == "Divergent"


def test_a_missing_influence_has_no_rank():
    assert average_ranks([0.1, math.nan, 0.9])[[0, 2]].tolist() == [2, 1]
    assert math.isnan(average_ranks([0.1, math.nan, 0.9])[1])


def test_noise_quantile():
    assert noise_quantile("a b c d", ["a b c d", "a b c d"]) == 0.0
    # Influences 0 and 0.25: below 19 repeats the floor is the largest.
    repeats = ["The capital is Paris", "The capital is Rome"]
    assert noise_quantile("The capital is Paris", repeats) == 0.25
    # From 39 on one may lie above: 2 of 40 places are beyond the second largest.
    assert noise_quantile("The capital is Paris", [*repeats[:1] * 38, repeats[1]]) == 0.0
    assert noise_quantile("The capital is Paris", [*repeats[:1] * 37, repeats[1]]) == 0.25
    assert math.isnan(noise_quantile("a", [])) and math.isnan(noise_quantile("", ["a"]))
    assert noise_quantile("a b", [""]) == 1.0
    assert math.isnan(above_noise_by_chance(0))


@pytest.mark.parametrize("n_repeats", [1, 2, 3, 5, 18, 19, 20, 38, 39, 60])
def test_a_passage_without_effect_is_above_the_noise_floor_as_often_as_said(n_repeats):
    """With 3 repeats 25 % of the passages without effect were above a floor called its 95 % point.

    The answer without such a passage is one more repeat: where it falls among all R + 1 is counted here.
    """
    words = [f"w{i}" for i in range(n_repeats + 1)]
    answers = [" ".join(words[:i] + ["x"] * (n_repeats + 1 - i)) for i in range(n_repeats + 1)]
    baseline = " ".join(words)
    above = [
        influence_score(baseline, one) > noise_quantile(baseline, answers[:i] + answers[i + 1 :])
        for i, one in enumerate(answers)
    ]
    assert above_noise_by_chance(n_repeats) == pytest.approx(np.mean(above))
    assert (above_noise_by_chance(n_repeats) <= 0.05 + 1e-12) == (n_repeats >= 19)


def test_many_influences_are_those_of_one_pair():
    texts = [
        "The capital is Paris",
        "The capital is Rome",
        "I don't know",
        "I am not sure",
        "",
        "!",
        "é",
        "Paris",
    ]
    pairs = [(one, other) for one in texts for other in texts]
    expected = [influence_score(one, other) for one, other in pairs]
    found = influence_scores([one for one, _ in pairs], [other for _, other in pairs])
    assert repr(found.tolist()) == repr(expected)
    assert sum(map(math.isnan, expected)) == 16 and 0.25 in expected
    assert influence_scores([], []).shape == (0,)
