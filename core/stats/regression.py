"""Sparse linear regression."""

from __future__ import annotations

import numpy as np

from core.arrays import Floats


def lasso(columns: Floats, values: Floats, alpha: float | None = None) -> Floats:
    """Return the weight of each column, shape (p,), in the unit of the values per unit of the column.

    Columns, (n, p), are standardised for the penalty, ``alpha`` in front of the sum of absolute weights and
    1 / 2n in front of the squares; None chooses it by five-fold cross-validation. Columns
    without variance weigh nothing, and without rows all weights are NaN. Tibshirani 1996.
    """
    from sklearn.linear_model import Lasso, LassoCV

    if not len(values):
        return np.full(columns.shape[1], np.nan)
    scale = columns.std(axis=0)
    usable = scale > 0
    found = np.zeros(columns.shape[1])
    if usable.any() and np.ptp(values) > 0:
        x = (columns[:, usable] - columns[:, usable].mean(axis=0)) / scale[usable]
        model = LassoCV(cv=5, alphas=20, eps=0.01, max_iter=20_000) if alpha is None else Lasso(alpha=alpha)
        found[usable] = model.fit(x, values).coef_ / scale[usable]
    return found
