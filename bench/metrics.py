"""Every influence metric of a million passages at once, against pandas ``groupby.apply``.

``groupby.apply`` is timed on some of the questions and scaled: its time grows with their number.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import entropy, rankdata, spearmanr

from bench.influence_csv import PASSAGES, make_frame
from bench.lines import Line, Size, in_turn
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


def lines(size: Size) -> Iterator[Line]:
    """Measure in seconds of the processor: both sides use one core."""
    n, n_plain = size.pick(100, 20_000, 100_000), size.pick(100, 500, 5_000)
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

    def plain(_: int) -> pd.DataFrame:
        return part.groupby("query", sort=False)[columns].apply(plain_metrics)

    def whole(_: int) -> pd.DataFrame:
        significance._distribution.cache_clear()
        return analyse(run).queries

    analyse(run)  # what is loaded and cached once
    for name, ours, asked in (
        ("the same metrics", lambda _: metrics_of(frame), {"floor": 100, "goal": 200}),
        ("the whole analysis, which also tests and labels", whole, {}),
    ):
        ratios = []
        for slow, fast, ratio in in_turn(plain, ours, size.pick(1, 3, 5), time.process_time):
            ratios.append(ratio * n / n_plain)
            np.testing.assert_allclose(fast[list(METRICS)].head(n_plain), slow, rtol=0, atol=1e-12)
        yield Line.of(
            f"{name}, {len(frame):,} passages",
            "groupby.apply",
            ratios,
            f"{len(METRICS)} metrics of {n_plain:,} questions equal to 1e-12",
            **asked,
        )
