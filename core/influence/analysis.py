"""From a run's raw tables to influence, ranks, labels and failure modes: all questions at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from core.arrays import Bools, Floats, Ints, equal_sized, spearman_within, tie_spans
from core.influence.chance import RandomRhos
from core.influence.definitions import DEFAULT_THRESHOLD, MODES, REASONS
from core.influence.measured import has_ties, n_repeats, noise_quantiles, passage_frame, undefined_reasons
from core.influence.measures import MEASURES, ROUGE, Measure
from core.influence.metrics import (
    RBO_PERSISTENCE,
    dominance_within,
    entropy_within,
    expected_rbo,
    labels,
)
from core.influence.modes import AgainstPlacebo, against_placebo, mark_modes, mode_counts, testable_counts
from core.influence.ndcg import OrderOfUse, ndcg_p_values, ndcg_rows, order_of_use
from core.run import Run
from core.socket import Definition
from core.text.matching import correctness

_RBO_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class InfluenceAnalysis:
    """Influence of every passage and the agreement of every question, for one threshold.

    Attributes
    ----------
    queries : DataFrame
        One row per question, in the run's order: ``query_id, question, answer_status, k``; ``rho, p_value``;
        ``chance_low, chance_high`` (middle 95 % of ρ when the question's own influences come in random order)
        and ``inverted_below`` (their lower 5 % point); ``attainable_rho``; ``reason`` (why ρ is undefined);
        ``influence_ndcg`` with ``ndcg_by_chance`` and ``ndcg_p_value``; ``label, label_reason`` (why the
        label is undefined), ``divergent_by_chance`` (probability that a random order is labelled Divergent),
        ``reported_label`` (that of an imported file, by its own flag, else its ρ);
        ``dominance, entropy, entropy_normalised, rank_biased_overlap, n_repeats, noise_quantile,
        n_above_noise, has_ties, correct``; ``influences`` (of its passages, in retrieval order; None where
        none is known); one boolean column per failure mode, ``n_modes``, and
        ``<mode>_by_chance`` for modes that depend on the order. NaN where undefined.
    passages : DataFrame
        One row per passage: ``query_id, passage_id, retrieval_rank, retrieval_order, retrieval_score,
        influence, influence_low, influence_high, influence_rank, best_influence_rank, worst_influence_rank,
        influence_share, rank_shift, above_noise, is_gold``, the per-passage failure modes, and the question's
        ``label``. Best and worst are the first and last rank that a tie spans, NaN where ρ is undefined.
        ``rank_shift`` is retrieval order minus influence rank: positive = used more than retrieved.
    as_published : bool
        Whether labels follow from ρ and the threshold alone, whatever the ties.
    measure : Measure
        What influence is (`core.influence.measures.MEASURES`), with its unit in this run. Where it is of
        either sign, ranks, ρ and overlap use the signed value; shares, dominance, entropy and nDCG take what
        is below 0 as 0; and there is no noise floor.
    testable : Mapping[str, int]
        For each failure mode, the number of questions whose data could show it: a mode that no question could
        show was not tested; that is not the same as not found.
    modes, against_placebo, order_of_use, random_rhos
        See `mode_counts` and `AgainstPlacebo` in `core.influence.modes`, `OrderOfUse` and `RandomRhos`.
    """

    queries: pd.DataFrame
    passages: pd.DataFrame
    threshold: float
    as_published: bool
    measure: Measure
    testable: Mapping[str, int]
    modes: pd.DataFrame = field(repr=False)
    against_placebo: AgainstPlacebo
    order_of_use: OrderOfUse
    random_rhos: RandomRhos = field(repr=False)
    run: Run = field(repr=False)

    def labelled(self, threshold: float, as_published: bool = False) -> InfluenceAnalysis:
        """Return the same analysis with other labels; nothing else depends on these settings."""
        if not -1 <= threshold <= 1:
            raise ValueError(f"threshold must lie in [-1, 1], got {threshold}.")
        q = self.queries
        attainable = 1.0 if as_published else q["attainable_rho"].to_numpy()
        label = labels(q["rho"].to_numpy(), threshold, attainable)
        reason = q["reason"].mask((label == "Undefined") & q["reason"].isna(), "ties_cannot_reach")
        below = self.random_rhos.p_below([threshold])[:, 0]
        by_chance = np.where(label == "Undefined", np.nan, below)
        labelled = q.assign(
            label=label,
            label_reason=reason,
            divergent_by_chance=by_chance,
            reported_label=_reported_labels(self.run.queries, threshold),
        )
        of_passage = self.passages["query_id"].map(dict(zip(q["query_id"], label, strict=True)))
        passages = self.passages.assign(label=of_passage.astype("str"))
        return replace(
            self, queries=labelled, passages=passages, threshold=threshold, as_published=as_published
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the passages with their question's numbers beside them."""
        per_query = self.queries.drop(columns=list(MODES))
        return self.passages.drop(columns="label").merge(per_query, on="query_id", how="left")

    @property
    def reasons(self) -> Mapping[str, Definition]:
        """What the codes in the columns ``reason`` and ``label_reason`` mean."""
        return REASONS

    @property
    def defined(self) -> pd.DataFrame:
        """Only the questions whose rank agreement has a value."""
        return self.queries[self.queries["reason"].isna()]


def analyse(
    run: Run,
    threshold: float = DEFAULT_THRESHOLD,
    as_published: bool = False,
    measure: str = ROUGE,
    attribution: Any = None,
    by_placebo: pd.Series | None = None,
) -> InfluenceAnalysis:
    """Compute influence, ranks, agreement, labels and failure modes of a whole run.

    For other labels of the same run use the ``labelled`` of the result: it takes next to no time. Cost: no
    LLM calls. Vectorised: a million passages take seconds.

    Parameters
    ----------
    run : Run
        Any run; questions without ablations come out undefined, with that reason.
    threshold : float
        tau in [-1, 1], else ValueError: rho >= tau is Aligned.
    as_published : bool
        Label by rho alone, as published figures do, even where ties keep every order below the threshold.
    measure : {"rouge", "logprob", "surrogate", "shapley"}
        What influence is, see `core.influence.measures`; what was not measured is undefined.
    attribution : AttributionAnalysis
        That of the same run; only the last two measures need it.
    by_placebo : Series of bool, optional
        Whether an answer is correct under a change of the prompt that fixes nothing, by ``query_id``.
    """
    by = MEASURES[measure]
    if by.reads_attribution:
        by = replace(by, unit=attribution.unit)
    queries, passages = run.queries, run.passages
    n = len(queries)
    group = np.asarray(pd.Index(queries["query_id"]).get_indexer(passages["query_id"]), dtype=np.int64)
    k = np.bincount(group, minlength=n)

    p = passage_frame(run, group, k, by, attribution)
    influence, order = p["influence"].to_numpy(), p["retrieval_order"].to_numpy()
    rank, gains = p["influence_rank"].to_numpy(), np.maximum(influence, 0.0)
    reason = undefined_reasons(queries, influence, order, group, k, by.reason.name)
    ordered = reason.isna().to_numpy()[group]
    for name, end in zip(("best", "worst"), tie_spans(rank, group), strict=True):
        p[f"{name}_influence_rank"] = np.where(ordered, end, np.nan)
    agreement, rhos = _agreement(order, rank, group, reason.isna().to_numpy())
    gain, use = _gain(order, gains, group, n)
    entropy = entropy_within(gains, group, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        normalised = entropy / np.log(k)  # NaN for one passage: 0 / 0
    q = pd.DataFrame(
        {
            "query_id": queries["query_id"],
            "question": queries["question"],
            "answer_status": queries["answer_status"],
            "k": k,
            **agreement,
            **gain,
            "reason": reason,
            "dominance": dominance_within(gains, group, n),
            "entropy": entropy,
            "entropy_normalised": normalised,
            "n_repeats": n_repeats(run),
            "noise_quantile": np.full(n, np.nan) if by.is_signed else noise_quantiles(run),
            "has_ties": has_ties(rank, group, n),
            "correct": correctness(queries).array,
            "influences": _in_retrieval_order(influence, order, group, k),
        }
    )
    noise = q["noise_quantile"].to_numpy()
    known = ~np.isnan(noise[group]) & ~np.isnan(influence)
    above = known & (influence > noise[group])
    p["above_noise"] = pd.array(above, dtype="boolean")
    p.loc[~known, "above_noise"] = pd.NA
    q["n_above_noise"] = pd.array(np.bincount(group, above, n).astype(int), dtype="Int64")
    q.loc[np.isnan(noise), "n_above_noise"] = pd.NA
    mark_modes(run, q, p, group, by.one_by_one)
    tested = testable_counts(run, q, group, by.one_by_one)
    analysis = InfluenceAnalysis(
        queries=q,
        passages=p,
        threshold=threshold,
        as_published=as_published,
        measure=by,
        testable=tested,
        modes=mode_counts(q, tested),
        against_placebo=against_placebo(run, q, p, group, by_placebo),
        order_of_use=use,
        random_rhos=rhos,
        run=run,
    )
    return analysis.labelled(threshold, as_published)


def _reported_labels(raw: pd.DataFrame, threshold: float) -> pd.Series:
    """Return the file's own flag where it has one, else its rho against the threshold."""
    rho, flag = raw["reported_rho"], raw["reported_divergent"]
    own = flag.astype("object").map({True: "Divergent", False: "Aligned"})
    derived = pd.Series(labels(rho.to_numpy(), threshold), index=rho.index).where(rho.notna(), None)
    return own.where(flag.notna(), derived).astype("str")


def _agreement(
    order: Floats, rank: Floats, group: Ints, defined: Bools
) -> tuple[dict[str, Floats], RandomRhos]:
    """How the two orders agree, and how random ones would; by column, NaN where ρ is undefined."""
    rho, p_value = spearman_within(order, rank, group, defined.size)
    ascending = _sorted_within(order, group), _sorted_within(rank, group)
    attainable, _ = spearman_within(*ascending, np.sort(group), defined.size)
    overlap, blocks = np.full(defined.size, np.nan), []
    for questions, rows in equal_sized(group, defined):
        blocks.append((questions, order[rows], rank[rows]))
        for part in np.array_split(np.arange(len(rows)), -(-rows.size * rows.shape[1] // _RBO_CELLS)):
            pair = order[rows[part]], rank[rows[part]]
            overlap[questions[part]] = expected_rbo(*pair, RBO_PERSISTENCE)
    rhos = RandomRhos.of(blocks, defined.size)
    low, high, below, by_chance = rhos.bands().T
    columns = {
        # So that 0.7 is 0.7 wherever it is compared, and not 0.6999999999999999.
        "rho": np.where(defined, np.round(rho, 12), np.nan),
        "p_value": np.where(defined, p_value, np.nan),
        "chance_low": low,
        "chance_high": high,
        "inverted_below": below,
        "inverted_by_chance": by_chance,
        "attainable_rho": np.where(defined, attainable, np.nan),
        "rank_biased_overlap": overlap,
    }
    return columns, rhos


def _gain(order: Floats, influence: Floats, group: Ints, n: int) -> tuple[dict[str, Floats], OrderOfUse]:
    """Return nDCG by influence of every question, by chance and its p-value; and of the run."""
    found, blocks = np.full((n, 3), np.nan), []
    for questions, rows in equal_sized(group, np.ones(n, dtype=bool)):
        blocks.append((order[rows], influence[rows]))
        found[questions] = ndcg_rows(*blocks[-1])
        found[questions, 2] = ndcg_p_values(*blocks[-1])
    names = ("influence_ndcg", "ndcg_by_chance", "ndcg_p_value")
    return dict(zip(names, found.T, strict=True)), order_of_use(blocks)


def _in_retrieval_order(influence: Floats, order: Floats, group: Ints, k: Ints) -> list[list[float] | None]:
    """Return the influences of every question's passages; None where none is known."""
    ends, known = np.cumsum(k), np.bincount(group, ~np.isnan(influence), k.size) > 0
    values = influence[np.lexsort((order, group))].tolist()
    spans = zip((ends - k).tolist(), ends.tolist(), known.tolist(), strict=True)
    return [values[start:end] if is_known else None for start, end, is_known in spans]


def _sorted_within(values: Floats, group: Ints) -> Floats:
    return values[np.lexsort((values, group))]
