"""When use has nothing to do with retrieval, the page must say so as often as it claims."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from core.influence import analyse, chance_band, summary
from core.run import Run

pytestmark = pytest.mark.slow
N, K = 20_000, 10


@pytest.fixture(scope="module")
def analysis():
    influence = np.random.default_rng(11).random(N * K)
    ids = [str(i) for i in range(N)]
    run = Run.create(
        {"source": "upload"},
        queries=pd.DataFrame({"query_id": ids, "question": ids}),
        passages=pd.DataFrame(
            {
                "query_id": np.repeat(ids, K),
                "passage_id": [str(j) for j in range(K)] * N,
                "retrieval_rank": np.tile(np.arange(1.0, K + 1), N),
                "influence_score": influence,
            }
        ),
    )
    return run, analyse(run, 0.7)


def within(count: int, share: float) -> bool:
    """Whether a count is what N trials of that probability give, but for one case in 10,000."""
    low, high = binom.ppf([0.00005, 0.99995], N, share)
    return bool(low <= count <= high)


def test_the_share_of_random_orders_below_the_threshold(analysis):
    run, found = analysis
    expected = chance_band(K).p_below(0.7)
    assert within(int((found.queries["label"] == "Divergent").sum()), expected)
    assert summary(run, found)["p_random_divergent"] == pytest.approx(expected)


def test_the_band_holds_95_percent_of_random_orders(analysis):
    _, found = analysis
    band = chance_band(K)
    inside = found.queries["rho"].between(band.low - 1e-9, band.high + 1e-9)
    assert 0.94 < inside.mean() < 0.96


def test_p_values_of_random_orders_are_uniform(analysis):
    _, found = analysis
    # The t approximation is not exact at k = 10; a tenth of a percentage point is visible here.
    for level in (0.05, 0.2, 0.5):
        assert abs((found.queries["p_value"] <= level).mean() - level) < 0.012


def test_the_95_percent_interval_of_the_mean_covers_zero_about_95_percent_of_the_time(analysis):
    _, found = analysis
    from core.stats import mean_interval

    chunks = found.queries["rho"].to_numpy().reshape(500, 40)
    hits = sum(low <= 0 <= high for low, high in map(mean_interval, chunks))
    assert binom.ppf(0.0001, 500, 0.95) <= hits <= binom.ppf(0.9999, 500, 0.95)
