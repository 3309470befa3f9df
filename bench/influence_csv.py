"""Import of an influence CSV against `pandas.read_csv` alone: rows a second, and peak memory.

Each reading has a process of its own, in turns. Memory is the most that the process held beyond what a first,
small file took (libraries, allocators), in bytes for each byte of the file.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.lines import Line, Size
from core.sources.formats import import_file

PASSAGES = 10
OURS, PANDAS = "import", "pandas.read_csv"
READERS: dict[str, Callable[[Path], Any]] = {OURS: import_file, PANDAS: pd.read_csv}


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds that a file took, and bytes of memory for each of its bytes."""

    seconds: float
    peak: float


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


def reading(reader: str, path: Path, small: Path) -> Reading:
    """Read a file in a process of its own, after a small one."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
        return alone.submit(_read, reader, path, small).result()


def _read(reader: str, path: Path, small: Path) -> Reading:
    READERS[reader](small)
    before, start = _high_water(), time.perf_counter()
    READERS[reader](path)
    seconds = time.perf_counter() - start
    return Reading(seconds, (_high_water() - before) / path.stat().st_size)


def _high_water() -> int:
    """Return the most memory that this process has held; ru_maxrss may be what its parent held."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def lines(size: Size) -> Iterator[Line]:
    """Rows a second, time and memory of both."""
    n_questions, rounds = size.pick(200, 20_000, 100_000), size.pick(1, 1, 3)
    found: list[dict[str, Reading]] = []
    small_rows = size.pick(1_000, 20_000, 20_000)
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "influence.csv", Path(folder) / "small.csv"
        for to, n in ((path, n_questions), (small, small_rows // PASSAGES)):
            make_frame(n).to_csv(to, index=False)
        megabytes = path.stat().st_size / 1e6
        for turn in range(rounds):
            order = (OURS, PANDAS) if turn % 2 else (PANDAS, OURS)
            found.append({name: reading(name, path, small) for name in order})
    rows = n_questions * PASSAGES
    what = f"{rows:,} rows, {megabytes:,.0f} MB"
    for name in READERS:
        rates = [rows / one[name].seconds / 1_000 for one in found]
        yield Line.of(f"{name}, {what}", "the clock", rates, "a process of its own", unit="thousand rows/s")
    after = f"beyond what a file of {small_rows:,} rows took"
    for name in READERS:
        peaks = [one[name].peak for one in found]
        most = 3.0 if name == OURS else None
        yield Line.of(f"peak memory of {name}, {what}", "the file", peaks, after, floor=most, less=True)
    ratios = [one[PANDAS].seconds / one[OURS].seconds for one in found]
    note = "the import also checks every cell, groups the rows and makes the run"
    yield Line.of(f"{OURS}, {what}", PANDAS, ratios, note)
