"""Cohen's κ beside scikit-learn, its error beside the delta method, and how often its interval holds it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from core.stats import agreement, cohen_kappa

JUDGED = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=2, max_size=60)


@given(JUDGED)
def test_kappa_is_that_of_scikit_learn(judged):
    a, b = zip(*judged, strict=True)
    found = cohen_kappa(a, b)
    if len({*a, *b}) == 1:
        assert math.isnan(found.value) and found.reason == "both use one category only" and found.agreed == 1
    else:
        assert found.value == pytest.approx(cohen_kappa_score(a, b), abs=1e-9)
        assert -1 <= found.interval[0] <= found.value <= found.interval[1] <= 1 and found.n == len(judged)


@pytest.mark.parametrize(("a", "b"), [((), ()), (("x",), ("y",))])
def test_fewer_than_two_cases_are_undefined(a, b):
    found = cohen_kappa(a, b)
    assert (
        math.isnan(found.value) and found.reason == "fewer than 2 cases judged by both" and found.n == len(a)
    )


def test_both_must_judge_the_same_cases():
    with pytest.raises(ValueError, match="not 1 and 2"):
        cohen_kappa(["a"], ["a", "b"])


def test_agreement_in_all_cases_is_no_certainty():
    # 5 of each: with 2 cases more spread over 4 cells κ is 2 · (5.5 + 5.5) / 12 - 1 = 0.833, of error
    # sqrt(0.9167 · 0.0833 / (12 · 0.25)) = 0.1596.
    found = cohen_kappa(["a"] * 5 + ["b"] * 5, ["a"] * 5 + ["b"] * 5)
    assert found.value == 1.0 and found.interval == (pytest.approx(0.8333 - 1.96 * 0.1596, abs=2e-3), 1.0)


def kappa_of(p):
    return (np.trace(p) - p.sum(1) @ p.sum(0)) / (1 - p.sum(1) @ p.sum(0))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_error_is_that_of_the_delta_method(k):
    counts = np.random.default_rng(k).integers(1, 30, (k, k)).astype(float)
    n, p, step = counts.sum(), counts / counts.sum(), 1e-6
    slopes = np.zeros((k, k))
    for cell in np.ndindex(k, k):
        moved = np.zeros((k, k))
        moved[cell] = step
        slopes[cell] = (kappa_of(p + moved) - kappa_of(p - moved)) / (2 * step)
    variance = ((p * slopes**2).sum() - (p * slopes).sum() ** 2) / n
    assert agreement._kappa(counts)[3] == pytest.approx(math.sqrt(variance), rel=1e-4)


@pytest.mark.parametrize(
    ("shares", "kappa", "n"),
    [((0.5, 0.5), 0.0, 50), ((0.8, 0.2), 0.4, 50), ((0.6, 0.3, 0.1), 0.8, 20), ((0.9, 0.1), 0.95, 50)],
)
def test_the_interval_holds_kappa(shares, kappa, n):
    random, q = np.random.default_rng(7), np.array(shares)
    table = (1 - kappa) * np.outer(q, q) + kappa * np.diag(q)
    held, of = 0, 0
    for _ in range(400):
        cells = random.choice(table.size, size=n, p=table.ravel())
        low, high = cohen_kappa([*(cells // q.size)], [*(cells % q.size)]).interval
        of += not math.isnan(low)
        held += low <= kappa <= high
    # 91 % is the least found for any of 48 settings; 400 samples of such a share vary by 1.4 points.
    assert of > 350 and held / of > 0.91 - 3 * 0.014
