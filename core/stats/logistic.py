"""Logistic regression whose coefficients are not negative."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Floats

_RIDGE = 0.01  # keeps separated classes finite; a hundredth of scikit-learn's default penalty


def non_negative_logistic(x: ArrayLike, positive: ArrayLike) -> tuple[Floats, float]:
    """Return coefficients and intercept of P(positive) = 1 / (1 + exp(−(x · coefficients + intercept))).

    Maximum likelihood with a small ridge of 0.01 on the coefficients, each at least 0: more of a signal never
    lowers the probability. ``x``, (n, k), of comparable scale, such as [0, 1]; no NaN. Coefficients, (k,),
    and the intercept, which is unpenalised: NaN with fewer than two classes.

    Cost: some 20 evaluations of the likelihood (L-BFGS-B, Byrd et al. 1995). scikit-learn's logistic
    regression has no bounds; where no bound is active, both give the same.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    rows, label = np.asarray(x, dtype=np.float64), np.asarray(positive, dtype=bool)
    k = rows.shape[1]
    if label.all() or not label.any():
        return np.full(k, math.nan), math.nan
    sign = np.where(label, 1.0, -1.0)

    def loss(found: Floats) -> tuple[float, Floats]:
        margin = sign * (rows @ found[:k] + found[k])
        pull = -sign * expit(-margin)
        value = np.logaddexp(0, -margin).sum() + _RIDGE / 2 * (found[:k] ** 2).sum()
        return float(value), np.r_[pull @ rows + _RIDGE * found[:k], pull.sum()]

    share = label.mean()
    start = np.r_[np.zeros(k), math.log(share / (1 - share))]
    bounds = [(0, None)] * k + [(None, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12}).x
    return np.asarray(found[:k], dtype=np.float64), float(found[k])
