"""The Lasso of two columns that do not overlap has a closed form: soft thresholds."""

import numpy as np

from core.stats import lasso

BOTH = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def test_standardised_columns_are_drawn_to_0_by_alpha():
    """Columns of ±1 after standardising: weights 2 and 0.1 of them, less α = 0.5 each, over a deviation of ½."""
    values = 4.0 * BOTH[:, 0] + 0.2 * BOTH[:, 1]
    np.testing.assert_allclose(lasso(BOTH, values, 0.5), [2 * (2 - 0.5), 0.0], atol=1e-9)


def test_what_tells_nothing_weighs_nothing():
    assert lasso(np.ones((4, 1)), np.arange(4.0), 0.1).tolist() == [0]
    assert lasso(BOTH, np.ones(4), 0.1).tolist() == [0, 0]
    assert np.isnan(lasso(np.empty((0, 2)), np.empty(0), 0.1)).all()


def test_alpha_is_chosen_where_none_is_given():
    rng = np.random.default_rng(3)
    columns = rng.random((60, 5)) < 0.5
    found = lasso(columns.astype(float), 3.0 * columns[:, 1] + rng.normal(0, 0.1, 60))
    assert found.argmax() == 1 and abs(found[1] - 3) < 0.2 and np.abs(np.delete(found, 1)).max() < 0.1
