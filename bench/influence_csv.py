"""Import and analysis of an influence CSV, against pandas ``groupby.apply`` of the same metrics.

Run from the repository root: ``python -m bench.influence_csv [--questions 100000]``. Prints times
and ratios; asserts nothing.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import entropy, rankdata, spearmanr

from core.charts import influence as charts
from core.influence import InfluenceAnalysis, analyse, summary
from core.sources.influence_csv import read_influence_csv

PASSAGES = 10
BUDGET_S = 60.0


def make_frame(n_questions: int, seed: int = 0) -> pd.DataFrame:
    """Random influences in the shape of the published file, tied here and there."""
    rng = np.random.default_rng(seed)
    rows = n_questions * PASSAGES
    number = np.repeat(np.arange(n_questions), PASSAGES)
    rouge = rng.integers(0, 51, rows) / 50
    return pd.DataFrame(
        {
            "query": [f"question number {i} of the benchmark" for i in number],
            "baseline_answer": [f"the answer to number {i}" for i in number],
            "doc_id": np.tile(np.arange(PASSAGES), n_questions),
            "passage": "",
            "retrieval_rank": np.tile(np.arange(1, PASSAGES + 1), n_questions),
            "retrieval_score": rng.exponential(5, rows).round(4),
            "rouge_l": rouge,
            "influence_score": (1 - rouge).round(4),
        }
    )


def plain_metrics(group: pd.DataFrame) -> pd.Series:
    """Compute the metrics of one question, one scipy call each."""
    influence = group["influence_score"].to_numpy()
    total = influence.sum()
    constant = np.ptp(influence) == 0
    rho = math.nan if constant else spearmanr(group["retrieval_rank"], rankdata(-influence)).statistic
    return pd.Series(
        {
            "rho": rho,
            "dominance": influence.max() / total if total else math.nan,
            "entropy": entropy(influence / total) if total else math.nan,
        }
    )


def timed(what: str, work: Callable[[], Any]) -> tuple[Any, float]:
    """Run something, print how long it took, and return both."""
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    print(f"{what:<42}{seconds:9.2f} s")
    return result, seconds


def plain_time(frame: pd.DataFrame, n_questions: int) -> float:
    """Time groupby.apply, on as many questions as fit the budget."""
    columns = ["retrieval_rank", "influence_score"]

    def apply(n: int) -> pd.DataFrame:
        part = frame.head(n * PASSAGES)
        return part.groupby("query", sort=False)[columns].apply(plain_metrics)

    probe = min(1_000, n_questions)
    start = time.perf_counter()
    apply(probe)
    per_question = (time.perf_counter() - start) / probe
    n = min(n_questions, max(probe, int(BUDGET_S / per_question)))
    _, seconds = timed(f"pandas groupby.apply, {n:,} questions", lambda: apply(n))
    if n < n_questions:
        seconds *= n_questions / n
        print(f"{'  scaled to all questions':<42}{seconds:9.2f} s")
    return seconds


def chart_sizes(analysis: InfluenceAnalysis) -> None:
    """Print the JSON size of the figures that show all questions at once."""
    for name in ("rho_histogram", "entropy_dominance", "influence_by_rank", "rank_against_rank"):
        figure, _ = timed(f"figure {name}", lambda name=name: getattr(charts, name)(analysis))
        print(f"{'  JSON':<42}{len(figure.to_json()) / 1e6:9.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only whether it runs")
    options = parser.parse_args()
    n_questions = 100 if options.smoke else options.questions
    frame = make_frame(n_questions)
    print(f"{n_questions:,} questions x {PASSAGES} passages = {len(frame):,} rows")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "influence.csv"
        frame.to_csv(path, index=False)
        print(f"{'file':<42}{path.stat().st_size / 1e6:9.1f} MB")
        imported, t_import = timed("import (read, check, build tables)", lambda: read_influence_csv(path))
    analysis, t_analyse = timed("analyse", lambda: analyse(imported.run))
    _, t_summary = timed("summary", lambda: summary(analysis))
    timed("labels at another threshold", lambda: analysis.labelled(0.6))
    t_plain = plain_time(frame, n_questions)
    print(f"{'groupby.apply / (analyse + summary)':<42}{t_plain / (t_analyse + t_summary):9.1f} x")
    print(f"{'groupby.apply / (import + both)':<42}{t_plain / (t_import + t_analyse + t_summary):9.1f} x")
    chart_sizes(analysis)


if __name__ == "__main__":
    main()
