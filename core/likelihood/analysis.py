"""Which passage made an answer likelier, which the correct one, and whether these are the gold ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import comb

from core.arrays import Bools, Floats, Ints, extremes_within, ranks_within
from core.likelihood.screening import Agreement, agreement
from core.rows import once_for
from core.run import Run
from core.stats import mean_in_unit, paired_interval

MEASURES = ("gold_by_retrieval", "gold_by_rouge", "gold_by_answer", "gold_by_reference")
RAISES = math.log(2)  # nats: the probability doubles, or below minus this halves


class GoldShare(NamedTuple):
    """How often the passage that a measure puts first is a gold one.

    ``mean`` in [0, 1] with its 95 % interval over ``n`` questions, and ``chance``, the mean share of gold
    among their passages; ``beyond`` with its interval is the mean difference to the retriever's first passage
    in the questions that have both. NaN without questions, and of the retriever itself.
    """

    measure: str
    n: int
    mean: float
    low: float
    high: float
    chance: float
    beyond: float
    beyond_low: float
    beyond_high: float


@dataclass(frozen=True, slots=True)
class LikelihoodAnalysis:
    """Drops of log-probability of a run.

    ``queries``, one row per question, in the run's order: ``query_id, question, correct``; ``reason`` and
    ``reference_reason``, why the drops of the answer and of the reference are undefined; ``made_by,
    made_drop``, the passage that raises the answer most, and ``needed, needed_drop``, the one that raises the
    reference most (none where no passage raises it); the columns of `MEASURES`, in [0, 1], 1 = a gold passage
    comes first, and ``gold_by_chance``; ``misleading`` and ``ignored`` (see `core.likelihood.definitions`),
    missing where they could not be told, with ``<name>_by_chance``: how often the drops of the reference,
    dealt at random to the question's passages, would show it.

    ``passages``, one row per passage: ``query_id, passage_id, title, retrieval_rank, is_gold``; ``drop`` and
    ``reference_drop`` in nats, and whether these are ``approximate``, estimated by the quick screen. ``gold``
    has one share for each measure; ``agreement`` says how far the screen was off, where it was checked.
    """

    queries: pd.DataFrame
    passages: pd.DataFrame
    gold: tuple[GoldShare, ...]
    agreement: Agreement


def analyse_likelihood(run: Run, rouge: Floats, correct: pd.Series) -> LikelihoodAnalysis:
    """Compare what made the answers of a run likelier with what makes the reference answers likelier.

    ``rouge``, (n_passages,), is the influence of each passage by ROUGE-L, ``correct`` whether each answer is
    correct, missing where that is not known. What was not scored is undefined, with a reason. No LLM calls;
    vectorised.
    """
    queries = run.queries
    p = run.passages[["query_id", "passage_id", "title", "retrieval_rank", "is_gold"]].copy()
    p["drop"], p["reference_drop"] = run.passages["logprob_drop"], run.passages["reference_logprob_drop"]
    p["approximate"] = run.passages["approximate_drop"].fillna(value=False).astype(bool)
    group = np.asarray(pd.Index(queries["query_id"]).get_indexer(p["query_id"]), dtype=np.int64)
    n, own, reference = len(queries), p["drop"].to_numpy(), p["reference_drop"].to_numpy()
    q = queries[["query_id", "question"]].copy()
    q["correct"] = correct.array
    answer, known = queries["answer"].fillna("").str.strip(), queries["reference_answers"].notna()
    unanswered = answer.eq("") | queries["answer_status"].isin(["empty", "error"])
    q["reason"] = _reasons(run, own, group, "without_answer", unanswered.to_numpy(dtype=bool))
    q["reference_reason"] = _reasons(run, reference, group, "without_reference", ~known.to_numpy(dtype=bool))
    for name, drop, values in (("made_by", "made_drop", own), ("needed", "needed_drop", reference)):
        q[name], q[drop] = _first_passage(p["passage_id"].to_numpy(), values, group, n)
    order = ranks_within(p["retrieval_rank"].to_numpy(dtype=np.float64), group)
    gold = p["is_gold"].fillna(False).to_numpy(dtype=bool)
    for name, values in zip(MEASURES, (-order, rouge, own, reference), strict=True):
        q[name] = _gold_first(values, gold, group, n)
    _mark(q, own, reference, group)
    with np.errstate(invalid="ignore"):
        q["gold_by_chance"] = np.bincount(group, gold, n) / np.bincount(group, minlength=n)
    return LikelihoodAnalysis(q, p, tuple(_share(q, name) for name in MEASURES), agreement(run.passages))


def _reasons(run: Run, drops: Floats, group: Ints, lacking: str, lacks: Bools) -> pd.Series:
    """Say why the drops of a question are undefined; the first reason that applies."""
    n, unknown = len(run.queries), once_for(run.passages, "without text", _without_text)
    k, missing = np.bincount(group, minlength=n), np.bincount(group, np.isnan(drops), n)
    rules: Sequence[tuple[str, Bools]] = (
        ("without_passages", k == 0),
        (lacking, lacks),
        ("without_text", np.bincount(group, unknown, n) > 0),
        ("not_read", missing == k),
        ("partly_read", missing > 0),
    )
    # What was scored elsewhere needs no text here.
    codes = np.select([mask & (missing > 0) | (k == 0) for _, mask in rules], [name for name, _ in rules], "")
    return pd.Series(codes, dtype="str").replace("", None)


def _without_text(passages: pd.DataFrame) -> Bools:
    return (passages["text"].fillna("").str.strip() == "").to_numpy(dtype=bool)


def _top(values: Floats, group: Ints, n: int) -> tuple[Floats, Bools]:
    """Return the largest value of each question, NaN where one is missing, and the passages that have it."""
    _, largest = extremes_within(values, group, n)
    return largest, values == largest[group]


def _first_passage(ids: np.ndarray, values: Floats, group: Ints, n: int) -> tuple[np.ndarray, Floats]:
    """Return the passage of the largest value of each question and the value, where that is above 0."""
    largest, at_top = _top(values, group, n)
    rows = np.flatnonzero(at_top & (values > 0))[::-1]
    found = np.full(n, None, dtype=object)
    found[group[rows]] = ids[rows]
    return found, np.where(largest > 0, largest, np.nan)


def _gold_first(values: Floats, gold: Bools, group: Ints, n: int) -> Floats:
    """Return the share of gold among the passages of the largest value: ties are broken at random."""
    _, at_top = _top(values, group, n)
    with np.errstate(invalid="ignore"):
        share = np.bincount(group, at_top & gold, n) / np.bincount(group, at_top, n)
    return np.where(np.bincount(group, gold, n) > 0, share, np.nan)


def _mark(q: pd.DataFrame, own: Floats, reference: Floats, group: Ints) -> None:
    """Add which answers a passage misled, and which ignore what speaks for the correct one.

    Each asks something of the passage that comes first by one drop and something else of its other drop. Deal
    the other drops to the passages at random, and it holds as often as it does among all passages.
    """
    n, k = len(q), np.bincount(group, minlength=len(q))
    both = (q["reason"].isna() & q["reference_reason"].isna()).to_numpy(dtype=bool)
    wrong = q["correct"].eq(False).fillna(False).to_numpy(dtype=bool)
    not_right = ~q["correct"].fillna(False).to_numpy(dtype=bool)
    for name, tested, first, other in (
        ("misleading", both & wrong, own, reference <= -RAISES),
        ("ignored", both & not_right, reference, own <= 0),
    ):
        largest, at_top = _top(first, group, n)
        raised, n_top = largest >= RAISES, np.bincount(group, at_top, n)
        shows = raised & (np.bincount(group, at_top & other, n) == n_top)
        by_chance = comb(np.bincount(group, other, n), n_top) / np.maximum(comb(k, n_top), 1)
        q[name] = pd.array(np.where(tested, shows, False), dtype="boolean")
        q.loc[~tested, name] = pd.NA
        q[f"{name}_by_chance"] = np.where(tested, raised * by_chance, np.nan)


def _share(q: pd.DataFrame, measure: str) -> GoldShare:
    values, first = q[measure].dropna(), q[MEASURES[0]]
    estimate = mean_in_unit(values, share=bool(values.isin([0, 1]).all()))
    pairs = q.loc[values.index[first[values.index].notna()], [MEASURES[0], measure]]
    itself = measure == MEASURES[0]
    beyond = math.nan if itself else float((pairs.iloc[:, 1] - pairs.iloc[:, 0]).mean())
    chance = float(q.loc[values.index, "gold_by_chance"].mean())
    interval = paired_interval(pairs.iloc[:, 0], pairs.iloc[:, 1])
    return GoldShare(measure, len(values), *estimate, chance, beyond, *interval)
