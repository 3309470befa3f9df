"""From a run's answers to the influence of every passage, and how far answers move on their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from core.arrays import Bools, Floats, Ints, constant_within, ranks_within
from core.influence.measures import Measure
from core.influence.metrics import influence_scores, noise_quantile
from core.run import Run
from core.text.abstention import answer_status
from core.text.overlap import rouge_l


def passage_frame(run: Run, group: Ints, k: Ints, measure: Measure, attribution: Any = None) -> pd.DataFrame:
    """Return one row per passage: influence, its interval, ranks and share of its question."""
    passages = run.passages
    influence, low, high = _columns(run, measure, attribution) if measure.columns else _influences(run, group)
    influence[run.queries["answer_status"].isin(["empty", "error"]).to_numpy()[group]] = np.nan
    gain = np.maximum(influence, 0.0)  # a passage that speaks against the answer has no share of it
    total = np.bincount(group, np.nan_to_num(gain), len(k))[group]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, gain / total, np.nan)
    frame = passages[["query_id", "passage_id", "retrieval_rank", "retrieval_score", "is_gold"]].copy()
    frame["retrieval_order"] = ranks_within(passages["retrieval_rank"].to_numpy(dtype=np.float64), group)
    frame["influence"] = influence
    frame["influence_low"] = low
    frame["influence_high"] = high
    frame["influence_rank"] = ranks_within(influence, group, descending=True)
    frame["influence_share"] = share
    frame["rank_shift"] = frame["retrieval_order"] - frame["influence_rank"]
    return frame


def _columns(run: Run, measure: Measure, attribution: Any) -> tuple[Floats, Floats, Floats]:
    """Return influence and the ends of its interval as they were measured; unknown ends are NaN."""
    found, frame, ids = np.full((3, len(run.passages)), np.nan), run.passages, ["query_id", "passage_id"]
    if measure.reads_attribution:
        frame = attribution.passages.set_index(ids).reindex(pd.MultiIndex.from_frame(frame[ids]))
        frame = frame[[*measure.columns]].astype("float64").round(9)  # sums of the same numbers are equal
    found[: len(measure.columns)] = [
        frame[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in measure.columns
    ]
    influence, low, high = found
    return influence, low, high


def _influences(run: Run, group: Ints) -> tuple[Floats, Floats, Floats]:
    """Influence and its range over the repeated baselines, from the answers where they are known."""
    passages, queries = run.passages, run.queries
    influence = passages["influence_score"].to_numpy(dtype=np.float64, na_value=np.nan).copy()
    low, high = np.full(influence.size, np.nan), np.full(influence.size, np.nan)
    baselines = queries["answer"].to_list()
    repeats = _repeat_answers(run)
    query_ids = queries["query_id"].to_list()
    known = (passages["ablated_answer"].notna() & (passages["ablated_status"] != "error")).to_numpy()
    ablated = passages["ablated_answer"].to_list()
    asked = np.array([isinstance(baseline, str) for baseline in baselines], dtype=bool)
    rows = np.flatnonzero(known & asked[group])
    given, changed = [baselines[group[row]] for row in rows], [ablated[row] for row in rows]
    influence[rows] = influence_scores(given, changed)
    again = [repeats.get(query_ids[group[row]], []) for row in rows]
    times = np.array([len(answers) for answers in again], dtype=np.int64)
    others = influence_scores(
        [answer for answers in again for answer in answers], [ablated[row] for row in np.repeat(rows, times)]
    )
    repeated = rows[times > 0]
    if repeated.size:
        # One score that is missing leaves the range missing.
        first = np.cumsum(times)[times > 0] - times[times > 0]
        low[repeated] = np.minimum(influence[repeated], np.minimum.reduceat(others, first))
        high[repeated] = np.maximum(influence[repeated], np.maximum.reduceat(others, first))
    influence[(passages["ablated_status"] == "error").to_numpy()] = np.nan
    return influence, low, high


def _repeat_answers(run: Run) -> dict[str, list[str]]:
    usable = run.repeats[run.repeats["answer"].notna() & (run.repeats["answer_status"] != "error")]
    return {str(q): answers.to_list() for q, answers in usable.groupby("query_id", sort=False)["answer"]}


def n_repeats(run: Run) -> Ints:
    """Return the number of answers to the unchanged prompt that each question has beside its baseline."""
    repeats = _repeat_answers(run)
    return np.array([len(repeats.get(query_id, ())) for query_id in run.queries["query_id"]], dtype=np.int64)


def noise_quantiles(run: Run) -> Floats:
    """Return the noise floor of every question, NaN without repeats."""
    repeats = _repeat_answers(run)
    baselines = zip(run.queries["query_id"], run.queries["answer"], strict=True)
    found = [
        noise_quantile(answer, repeats[query_id])
        if query_id in repeats and isinstance(answer, str)
        else np.nan
        for query_id, answer in baselines
    ]
    return np.array(found, dtype=np.float64)


def closed_book_agreement(run: Run) -> Floats:
    """Return ROUGE-L F1 of every answer with its closed-book answer; NaN where either says nothing."""
    pairs = zip(run.queries["answer"], run.queries["closed_book_answer"], strict=True)
    # Two abstentions agree, but not on an answer.
    found = [
        rouge_l(answer, closed).f1
        if isinstance(answer, str) and isinstance(closed, str) and answer_status(answer) == "answered"
        else np.nan
        for answer, closed in pairs
    ]
    return np.array(found, dtype=np.float64)


def undefined_reasons(
    queries: pd.DataFrame, influence: Floats, order: Floats, group: Ints, k: Ints, missing_because: str
) -> pd.Series:
    """Say why rank agreement is undefined; the first reason that applies."""
    n = len(queries)
    missing = np.bincount(group, np.isnan(influence) | np.isnan(order), n)
    total = np.bincount(group, np.abs(influence), n)
    status = queries["answer_status"]
    rules: list[tuple[str, Bools]] = [
        ("error", (status == "error").to_numpy(dtype=bool)),
        ("empty_baseline", (status == "empty").to_numpy(dtype=bool)),
        ("too_few_passages", k < 3),
        (missing_because, missing == k),
        ("incomplete", missing > 0),
        ("inert", total == 0),
        ("all_equal", constant_within(influence, group, n)),
        ("no_retrieval_order", constant_within(order, group, n)),
    ]
    reason = np.select([mask for _, mask in rules], [name for name, _ in rules], default="")
    return pd.Series(reason, dtype="str").replace("", None)


def has_ties(influence_rank: Floats, group: Ints, n: int) -> Bools:
    """Tell which questions have equal influences."""
    # Average ranks of k distinct values are 1..k, so their squares sum to k(k+1)(2k+1)/6; ties lower it.
    ranked = ~np.isnan(influence_rank)
    m = np.bincount(group, ranked, n)
    squares = np.bincount(group, np.where(ranked, influence_rank, 0) ** 2, n)
    return np.asarray(squares < m * (m + 1) * (2 * m + 1) / 6 - 1e-6)
