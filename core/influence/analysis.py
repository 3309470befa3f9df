"""From a run's raw tables to influence, ranks, labels and failure modes: all questions at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.diagnosis import Definition
from core.influence.definitions import DEFAULT_THRESHOLD, MODES, PER_PASSAGE, REASONS
from core.influence.grouped import (
    Floats,
    Ints,
    constant_within,
    dominance_within,
    entropy_within,
    ranks_within,
    spearman_within,
)
from core.influence.metrics import expected_rbo, influence_score, labels, noise_quantile
from core.run import Run
from core.text.abstention import answer_status
from core.text.matching import correctness, is_correct
from core.text.overlap import rouge_l

Bools = NDArray[np.bool_]
RBO_PERSISTENCE = 0.9
PARAMETRIC_F1 = 0.9
OVER_RELIANCE = 0.8
_MIN_K_FOR_RANK_MODES = 6  # with fewer, the first three and the last three overlap


@dataclass(frozen=True, slots=True)
class InfluenceAnalysis:
    """Influence of every passage and the agreement of every question, for one threshold.

    Attributes
    ----------
    queries : DataFrame
        One row per question, in the run's order: ``query_id, question, answer_status, k, rho,
        p_value, label, reason, dominance, entropy, entropy_normalised, rank_biased_overlap,
        n_repeats, noise_quantile, n_above_noise, has_ties, correct``, one boolean column per
        failure mode and ``n_modes``. NaN with a ``reason`` where undefined.
    passages : DataFrame
        One row per passage: ``query_id, passage_id, retrieval_rank, retrieval_order, retrieval_score,
        influence, influence_low, influence_high, influence_rank, influence_share, rank_shift,
        above_noise, is_gold`` and the per-passage failure modes. ``rank_shift`` is retrieval order
        minus influence rank: positive = used more than retrieved.
    threshold : float
        The one threshold that drives every label.
    testable : Mapping[str, int]
        For each failure mode, the number of questions whose data could show it: *harmful passage*
        needs reference answers, *parametric* a closed-book answer, and so on. A mode that no
        question could show was not tested; that is not the same as not found.
    """

    queries: pd.DataFrame
    passages: pd.DataFrame
    threshold: float
    testable: Mapping[str, int]

    def to_frame(self) -> pd.DataFrame:
        """Return the passages with their question's numbers beside them."""
        per_query = self.queries.drop(columns=list(MODES))
        return self.passages.merge(per_query, on="query_id", how="left")

    @property
    def reasons(self) -> Mapping[str, Definition]:
        """What the codes in the column ``reason`` mean."""
        return REASONS

    @property
    def defined(self) -> pd.DataFrame:
        """Only the questions whose rank agreement has a value."""
        return self.queries[self.queries["reason"].isna()]


def analyse(run: Run, threshold: float = DEFAULT_THRESHOLD) -> InfluenceAnalysis:
    """Compute influence, ranks, agreement, labels and failure modes of a whole run.

    Parameters
    ----------
    run : Run
        Any run; questions without ablations come out undefined, with that reason.
    threshold : float
        tau in [-1, 1]: rho >= tau is Aligned.

    Returns
    -------
    InfluenceAnalysis
        Frozen; one row per question and one per passage.

    Raises
    ------
    ValueError
        ``threshold`` is outside [-1, 1].

    Notes
    -----
    Cost: no LLM calls. Vectorised: a million passages take seconds.
    """
    if not -1 <= threshold <= 1:
        raise ValueError(f"threshold must lie in [-1, 1], got {threshold}.")
    queries, passages = run.queries, run.passages
    n = len(queries)
    group = np.asarray(pd.Index(queries["query_id"]).get_indexer(passages["query_id"]), dtype=np.int64)
    k = np.bincount(group, minlength=n)

    p = _passage_metrics(run, group, k)
    influence, order = p["influence"].to_numpy(), p["retrieval_order"].to_numpy()
    reason = _reasons(queries, influence, order, group, k)
    defined = reason.isna().to_numpy()

    rho, p_value = spearman_within(order, p["influence_rank"].to_numpy(), group, n)
    entropy = entropy_within(influence, group, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        normalised = np.where(k > 1, entropy / np.log(k), np.nan)
    q = pd.DataFrame(
        {
            "query_id": queries["query_id"],
            "question": queries["question"],
            "answer_status": queries["answer_status"],
            "k": k,
            "rho": np.where(defined, rho, np.nan),
            "p_value": np.where(defined, p_value, np.nan),
            "label": labels(np.where(defined, rho, np.nan), threshold),
            "reason": reason,
            "dominance": dominance_within(influence, group, n),
            "entropy": entropy,
            "entropy_normalised": normalised,
            "rank_biased_overlap": _overlaps(order, p["influence_rank"].to_numpy(), group, defined, k),
            "n_repeats": _count(run.repeats["query_id"], queries["query_id"]),
            "noise_quantile": _per_query(run, _noise_quantiles(run)),
            "has_ties": _has_ties(p["influence_rank"].to_numpy(), group, n),
            "correct": correctness(queries["answer"], queries["reference_answers"]),
        }
    )
    noise = q["noise_quantile"].to_numpy()[group]
    known = ~np.isnan(noise) & ~np.isnan(influence)
    p["above_noise"] = pd.array(np.where(known, influence > noise, False), dtype="boolean")
    p.loc[~known, "above_noise"] = pd.NA
    above = np.bincount(group, np.where(known, influence > noise, 0), n)
    q["n_above_noise"] = pd.array(above.astype(int), dtype="Int64")
    q.loc[np.isnan(q["noise_quantile"].to_numpy()), "n_above_noise"] = pd.NA
    _mark_modes(run, q, p, group)
    return InfluenceAnalysis(q, p, threshold, _testable(run, q))


def _passage_metrics(run: Run, group: Ints, k: Ints) -> pd.DataFrame:
    passages = run.passages
    influence, low, high = _influences(run, group)
    retrieval_rank = passages["retrieval_rank"].to_numpy(dtype=np.float64)
    total = np.bincount(group, np.nan_to_num(influence), len(k))[group]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, influence / total, np.nan)
    frame = passages[["query_id", "passage_id", "retrieval_rank", "retrieval_score", "is_gold"]].copy()
    frame["retrieval_order"] = ranks_within(retrieval_rank, group)
    frame["influence"] = influence
    frame["influence_low"] = low
    frame["influence_high"] = high
    frame["influence_rank"] = ranks_within(influence, group, descending=True)
    frame["influence_share"] = share
    frame["rank_shift"] = frame["retrieval_order"] - frame["influence_rank"]
    return frame


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
    for row in np.flatnonzero(known):
        baseline = _text(baselines[group[row]])
        if baseline is None:
            continue
        influence[row] = influence_score(baseline, ablated[row])
        others = [influence_score(r, ablated[row]) for r in repeats.get(query_ids[group[row]], ())]
        if others and not np.isnan(others).any():
            low[row] = min(influence[row], *others)
            high[row] = max(influence[row], *others)
    influence[(passages["ablated_status"] == "error").to_numpy()] = np.nan
    dead = queries["answer_status"].isin(["empty", "error"]).to_numpy()
    influence[dead[group]] = np.nan
    return influence, low, high


def _repeat_answers(run: Run) -> dict[str, list[str]]:
    usable = run.repeats[run.repeats["answer"].notna() & (run.repeats["answer_status"] != "error")]
    return {str(q): answers.to_list() for q, answers in usable.groupby("query_id", sort=False)["answer"]}


def _noise_quantiles(run: Run) -> dict[str, float]:
    baselines = dict(zip(run.queries["query_id"], run.queries["answer"], strict=True))
    result = {}
    for query_id, answers in _repeat_answers(run).items():
        baseline = _text(baselines[query_id])
        if baseline is not None:
            result[query_id] = noise_quantile(baseline, answers)
    return result


def _reasons(queries: pd.DataFrame, influence: Floats, order: Floats, group: Ints, k: Ints) -> pd.Series:
    """Why rank agreement is undefined; the first that applies."""
    n = len(queries)
    missing = np.bincount(group, np.isnan(influence) | np.isnan(order), n)
    total = np.bincount(group, influence, n)
    status = queries["answer_status"]
    rules: list[tuple[str, Bools]] = [
        ("error", (status == "error").to_numpy(dtype=bool)),
        ("empty_baseline", (status == "empty").to_numpy(dtype=bool)),
        ("too_few_passages", k < 3),
        ("no_ablations", missing == k),
        ("incomplete", missing > 0),
        ("inert", total == 0),
        ("all_equal", constant_within(influence, group, n)),
        ("no_retrieval_order", constant_within(order, group, n)),
    ]
    reason = np.select([mask for _, mask in rules], [name for name, _ in rules], default="")
    return pd.Series(reason, dtype="str").replace("", None)


def _overlaps(order: Floats, influence_rank: Floats, group: Ints, defined: Bools, k: Ints) -> Floats:
    """Rank-biased overlap per question, all questions of one size together."""
    result = np.full(k.size, np.nan)
    rows = np.argsort(group, kind="stable")
    start = np.r_[0, np.cumsum(k)[:-1]] if k.size else k
    for size in np.unique(k[defined]):
        chosen = np.flatnonzero(defined & (k == size))
        for chunk in np.array_split(chosen, max(1, chosen.size * size * size // 4_000_000)):
            index = rows[start[chunk][:, None] + np.arange(size)]
            result[chunk] = expected_rbo(order[index], influence_rank[index], RBO_PERSISTENCE)
    return result


def _has_ties(influence_rank: Floats, group: Ints, n: int) -> Bools:
    # Average ranks of k distinct values are 1..k, so their squares sum to k(k+1)(2k+1)/6; ties lower it.
    ranked = ~np.isnan(influence_rank)
    m = np.bincount(group, ranked, n)
    squares = np.bincount(group, np.where(ranked, influence_rank, 0) ** 2, n)
    return np.asarray(squares < m * (m + 1) * (2 * m + 1) / 6 - 1e-6)


def _mark_modes(run: Run, q: pd.DataFrame, p: pd.DataFrame, group: Ints) -> None:
    """Add one boolean column per failure mode to the questions and, where it applies, the passages."""
    k = q["k"].to_numpy()[group]
    usable = q["reason"].isna().to_numpy()[group] & (k >= _MIN_K_FOR_RANK_MODES)
    order, rank = p["retrieval_order"].to_numpy(), p["influence_rank"].to_numpy()
    p["ignored_top_hit"] = usable & (order <= 3) & (rank >= k - 2)
    p["buried_evidence"] = usable & (rank <= 3) & (order >= k - 2)
    p["harmful_passage"] = _harmful(run, q, group)
    inert = (q["reason"] == "inert").to_numpy(dtype=bool)
    parametric = _per_query(run, _closed_book_agreement(run)) >= PARAMETRIC_F1
    closed_book_known = run.queries["closed_book_answer"].notna().to_numpy()
    rules: dict[str, Bools] = {
        "over_reliance": q["dominance"].to_numpy() >= OVER_RELIANCE,
        "inverted": q["rho"].to_numpy() < 0,
        "inert": inert,
        "parametric": parametric,
        # Without a closed-book call an inert answer may be either; it is not called redundant.
        "redundant": inert & ~parametric & closed_book_known,
        "missed_evidence": _missed(run, group),
    }
    for name in MODES:
        q[name] = _any(p[name], group, len(q)) if name in PER_PASSAGE else rules[name]
    q["n_modes"] = q[list(MODES)].sum(axis=1)


def _testable(run: Run, q: pd.DataFrame) -> dict[str, int]:
    """Count, for each mode, the questions whose data could show it."""
    ranked = q["reason"].isna() & (q["k"] >= _MIN_K_FOR_RANK_MODES)
    answered = q["answer_status"] == "answered"
    closed_book = run.queries["closed_book_answer"].notna()
    # Inert needs every influence; a constant that is not 0 has been tested too.
    measured = q["reason"].isna() | q["reason"].isin(["inert", "all_equal", "no_retrieval_order"])
    masks = {
        "ignored_top_hit": ranked,
        "buried_evidence": ranked,
        "over_reliance": q["dominance"].notna(),
        "inverted": q["rho"].notna(),
        "inert": measured,
        "parametric": closed_book & answered,
        "redundant": closed_book & measured,
        "harmful_passage": q["correct"].notna(),
        "missed_evidence": run.queries["n_gold"].notna(),
    }
    return {name: int(masks[name].sum()) for name in MODES}


def _any(flags: pd.Series, group: Ints, n: int) -> Bools:
    return np.asarray(np.bincount(group, flags.to_numpy(dtype=bool), n) > 0)


def _harmful(run: Run, q: pd.DataFrame, group: Ints) -> Bools:
    wrong = (~q["correct"].fillna(True)).to_numpy(dtype=bool)
    references = run.queries["reference_answers"].to_list()
    ablated = run.passages["ablated_answer"].to_list()
    result = np.zeros(len(ablated), dtype=bool)
    for row in np.flatnonzero(wrong[group]):
        result[row] = is_correct(_text(ablated[row]), references[group[row]]) is True
    return result


def _closed_book_agreement(run: Run) -> dict[str, float]:
    queries = run.queries
    both = queries[queries["closed_book_answer"].notna() & queries["answer"].notna()]
    return {
        str(query_id): rouge_l(answer, closed).f1
        for query_id, answer, closed in zip(
            both["query_id"], both["answer"], both["closed_book_answer"], strict=True
        )
        # Two abstentions agree, but not on knowledge the model has.
        if answer_status(answer) == "answered"
    }


def _missed(run: Run, group: Ints) -> Bools:
    n_gold = run.queries["n_gold"].to_numpy(dtype=np.float64, na_value=np.nan)
    gold = run.passages["is_gold"].fillna(False).to_numpy(dtype=bool)
    return np.asarray(n_gold > np.bincount(group, gold, n_gold.size))


def _per_query(run: Run, values: dict[str, float]) -> Floats:
    return run.queries["query_id"].map(values.get).to_numpy(dtype=np.float64, na_value=np.nan)


def _count(query_ids: pd.Series, index: pd.Series) -> NDArray[np.int64]:
    counts: Callable[[str], int] = query_ids.value_counts().to_dict().get
    return np.array([counts(q) or 0 for q in index], dtype=np.int64)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
