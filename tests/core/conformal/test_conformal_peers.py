"""MAPIE and crepes compute some of the same quantities: they are the oracle."""

import warnings
from itertools import product

import numpy as np
import pytest
from crepes.base import p_values_batch
from mapie.exchangeability_testing import OnlineMartingaleTest
from mapie.regression import SplitConformalRegressor
from mapie.risk_control.fwer_control import control_fwer
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value
from sklearn.dummy import DummyRegressor

from core.conformal import (
    certify_threshold,
    conformal_threshold,
    drift_martingale,
    group_p_values,
    p_values,
)


def scores(n, seed=0, decimals=1):
    """Scores with ties."""
    return np.abs(np.random.default_rng(seed).normal(size=n)).round(decimals)


# Where (n + 1)(1 − α) is a whole number, MAPIE's ceiling of a float may be one too high: not asked for here.
def test_threshold_is_the_half_width_of_mapies_interval():
    for n, alpha in product([10, 21, 50, 98, 100], [0.1, 0.15, 0.2, 0.3, 0.7]):
        # Always predicting 0, the interval is 0 ± the threshold of |y|.
        x, y = np.zeros((n, 1)), scores(n, decimals=6)
        zero = DummyRegressor(strategy="constant", constant=0.0).fit(x, y)
        peer = SplitConformalRegressor(zero, confidence_level=1 - alpha, prefit=True).conformalize(x, y)
        _, intervals = peer.predict_interval(np.zeros((1, 1)))
        assert conformal_threshold(y, alpha) == pytest.approx(float(intervals[0, 1, 0]), abs=1e-12), (
            n,
            alpha,
        )


def test_p_values_are_those_of_crepes():
    known, new = scores(57), np.concatenate([scores(40, 1), [-1.0, 99.0]])
    expected = p_values_batch(known, new, smoothing=False)
    np.testing.assert_allclose(p_values(known, new), expected, rtol=0, atol=1e-12)


def test_p_values_of_groups_are_those_of_crepes():
    known, new = scores(57), scores(40, 1)
    groups, asked = np.arange(57) % 3, np.arange(40) % 3
    expected = p_values_batch(known, new, groups, asked, smoothing=False)
    found = group_p_values(known, groups.tolist(), new, asked.tolist())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_smoothed_p_values_lie_where_those_of_crepes_can():
    known, new = scores(57), scores(40, 1)
    # With every tie above or below, crepes gives the ends between which the randomised one lies.
    most = p_values_batch(known, new, smoothing=False)
    above = (known[:, None] > new).sum(axis=0) / 58
    for seed in range(20):
        found = p_values(known, new, seed=seed)
        assert ((above < found) & (found <= most)).all()


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_martingale_is_mapies_jumper(shift):
    rng = np.random.default_rng(3)
    x, y = np.zeros((150, 1)), np.concatenate([rng.normal(size=100), rng.normal(shift, size=50)])
    zero = DummyRegressor(strategy="constant", constant=0.0).fit(x, y)
    estimator = SplitConformalRegressor(zero, prefit=True)
    peer = OnlineMartingaleTest(estimator, task="regression", warn=False, random_state=0, jump_size=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.update(x, y)
    found = drift_martingale(peer.pvalue_history)
    np.testing.assert_allclose(np.exp(found.log_martingale), peer.martingale_value_history, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
def test_certificate_is_mapies_fixed_sequence(alpha):
    rng = np.random.default_rng(8)
    confidence = rng.random(400)
    correct = rng.random(400) < 0.4 + 0.6 * confidence
    found = certify_threshold(confidence, correct, alpha, 0.1, starts=[0.95])
    # A little less, since MAPIE rounds risk · n up to a whole number, from a float that may be above it.
    risks = np.array([max(0, row.n_wrong - 1e-6) / row.n_answered for row in found.table])
    answered = np.array([row.n_answered for row in found.table])
    expected = compute_hoeffding_bentkus_p_value(risks, answered, alpha, binary=True)[:, 0]
    np.testing.assert_allclose([row.p_value for row in found.table], expected, rtol=1e-9)
    rejected = control_fwer(expected, 0.1, "fixed_sequence")
    assert [i for i, row in enumerate(found.table) if row.certified] == sorted(rejected)
