"""Statistics: intervals, permutation tests, correlations, multiple comparisons and the quality of a ranking.

Pure functions on arrays, thin over scipy and scikit-learn: what is added is the handling of ties, missing
values and degenerate data. Missing values (NaN) are left out; "undefined" is NaN, never 0 or 1.
"""

from core.stats.correlation import (
    FEWEST_APART,
    FEWEST_CASES,
    Correlation,
    Correlations,
    correlations,
    n_apart,
)
from core.stats.intervals import (
    bootstrap_interval,
    cases_needed,
    mean_in_unit,
    mean_interval,
    paired_interval,
    wilson_interval,
)
from core.stats.ranking import (
    RANKING_MEASURES,
    auprc,
    aurc,
    auroc,
    auroc_difference,
    e_aurc,
    prr,
    ranking_quality,
    risk_coverage,
)
from core.stats.shared import Interval, known_pairs
from core.stats.significance import (
    holm,
    paired_permutation_test,
    permutation_test,
    poisson_binomial_interval,
    poisson_binomial_tail,
)

__all__ = [
    "Correlation",
    "Correlations",
    "FEWEST_APART",
    "FEWEST_CASES",
    "Interval",
    "RANKING_MEASURES",
    "auprc",
    "aurc",
    "auroc",
    "auroc_difference",
    "bootstrap_interval",
    "cases_needed",
    "correlations",
    "e_aurc",
    "holm",
    "known_pairs",
    "mean_in_unit",
    "mean_interval",
    "n_apart",
    "paired_interval",
    "paired_permutation_test",
    "permutation_test",
    "poisson_binomial_interval",
    "poisson_binomial_tail",
    "prr",
    "ranking_quality",
    "risk_coverage",
    "wilson_interval",
]
