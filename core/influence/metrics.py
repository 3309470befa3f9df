"""Influence metrics of one question: pure functions on short arrays and strings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.arrays import Floats, Ints, extremes_within, ranks_within, spearman_within
from core.influence.definitions import DEFAULT_THRESHOLD
from core.text.abstention import answer_status
from core.text.overlap import rouge_l, rouge_l_pairs

RBO_PERSISTENCE = 0.9
_SLACK = 1e-12  # a ρ of exactly 0.7 may arrive as 0.6999999999999999


class Spearman(NamedTuple):
    """Rank agreement: ``rho`` in [-1, 1], ``p_value`` in [0, 1], and why they are NaN if they are."""

    rho: float
    p_value: float
    reason: str | None


def influence_score(baseline: str, ablated: str) -> float:
    """How much an answer changes when one passage is left out.

    ``1 - ROUGE-L F1(baseline, ablated)``, with stemming, of the answer with all passages and of the one
    without this passage; an empty one counts as completely changed. In [0, 1]; higher = the passage mattered
    more. NaN when the baseline is empty. 0 when both answers abstain, however they word it: the outcome is
    the same.

    Examples
    --------
    >>> influence_score("The capital is Paris", "The capital is Rome")
    0.25
    """
    status = answer_status(baseline)
    if status == "empty":
        return math.nan
    if status == "abstained" and answer_status(ablated) == "abstained":
        return 0.0
    # Subtraction may leave -1e-17 for identical answers.
    return max(0.0, 1.0 - rouge_l(baseline, ablated).f1)


def influence_scores(baselines: Sequence[str], ablated: Sequence[str]) -> Floats:
    """Return `influence_score` of every pair of answers, shape (n,), in one go.

    Examples
    --------
    >>> influence_scores(["The capital is Paris", ""], ["The capital is Rome", "Rome"]).tolist()
    [0.25, nan]
    """
    status = np.array([answer_status(text) for text in baselines], dtype=object)
    # fmax: as in `influence_score`, two answers whose words ROUGE-L cannot read are unchanged.
    found = np.fmax(0.0, 1.0 - rouge_l_pairs(baselines, ablated))
    for row in np.flatnonzero(status == "abstained").tolist():
        if answer_status(ablated[row]) == "abstained":
            found[row] = 0.0
    return np.asarray(np.where(status == "empty", np.nan, found))


def average_ranks(influence: ArrayLike) -> Floats:
    """Rank passages by influence: 1 = most influential, ties share the average rank.

    Scores and ranks have shape (k,); ranks lie in [1, k], NaN stays NaN. Ties are never broken by order: the
    order is the retrieval order, so that would fake agreement with it.

    Examples
    --------
    >>> average_ranks([0.1, 0.9, 0.1]).tolist()
    [2.5, 1.0, 2.5]
    """
    values = _vector(influence, "influence")
    return ranks_within(values, np.zeros(values.size, np.int64), descending=True)


def spearman(retrieval_rank: ArrayLike, influence: ArrayLike) -> Spearman:
    """Agreement of the order of retrieval with the order of use.

    Spearman's rho between retrieval ranks and the average ranks of influence (1 = most influential).

    Parameters
    ----------
    retrieval_rank : array_like of shape (k,)
        The retriever's ranks, 1 = best.
    influence : array_like of shape (k,)
        Influence scores, higher = mattered more. ValueError where the lengths differ.

    Returns
    -------
    Spearman
        ``rho`` in [-1, 1]: 1 = used in the order of retrieval. ``p_value`` two-sided, from the t
        distribution with k - 2 degrees of freedom. Both NaN with a ``reason`` when the influence is
        constant (``inert`` when all are 0, else ``all_equal``), k < 3 (``too_few_passages``), a
        value is missing (``incomplete``) or all retrieval ranks are equal (``no_retrieval_order``).

    Examples
    --------
    >>> spearman([1, 2, 3, 4], [0.9, 0.2, 0.4, 0.1]).rho
    0.8
    >>> spearman([1, 2, 3], [0.0, 0.0, 0.0]).reason
    'inert'
    """
    ranks, values = vectors(retrieval_rank, influence)
    reason = undefined_reason(ranks, values)
    if reason:
        return Spearman(math.nan, math.nan, reason)
    group = np.zeros(ranks.size, np.int64)
    rho, p = spearman_within(ranks_within(ranks, group), average_ranks(values), group, 1)
    return Spearman(float(rho[0]), float(p[0]), None)


def attainable_rho(retrieval_rank: ArrayLike, influence: ArrayLike) -> float:
    """Return the largest rho that these influences could reach in any order, given their ties.

    Takes what `spearman` does; only ties matter. In (0, 1]; 1 without ties; NaN where `spearman` is
    undefined. Below the threshold the label could not have been Aligned whatever the retriever did.

    Examples
    --------
    >>> round(attainable_rho(range(1, 11), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]), 2)
    0.52
    """
    pair = order_and_rank(retrieval_rank, influence)
    if pair is None:
        return math.nan
    order, rank = np.sort(pair, axis=1)
    rho, _ = spearman_within(order, rank, np.zeros(order.size, np.int64), 1)
    return float(rho[0])


def order_and_rank(retrieval_rank: ArrayLike, influence: ArrayLike) -> tuple[Floats, Floats] | None:
    """Return average ranks of retrieval and of influence; None where `spearman` is undefined."""
    ranks, values = vectors(retrieval_rank, influence)
    if undefined_reason(ranks, values):
        return None
    return ranks_within(ranks, np.zeros(ranks.size, np.int64)), average_ranks(values)


def undefined_reason(retrieval_rank: Floats, influence: Floats) -> str | None:
    """Say why rank agreement has no value, or None; see `spearman`."""
    if influence.size < 3:
        return "too_few_passages"
    if np.isnan(influence).any() or np.isnan(retrieval_rank).any():
        return "incomplete"
    if not influence.any():
        return "inert"
    if np.ptp(influence) == 0:
        return "all_equal"
    return "no_retrieval_order" if np.ptp(retrieval_rank) == 0 else None


def dominance_ratio(influence: ArrayLike) -> float:
    """Share of all influence that falls on the most influential passage: max / sum.

    In [1/k, 1], higher = one passage carries the answer; NaN when the influences sum to 0 or one is missing.

    Examples
    --------
    >>> dominance_ratio([0.9, 0.05, 0.05])
    0.9
    """
    values = _vector(influence, "influence")
    return float(dominance_within(values, np.zeros(values.size, np.int64), 1)[0]) if values.size else math.nan


def influence_entropy(influence: ArrayLike) -> float:
    """Shannon entropy of influence / sum, in nats: how evenly influence is spread.

    In [0, ln k], higher = spread over more passages; NaN when the influences sum to 0 or one is missing.

    Examples
    --------
    >>> round(influence_entropy([0.5, 0.5]), 4)
    0.6931
    """
    values = _vector(influence, "influence")
    return float(entropy_within(values, np.zeros(values.size, np.int64), 1)[0]) if values.size else math.nan


def rank_biased_overlap(retrieval_rank: ArrayLike, influence: ArrayLike, p: float = RBO_PERSISTENCE) -> float:
    """Agreement of retrieval order and order of use that weighs the top of the lists most.

    Extrapolated rank-biased overlap of the two orders of the same k passages: ``(1 - p) * sum_d p**(d-1) *
    A_d + p**k`` with ``A_d`` the share in common among the first d, and the persistence p in (0, 1): the
    smaller, the more the top counts. Tied passages enter the first d with their expected share, so ties are
    never broken by order.

    Takes what `spearman` does, and is NaN where that is undefined. In [0, 1], higher = more alike; 1 for
    identical orders. Compare with `rbo_by_chance`, not with 0. Webber, Moffat, Zobel 2010, A similarity
    measure for indefinite rankings, eq. 32.

    Examples
    --------
    >>> rank_biased_overlap([1, 2, 3], [0.9, 0.5, 0.1])
    1.0
    """
    if not 0 < p < 1:
        raise ValueError(f"p must lie in (0, 1), got {p}.")
    pair = order_and_rank(retrieval_rank, influence)
    return math.nan if pair is None else float(expected_rbo(pair[0][None], pair[1][None], p)[0])


def rbo_by_chance(k: int, p: float = RBO_PERSISTENCE) -> float:
    """Return the mean `rank_biased_overlap` of random orders: among the first d of k they share d / k."""
    depth = np.arange(1, k + 1)
    return float(((1 - p) * p ** (depth - 1.0) * depth / k).sum() + p**k)


def expected_rbo(a_ranks: Floats, b_ranks: Floats, p: float) -> Floats:
    """Extrapolated RBO of n pairs of complete rankings; see `rank_biased_overlap`.

    ``a_ranks`` and ``b_ranks`` are average ranks of shape (n, k); the result has shape (n,).
    """
    k = a_ranks.shape[1]
    depth = np.arange(1, k + 1)
    agreement = (_share_in_top(a_ranks) * _share_in_top(b_ranks)).sum(axis=2) / depth
    total = (1 - p) * agreement @ p ** (depth - 1.0) + p**k * agreement[:, -1]
    return np.asarray(np.minimum(1.0, total), dtype=np.float64)


def _share_in_top(ranks: Floats) -> Floats:
    """Probability, shape (n, depth, k), that an item stands among the first d; ties at random."""
    ties = (ranks[:, :, None] == ranks[:, None, :]).sum(axis=2)
    first = ranks - (ties - 1) / 2
    depth = np.arange(1, ranks.shape[1] + 1)[:, None]
    return np.clip((depth - first[:, None, :] + 1) / ties[:, None, :], 0, 1)


def noise_quantile(baseline: str, repeats: Sequence[str], q: float = 0.95) -> float:
    """How far the answer moves when nothing is left out: the noise floor of influence.

    Cost: R calls. An influence at or below this value is not distinguishable from noise. That of a passage
    without effect lies above it with a probability of at most `above_noise_by_chance`.

    Parameters
    ----------
    baseline, repeats
        The baseline answer, and those of further calls with exactly the same passages.
    q : float
        How likely one further repeat must be not to lie above the floor.

    Returns
    -------
    float
        In [0, 1], lower = steadier: the score that one further repeat does not exceed with probability ``q``
        or, of fewer than 19 repeats, the largest. NaN without repeats or with an empty baseline.
    """
    scores = [influence_score(baseline, repeat) for repeat in repeats]
    if not scores or np.isnan(scores).any():
        return math.nan
    return float(np.sort(scores)[int(_floor_rank(len(scores), q)) - 1])


def _floor_rank(n_repeats: ArrayLike, q: float) -> Floats:
    """Return which of the R scores, ascending from 1, is the floor: as in conformal prediction."""
    repeats = np.asarray(n_repeats, dtype=np.float64)
    return np.minimum(repeats, np.ceil(q * (repeats + 1) - 1e-9))


def above_noise_by_chance(n_repeats: ArrayLike, q: float = 0.95) -> Floats:
    """How often the influence of a passage without effect lies above the noise floor of R repeats.

    In (0, 1), lower = surer: the probability if no two scores are equal, else a bound; NaN for R = 0. ``q``
    as for `noise_quantile`. 19 repeats are the fewest with at most 5 %.

    Examples
    --------
    >>> above_noise_by_chance([1, 3, 19]).tolist()
    [0.5, 0.25, 0.05]
    """
    repeats = np.asarray(n_repeats, dtype=np.float64)
    # The answer without the passage is one more repeat: each place among R + 1 is as likely.
    return np.where(repeats > 0, (repeats + 1 - _floor_rank(repeats, q)) / (repeats + 1), np.nan)


def label(rho: float, threshold: float = DEFAULT_THRESHOLD, attainable: float = 1.0) -> str:
    """Return Aligned (rho >= threshold), Divergent (rho < threshold) or Undefined.

    Undefined where rho is NaN, or where ``attainable``, the largest rho that its ties allow, is below the
    threshold: the label would be Divergent whatever the retriever did.
    """
    return str(labels(np.array([rho]), threshold, np.array([attainable]))[0])


def labels(rho: Floats, threshold: float, attainable: Floats | float = 1.0) -> NDArray[np.object_]:
    """Return the `label` of every rho; the one place that compares with the threshold."""
    least = threshold - _SLACK
    undefined = np.isnan(rho) | (np.asarray(attainable) < least)
    return np.where(undefined, "Undefined", np.where(rho >= least, "Aligned", "Divergent")).astype(object)


def dominance_within(influence: Floats, group: Ints, n_groups: int) -> Floats:
    """Largest share of each group's sum; NaN where the sum is 0."""
    total = np.bincount(group, influence, n_groups)
    _, largest = extremes_within(influence, group, n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, largest / total, np.nan)


def entropy_within(influence: Floats, group: Ints, n_groups: int) -> Floats:
    """Shannon entropy in nats of each group's shares; NaN where the sum is 0."""
    total = np.bincount(group, influence, n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = influence / total[group]
        terms = np.where(share > 0, -share * np.log(np.where(share > 0, share, 1)), 0.0)
        return np.where(total > 0, np.bincount(group, terms, n_groups), np.nan)


def vectors(retrieval_rank: ArrayLike, influence: ArrayLike) -> tuple[Floats, Floats]:
    """Return both as arrays of one length; ValueError where they are not."""
    ranks, values = _vector(retrieval_rank, "retrieval_rank"), _vector(influence, "influence")
    if ranks.size != values.size:
        raise ValueError(
            f"retrieval_rank and influence must be equally long, got {ranks.size} and {values.size}."
        )
    return ranks, values


def _vector(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}.")
    return array
