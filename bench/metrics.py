"""Every influence metric of a million passages at once, against pandas ``groupby.apply``.

Run from the repository root: ``python -m bench.metrics``. Both take turns in one process; times are of the
processor. ``groupby.apply`` is timed on some of the questions and scaled: its time grows with their number.
Floor 100 times, goal 200 times.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import entropy, rankdata, spearmanr

from bench.influence_csv import PASSAGES, make_frame
from core.arrays import equal_sized, ranks_within, spearman_within
from core.influence import analyse
from core.influence.metrics import RBO_PERSISTENCE, dominance_within, entropy_within, expected_rbo
from core.influence.ndcg import ndcg_rows
from core.run import Run
from core.stats import significance

METRICS = (
    "rho", "p_value", "dominance", "entropy", "entropy_normalised", "rank_biased_overlap", "influence_ndcg",
)  # fmt: skip


def plain_metrics(group: pd.DataFrame) -> pd.Series:
    """Compute the metrics of one question, as one would write them down."""
    order, influence = group["retrieval_rank"].to_numpy(), group["influence_score"].to_numpy()
    total, k = influence.sum(), influence.size
    found = dict.fromkeys(METRICS, math.nan)
    if total:
        shares, discount = influence / total, 1 / np.log2(1 + order)
        best = np.sort(influence)[::-1] @ (1 / np.log2(np.arange(2, k + 2)))
        found |= {
            "dominance": shares.max(),
            "entropy": entropy(shares),
            "influence_ndcg": influence @ discount / best,
        }
        found["entropy_normalised"] = found["entropy"] / math.log(k)
    if np.ptp(influence):
        rank = rankdata(-influence)
        found["rho"], found["p_value"] = spearmanr(order, rank)
        first, last = rankdata(-influence, "min"), rankdata(-influence, "max")
        shared = [
            (np.clip((depth - first + 1) / (last - first + 1), 0, 1) * (order <= depth)).sum() / depth
            for depth in range(1, k + 1)
        ]
        p = RBO_PERSISTENCE
        found["rank_biased_overlap"] = (1 - p) * sum(
            p**i * one for i, one in enumerate(shared)
        ) + p**k * shared[-1]
    return pd.Series(found)


def metrics_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Compute the same for all questions at once, with what the analysis of a run is made of."""
    group = np.asarray(pd.factorize(frame["query"])[0], dtype=np.int64)
    influence, n = frame["influence_score"].to_numpy(), int(group.max()) + 1
    order = ranks_within(frame["retrieval_rank"].to_numpy(dtype=np.float64), group)
    rank = ranks_within(influence, group, descending=True)
    rho, p_value = spearman_within(order, rank, group, n)
    spread = entropy_within(influence, group, n)
    overlap, gain = np.full(n, np.nan), np.full(n, np.nan)
    for questions, rows in equal_sized(group, np.ones(n, dtype=bool)):
        # In parts that stay near the processor, as the analysis has it.
        for part in np.array_split(np.flatnonzero(~np.isnan(rho[questions])), -(-rows.size // 400_000)):
            pair = order[rows[part]], rank[rows[part]]
            overlap[questions[part]] = expected_rbo(*pair, RBO_PERSISTENCE)
        gain[questions] = ndcg_rows(order[rows], influence[rows])[:, 0]
    columns = (
        rho,
        p_value,
        dominance_within(influence, group, n),
        spread,
        spread / math.log(PASSAGES),
        overlap,
        gain,
    )
    return pd.DataFrame(dict(zip(METRICS, columns, strict=True)))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the processor's seconds that it took."""
    start = time.process_time()
    return work(), time.process_time() - start


def main() -> None:
    """Print the ratios: median, and the range over the repeats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only whether it runs")
    n, n_plain, repeats = (100, 100, 1) if parser.parse_args().smoke else (100_000, 5_000, 5)
    frame = make_frame(n)
    run = Run.create(
        {"source": "upload"},
        queries=pd.DataFrame({"query_id": frame["query"].unique(), "question": frame["query"].unique()}),
        passages=pd.DataFrame(
            {
                "query_id": frame["query"],
                "passage_id": frame["doc_id"].astype("str"),
                "retrieval_rank": frame["retrieval_rank"].astype("float64"),
                "influence_score": frame["influence_score"],
            }
        ),
    )
    part, columns = frame.head(n_plain * PASSAGES), ["retrieval_rank", "influence_score"]
    analyse(run)  # what is loaded and cached once
    ratios: dict[str, list[float]] = {"the same metrics": [], "the whole analysis": []}
    for _ in range(repeats):
        plain, slow = timed(lambda: part.groupby("query", sort=False)[columns].apply(plain_metrics))
        slow *= n / n_plain
        ours, fast = timed(lambda: metrics_of(frame))
        significance._distribution.cache_clear()
        whole, all_of_it = timed(lambda: analyse(run).queries)
        ratios["the same metrics"].append(slow / fast)
        ratios["the whole analysis"].append(slow / all_of_it)
        print(
            f"groupby.apply {slow:.1f} s, the same metrics {fast:.2f} s, the whole analysis {all_of_it:.2f} s"
        )
        for found in (ours, whole):
            np.testing.assert_allclose(found[list(METRICS)].head(n_plain), plain, rtol=0, atol=1e-12)
    print(f"{n:,} questions x {PASSAGES} passages; {', '.join(METRICS)}")
    print(f"all equal to 1e-12 on {n_plain:,} questions; floor 100 x, goal 200 x")
    for what, values in ratios.items():
        middle, low, high = statistics.median(values), min(values), max(values)
        print(f"{what:<20}{middle:6.0f} x ({low:.0f} to {high:.0f}) as fast as groupby.apply")


if __name__ == "__main__":
    main()
