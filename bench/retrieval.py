"""rank_bm25 against bm25s, as this project uses them: the same passages and queries, in the same process.

Run from the repository root: ``python -m bench.retrieval [--passages 100000] [--queries 50]``. Prints times
and ratios, and how far the scores agree; asserts nothing.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from core.retrieval import BM25Retriever, FastBM25Retriever, Retriever

VOCABULARY, LENGTH = 50_000, 100


def corpus(n: int, rng: random.Random) -> list[str]:
    """Passages of 100 words, drawn as often as words of a language are (Zipf)."""
    words = [f"word{i}" for i in range(VOCABULARY)]
    totals = np.cumsum([1 / (i + 1) for i in range(VOCABULARY)]).tolist()
    return [" ".join(rng.choices(words, cum_weights=totals, k=LENGTH)) for _ in range(n)]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def peak() -> float:
    """Most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def per_query(retrievers: tuple[Retriever, Retriever], queries: list[str]) -> list[tuple[float, float]]:
    """Time both on each query in turn, so that both meet the same state of the machine."""
    return [tuple(timed(lambda r=r, q=q: r.top(q, 10))[1] for r in retrievers) for q in queries]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only whether it runs")
    options = parser.parse_args()
    if options.smoke:
        options.passages, options.queries = 200, 3
    rng = random.Random(0)
    texts = corpus(options.passages, rng)
    queries = [" ".join(rng.sample(rng.choice(texts).split(), 8)) for _ in range(options.queries)]
    print(f"{len(texts):,} passages of {LENGTH} words, {len(queries)} queries of 8; {peak():,.0f} MB before")
    # The lean one first: the peak of the process only ever rises.
    fast, t_fast = timed(lambda: FastBM25Retriever(texts, "split"))
    print(f"{'index, bm25s':<28}{t_fast:9.2f} s   {peak():,.0f} MB at most so far")
    slow, t_slow = timed(lambda: BM25Retriever(texts, "split"))
    print(f"{'index, rank_bm25':<28}{t_slow:9.2f} s   {peak():,.0f} MB at most so far")
    print(f"{'rank_bm25 / bm25s, index':<28}{t_slow / t_fast:9.1f} x")
    pairs = per_query((slow, fast), queries)
    ratios = [a / b for a, b in pairs]
    for name, times in zip(("rank_bm25", "bm25s"), zip(*pairs, strict=True), strict=True):
        print(f"{f'a query, {name} (median)':<28}{1000 * statistics.median(times):9.1f} ms")
    low, mid, high = min(ratios), statistics.median(ratios), max(ratios)
    print(f"{'rank_bm25 / bm25s, a query':<28}{mid:9.1f} x   (min {low:.1f}, max {high:.1f})")
    apart = max(float(np.abs(slow.scores(q) - fast.scores(q)).max()) for q in queries[:5])
    same = sum(slow.top(q, 10) == fast.top(q, 10) for q in queries)
    print(f"largest difference of scores {apart:.1e}; same first ten for {same} of {len(queries)} queries")


if __name__ == "__main__":
    main()
