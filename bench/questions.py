"""How many questions each headline number needs: half of its 95 % interval in simulated runs.

Run from the repository root: ``PYTHONPATH=. python bench/questions.py``. A row is a headline number, a column
a size of run; a cell is the median, over runs with different seeds, of half the width of the interval. The
last two columns are the questions for ±0.1 and ±0.05, from the largest size: the width falls as 1/√n.
docs/how-to/questions.md holds the table.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from core.diagnosis import Diagnosis
from core.socket import Number
from core.sources.simulation import SimulationOptions, simulate
from core.stats import wilson_interval

# Diagnostic and key of the headline numbers; counts are read as shares.
NUMBERS = (
    ("answers", "n_correct"),
    ("influence", "mean_rho"),
    ("influence", "mean_influence_ndcg"),
    ("retrieval_quality", "hit_at_1"),
    ("retrieval_quality", "mrr"),
    ("retrieval_quality", "gold_most_influential"),
    ("claims", "mean_grounding"),
    ("uncertainty", "n_stable"),
    ("uncertainty", "mean_agreement"),
    ("uncertainty", "agreement_auroc"),
    ("confidence", "mean_confidence"),
    ("confidence", "confidence_auroc"),
    ("confidence", "confidence_gap"),
)
SIZES, RUNS = (50, 100, 200), 5


def half_width(number: Number) -> float:
    """Return half of the 95 % interval of a mean, or of the share that a count is; NaN where undefined."""
    if number.interval is not None:
        low, high = number.interval
    elif number.value is not None and number.of:
        low, high = wilson_interval(number.value / number.of, number.of)
    else:
        return math.nan
    return (high - low) / 2


def numbers(size: int, seed: int) -> list[Number]:
    """Return the headline numbers of one simulated run."""
    run = Diagnosis(simulate(SimulationOptions(queries=size, passages=10, seed=seed)))
    found = {(name, one.key): one for name in {n for n, _ in NUMBERS} for one in run.numbers(name)}
    return [found[key] for key in NUMBERS]


def needed(half: float, size: int, target: float) -> str:
    """Return the questions for a half width, to two digits."""
    n = size * (half / target) ** 2
    return f"{float(f'{n:.2g}'):,.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes")
    sizes, n_runs = ((20, 40), 1) if parser.parse_args().smoke else (SIZES, RUNS)
    runs = {size: [numbers(size, seed) for seed in range(n_runs)] for size in sizes}
    table = np.array(
        [np.nanmedian([[half_width(one) for one in run] for run in runs[size]], axis=0) for size in sizes]
    )
    print(f"| number | {' | '.join(map(str, sizes))} | for ±0.1 | for ±0.05 |")
    print("|---" * (len(sizes) + 3) + "|")
    for one, row in zip(runs[sizes[0]][0], table.T, strict=True):
        cells = [f"±{half:.3f}" for half in row]
        cells += [needed(row[-1], sizes[-1], target) for target in (0.1, 0.05)]
        print(f"| {one.title} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
