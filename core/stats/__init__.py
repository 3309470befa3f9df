"""Statistics: intervals, permutation tests, correlations, multiple comparisons, ranking and calibration.

Pure functions on arrays, thin over scipy and scikit-learn: what is added is the handling of ties, missing
values and degenerate data. Missing values (NaN) are left out; "undefined" is NaN, never 0 or 1.
"""

from core.stats.calibration import (
    DEFAULT_BINS,
    BrierParts,
    ReliabilityBin,
    brier_parts,
    brier_score,
    expected_calibration_error,
    isotonic_fit,
    maximum_calibration_error,
    non_negative_logistic,
    platt_fit,
    reliability_bins,
)
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
    bootstrap_intervals,
    cases_needed,
    clustered_interval,
    mean_in_unit,
    mean_interval,
    paired_interval,
    wilson_interval,
)
from core.stats.ranking import (
    FEWEST_OF_EACH,
    auprc,
    aurc,
    auroc,
    auroc_difference,
    auroc_interval,
    auroc_p_value,
    aurocs,
    e_aurc,
    prr,
    risk_coverage,
)
from core.stats.shared import Interval, known_pairs, resamples
from core.stats.significance import (
    holm,
    paired_permutation_test,
    poisson_binomial_interval,
    poisson_binomial_tail,
)

__all__ = [
    "BrierParts",
    "Correlation",
    "Correlations",
    "DEFAULT_BINS",
    "FEWEST_APART",
    "FEWEST_CASES",
    "FEWEST_OF_EACH",
    "Interval",
    "ReliabilityBin",
    "auprc",
    "aurc",
    "auroc",
    "auroc_difference",
    "auroc_interval",
    "auroc_p_value",
    "aurocs",
    "bootstrap_interval",
    "bootstrap_intervals",
    "brier_parts",
    "brier_score",
    "cases_needed",
    "clustered_interval",
    "correlations",
    "e_aurc",
    "expected_calibration_error",
    "holm",
    "isotonic_fit",
    "known_pairs",
    "maximum_calibration_error",
    "mean_in_unit",
    "mean_interval",
    "n_apart",
    "non_negative_logistic",
    "paired_interval",
    "paired_permutation_test",
    "platt_fit",
    "poisson_binomial_interval",
    "poisson_binomial_tail",
    "prr",
    "reliability_bins",
    "resamples",
    "risk_coverage",
    "wilson_interval",
]
