"""How well a run's retriever found the gold passages, and whether the model then used them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import comb

from core.arrays import Bools, Floats, Ints
from core.errors import InputError
from core.retrieval_quality.definitions import REASONS
from core.retrieval_quality.metrics import (
    first_within,
    found_within,
    gain_within,
    hit_by_chance,
    ideal_gain,
    ndcg_by_chance,
    recall_by_chance,
    reciprocal_by_chance,
)
from core.run import Run
from core.socket import Definition
from core.stats import mean_in_unit

DEPTHS = (1, 3, 5, 10)
_AT_K = ("hit_at_k", "recall_at_k", "ndcg_at_k")


@dataclass(frozen=True, slots=True)
class RetrievalQuality:
    """Retrieval metrics of a run.

    ``queries``, one row per question, in the run's order: ``query_id, question``; ``k`` passages retrieved;
    ``n_gold`` in the collection; ``n_found`` of them retrieved; ``first_gold_rank`` place of the first;
    ``reciprocal_rank``; ``hit_at_1, recall_at_1, ndcg_at_1`` and so on for every depth of ``ks``. Beside the
    influence view: ``gold_influence_rank``, the best influence rank of a retrieved gold passage (1 = most
    influential, ties share their average), and ``gold_most_influential``, whether no other passage is as
    influential as the best gold one, with ``gold_most_influential_by_chance``, the probability when the
    influences are dealt to the passages at random. Values are NaN where undefined: ``reason`` says why for
    hit and reciprocal rank, ``recall_reason`` for recall and nDCG, ``influence_reason`` for the influence
    view; the codes are those of `core.retrieval_quality.definitions.REASONS` and of the influence analysis.

    ``summary``, one row per metric and depth: ``metric`` (a name in ``METRICS``), ``k`` (missing for mrr and
    gold_most_influential), ``mean, low, high`` (95 % interval), ``chance``, the mean by chance, ``n``
    questions, ``n_left_out`` and ``left_out``, which says why.
    """

    queries: pd.DataFrame
    summary: pd.DataFrame
    ks: tuple[int, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return the summary, one row per metric and depth."""
        return self.summary


def retrieval_quality(run: Run, influence: Any, ks: Sequence[int] = DEPTHS) -> RetrievalQuality:
    """Compute hit, recall, MRR and nDCG of a run where gold passages are known.

    Cost: no LLM calls; 100,000 questions take about a second beside the analysis.

    Parameters
    ----------
    run : Run
        Any run. Which passages are gold is read from ``is_gold`` (a passage without a mark counts as not
        gold, as is usual for pooled judgements), how many the collection holds from ``n_gold``.
    influence : InfluenceAnalysis
        The influence analysis of the same run.
    ks : sequence of int
        Depths, each at least 1, else `InputError`. One beyond the passages of every question has no values:
        what stands there was never asked for.

    Returns
    -------
    RetrievalQuality
        Questions without known gold are undefined, never 0. Where the passages are marked but ``n_gold`` is
        missing, a question without a retrieved gold passage counts as a miss, and recall and nDCG are
        undefined: the passages retrieved are only a lower bound of those that exist. Intervals: Wilson's for
        shares of questions (hit, gold_most_influential), Student's t for the other means; where all values
        are equal, Wilson's too, which is on the safe side for any values in [0, 1].
    """
    depths = _checked(ks)
    rows = _Rows(run)
    q = pd.DataFrame(
        {
            "query_id": run.queries["query_id"],
            "question": run.queries["question"],
            "k": rows.k,
            "n_gold": run.queries["n_gold"],
        }
    )
    q["reason"], q["recall_reason"] = rows.reasons()
    known = q["reason"].isna().to_numpy()
    first = first_within(rows.gold, rows.place, rows.group, rows.n)
    q["n_found"] = pd.array(rows.n_found, dtype="Int64")
    q.loc[q["reason"].isin(["no_gold", "gold_not_marked"]).to_numpy(), "n_found"] = pd.NA
    q["first_gold_rank"] = np.where(known, first, np.nan)
    q["reciprocal_rank"] = np.where(known, np.nan_to_num(1 / first), np.nan)
    by_chance = reciprocal_by_chance(rows.k, rows.n_found)
    q["reciprocal_rank_by_chance"] = np.where(known, by_chance, np.nan)
    for k in depths:
        defined = known & (k <= rows.deepest)  # where gold is not counted, recall and nDCG are NaN anyway
        for name, values, by_chance in zip(_AT_K, rows.at(k), rows.by_chance(k), strict=True):
            q[_column(name, k)] = np.where(defined, values, np.nan)
            q[f"{_column(name, k)}_by_chance"] = np.where(defined, by_chance, np.nan)
    _add_influence(q, rows, influence)
    meanings = {**influence.reasons, **REASONS}
    return RetrievalQuality(q, _summary(q, depths, rows.deepest, meanings), depths)


class _Rows:
    """The passages of a run as arrays: which question, which place, gold or not."""

    def __init__(self, run: Run) -> None:
        passages = run.passages
        self.n = len(run.queries)
        self.group: Ints = np.asarray(
            pd.Index(run.queries["query_id"]).get_indexer(passages["query_id"]), dtype=np.int64
        )
        self.marked: Bools = passages["is_gold"].notna().to_numpy()
        self.gold: Bools = passages["is_gold"].fillna(False).to_numpy(dtype=bool)
        self.n_gold: Floats = run.queries["n_gold"].to_numpy(dtype=np.float64, na_value=np.nan)
        self.k: Ints = np.bincount(self.group, minlength=self.n)
        self.n_found: Ints = np.bincount(self.group, self.gold, self.n).astype(np.int64)
        self.deepest = int(self.k.max(initial=0))
        self.place, self.tied = _places(passages["retrieval_rank"].to_numpy(dtype=np.float64), self)

    def at(self, k: int) -> tuple[Floats, Floats, Floats]:
        """Return hit, recall and nDCG at depth k of every question, defined or not."""
        found = found_within(self.gold, self.place, self.group, self.n, k)
        gain = gain_within(self.gold, self.place, self.group, self.n, k)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (found > 0).astype(np.float64), found / self.n_gold, gain / ideal_gain(self.n_gold, k)

    def by_chance(self, k: int) -> tuple[Floats, Floats, Floats]:
        """Return what random orders of each question's passages give for these, defined or not."""
        given = self.k, self.n_found, self.n_gold, k
        return hit_by_chance(self.k, self.n_found, k), recall_by_chance(*given), ndcg_by_chance(*given)

    def reasons(self) -> tuple[pd.Series, pd.Series]:
        """Say why hit and reciprocal rank, and why recall and nDCG, are undefined; the first that applies."""
        any_mark = np.bincount(self.group, self.marked, self.n) > 0
        counted = ~np.isnan(self.n_gold)
        rules: list[tuple[str, Bools]] = [
            ("no_gold", np.where(counted, (self.n_gold == 0) & (self.n_found == 0), ~any_mark)),
            ("gold_not_marked", ~any_mark & (self.k > 0)),
            ("gold_miscounted", self.n_found > np.where(counted, self.n_gold, np.inf)),
            ("tied_ranks", self.tied),
        ]
        return _first(rules), _first([*rules, ("gold_not_counted", ~counted)])


def _places(rank: Floats, rows: _Rows) -> tuple[Ints, Bools]:
    """Place in the order of retrieval, and the questions where a tie leaves open where gold stands."""
    place, tied = np.zeros(rank.size, dtype=np.int64), np.zeros(rows.n, dtype=bool)
    order = np.lexsort((rank, rows.group))
    group, gold = rows.group[order], rows.gold[order]
    start = np.r_[0, np.cumsum(rows.k)[:-1]] if rows.n else rows.k
    place[order] = np.arange(rank.size) - start[group] + 1
    same = (group[1:] == group[:-1]) & (np.diff(rank[order]) == 0) & (gold[1:] != gold[:-1])
    # A tie that holds both kinds changes from one to the other somewhere inside.
    tied[group[1:][same]] = True
    return place, tied


def _add_influence(q: pd.DataFrame, rows: _Rows, analysis: Any) -> None:
    influence = analysis.passages["influence"].to_numpy()
    rank = analysis.passages["influence_rank"].to_numpy()
    missing = np.bincount(rows.group, np.isnan(influence), rows.n)
    gold, other = _largest(influence, rows.gold, rows), _largest(influence, ~rows.gold, rows)
    high = np.maximum(gold, other)
    low = -_largest(-influence, np.ones_like(rows.gold), rows)
    answered = analysis.queries["reason"]
    reason = _first(
        [
            *((code, (q["reason"] == code).to_numpy(dtype=bool)) for code in ("no_gold", "gold_not_marked")),
            ("gold_not_retrieved", rows.n_found == 0),
            *((code, (answered == code).to_numpy(dtype=bool)) for code in ("error", "empty_baseline")),
            (analysis.measure.reason.name, missing == rows.k),
            ("incomplete", missing > 0),
            ("inert", (high == 0) & (low == 0)),
            ("all_equal", high == low),
        ]
    )
    best = np.full(rows.n, np.inf)
    np.fmin.at(best, rows.group[rows.gold], rank[rows.gold])
    defined = reason.isna().to_numpy()
    q["gold_influence_rank"] = np.where(defined, best, np.nan)
    q["gold_most_influential"] = pd.array(gold > other, dtype="boolean")
    q.loc[~defined, "gold_most_influential"] = pd.NA
    # Dealt at random, the influences put a gold passage alone on top where all that tie for it are gold.
    n_top = np.bincount(rows.group, influence == high[rows.group], rows.n)
    by_chance = comb(rows.n_found, n_top) / np.maximum(comb(rows.k, n_top), 1)
    q["gold_most_influential_by_chance"] = np.where(defined, by_chance, np.nan)
    q["influence_reason"] = reason


def _largest(values: Floats, chosen: Bools, rows: _Rows) -> Floats:
    """Return the largest known value of the chosen passages of each question, -inf where there is none."""
    result = np.full(rows.n, -np.inf)
    np.fmax.at(result, rows.group[chosen], values[chosen])
    return result


def _summary(
    q: pd.DataFrame, depths: Sequence[int], deepest: int, meanings: Mapping[str, Definition]
) -> pd.DataFrame:
    lines = []
    for name in _AT_K:
        reasons = q["reason" if name == "hit_at_k" else "recall_reason"]
        for k in depths:
            beyond = reasons if k <= deepest else pd.Series("fewer_than_k", index=q.index, dtype="str")
            lines.append((name, k, *_line(name, q, _column(name, k), beyond, meanings)))
    lines.append(("mrr", None, *_line("mrr", q, "reciprocal_rank", q["reason"], meanings)))
    name = "gold_most_influential"
    lines.append((name, None, *_line(name, q, name, q["influence_reason"], meanings)))
    columns = ["metric", "k", "mean", "low", "high", "chance", "n", "n_left_out", "left_out"]
    return pd.DataFrame(lines, columns=columns).astype({"metric": "str", "k": "Int64", "left_out": "str"})


def _line(
    name: str, q: pd.DataFrame, column: str, reasons: pd.Series, meanings: Mapping[str, Definition]
) -> tuple[object, ...]:
    known = q[column].to_numpy(dtype=np.float64, na_value=np.nan)
    n = int(np.count_nonzero(~np.isnan(known)))
    estimate = mean_in_unit(known, share=name in ("hit_at_k", "gold_most_influential"))
    left_out = " ".join(f"{n:,}: {meanings[str(code)].meaning}" for code, n in reasons.value_counts().items())
    return *estimate, float(q[f"{column}_by_chance"].mean()), n, len(q) - n, left_out


def _first(rules: Sequence[tuple[str, Bools]]) -> pd.Series:
    codes = np.select([mask for _, mask in rules], [name for name, _ in rules], default="")
    return pd.Series(codes, dtype="str").replace("", None)


def _column(name: str, k: int) -> str:
    return f"{name.removesuffix('k')}{k}"


def _checked(ks: Sequence[int]) -> tuple[int, ...]:
    wrong = [k for k in ks if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1]
    if wrong or not len(ks):
        given = repr(wrong[0]) if wrong else "none"
        raise InputError(f"The depths k must be whole numbers from 1, got {given}.")
    return tuple(sorted({int(k) for k in ks}))
