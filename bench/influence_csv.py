"""Import of an influence CSV against `pandas.read_csv` alone, and its analysis against ``groupby.apply``.

Run from the repository root: ``python -m bench.influence_csv [--questions 100000]``. Prints rows a second,
peak memory, times and ratios; asserts nothing. Both readers run in processes of their own, in turns.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import entropy, rankdata, spearmanr

from core.charts import influence as charts
from core.influence import InfluenceAnalysis, analyse, summary
from core.sources.influence_csv import read_influence_csv

PASSAGES = 10
BUDGET_S = 60.0
READERS: dict[str, Callable[[Path], Any]] = {"leadline": read_influence_csv, "pandas": pd.read_csv}


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


def high_water() -> int:
    """Return the most memory that this process has held, in bytes.

    Not ru_maxrss, which in a child starts at what its parent held.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("The kernel does not say how much memory a process has held.")


def read_once(reader: str, path: Path, small: Path) -> dict[str, float]:
    """Read a file in this process; return seconds, and peak memory in bytes per byte of the file.

    What a first small file costs (libraries loaded, allocators set up) is taken off.
    """
    READERS[reader](small)
    before, start = high_water(), time.perf_counter()
    READERS[reader](path)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak": (high_water() - before) / path.stat().st_size}


def in_a_process(reader: str, path: Path, small: Path) -> dict[str, float]:
    """Return what `read_once` measures in a process of its own."""
    command = [sys.executable, "-m", "bench.influence_csv", "--read", reader, str(path), str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def import_lines(path: Path, small: Path, n_rows: int, repeats: int) -> None:
    """Print rows a second and peak memory of both readers: median (min to max) of processes in turns."""
    found = [{name: in_a_process(name, path, small) for name in READERS} for _ in range(repeats)]
    for name in READERS:
        rates = [n_rows / one[name]["seconds"] for one in found]
        peaks = [one[name]["peak"] for one in found]
        print(f"{name + ', rows/s':<42}{spread(rates, ',.0f')}")
        print(f"{name + ', peak memory / file':<42}{spread(peaks, '.2f')} x")
    for what in ("seconds", "peak"):
        ratios = [one["leadline"][what] / one["pandas"][what] for one in found]
        print(f"{what + ', leadline / pandas.read_csv':<42}{spread(ratios, '.2f')} x")


def spread(values: list[float], form: str) -> str:
    """Return the median of some values, with the least and the most."""
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


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
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only whether it runs")
    parser.add_argument(
        "--read", nargs=3, metavar=("READER", "FILE", "SMALL_FILE"), help="one reader, as JSON"
    )
    options = parser.parse_args()
    if options.read:
        reader, *paths = options.read
        print(json.dumps(read_once(reader, *map(Path, paths))))
        return
    n_questions = 100 if options.smoke else options.questions
    frame = make_frame(n_questions)
    print(f"{n_questions:,} questions x {PASSAGES} passages = {len(frame):,} rows")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "influence.csv"
        frame.to_csv(path, index=False)
        print(f"{'file':<42}{path.stat().st_size / 1e6:9.1f} MB")
        small = Path(folder) / "small.csv"
        make_frame(min(2_000, n_questions)).to_csv(small, index=False)
        import_lines(path, small, len(frame), 1 if options.smoke else options.repeats)
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
