"""A setting whose expected loss is at most α, and claims dropped until the rest can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Bools
from core.conformal.arguments import column, numbers, ragged, rate
from core.conformal.split import conformal_threshold, label_shortage
from core.errors import InputError


@dataclass(frozen=True)
class RiskControl:
    """The mildest setting that controls a loss.

    Attributes
    ----------
    setting : float or None
        None where even the strictest setting of the grid does not control it.
    n : int
        Labelled cases.
    risk : float
        Mean loss at the setting, or at the strictest one without a setting; NaN for n = 0.
    labels_needed : int
        Cases without which no setting controls the loss, even if all losses are 0: ⌈bound/α⌉ − 1.
    """

    setting: float | None
    n: int
    risk: float
    labels_needed: int


def control_risk(losses: ArrayLike, grid: ArrayLike, alpha: float, bound: float = 1.0) -> RiskControl:
    """Return the smallest setting λ with (sum of losses + bound) / (n + 1) ≤ α.

    Then the expected loss of a new case is at most α, over calibration cases and new case together.

    Parameters
    ----------
    losses : array_like, shape (n, m)
        Of each labelled case under each setting; at most ``bound``, and not rising along a row.
    grid : array_like, shape (m,)
        The settings, rising: a higher one is stricter.
    alpha : float
        The expected loss allowed, between 0 and 1, in the unit of the losses.
    bound : float
        The largest loss there can be, above 0.

    Returns
    -------
    RiskControl
        Cost: one pass.

    Raises
    ------
    InputError
        An argument is outside its range; losses that rise name their row.

    References
    ----------
    Angelopoulos et al. 2022, arXiv 2208.02814.

    Examples
    --------
    >>> control_risk([[1, 0, 0]] * 5 + [[1, 1, 0]] * 15, [0.2, 0.5, 0.8], 0.1)
    RiskControl(setting=0.8, n=20, risk=0.0, labels_needed=9)
    """
    error, settings = rate("alpha", alpha), column("grid", grid)
    if not settings.size or not (np.diff(settings) > 0).all():
        raise InputError("grid must hold at least one setting, in rising order.")
    if not (math.isfinite(bound) and bound > 0):
        raise InputError(f"bound must be above 0, got {bound!r}.")
    table = numbers("losses", losses)
    if table.shape[1:] != settings.shape:
        raise InputError(f"losses must have {settings.size} columns, got the shape {table.shape}.")
    if not (np.isfinite(table) & (table <= bound)).all():
        raise InputError(f"losses must be finite and at most the bound, {bound}.")
    rising = np.flatnonzero((np.diff(table, axis=1) > 0).any(axis=1))
    if rising.size:
        raise InputError(f"losses must not rise from one setting to the next; row {rising[0]} does.")
    n = len(table)
    # As decimals: 1.1 / 11 is 0.1, which floats miss.
    controlled = [Fraction(str(math.fsum([*each, bound]))) <= error * (n + 1) for each in table.T.tolist()]
    needed = math.ceil(Fraction(str(bound)) / error) - 1
    at = controlled.index(True) if any(controlled) else -1
    risk = float(table[:, at].mean()) if n else math.nan
    return RiskControl(float(settings[at]) if any(controlled) else None, n, risk, needed)


@dataclass(frozen=True)
class Backoff:
    """Which claims of an answer to keep.

    Attributes
    ----------
    threshold : float
        Keep claims that score more; +inf (keep nothing) where the labels do not suffice, −inf (keep all)
        where hardly any answer had a wrong claim.
    n : int
        Answers calibrated on.
    n_left_out : int
        Answers with a claim whose label is unknown.
    reason : str
        Why nothing is kept; empty where the labels suffice.
    """

    threshold: float
    n: int
    n_left_out: int
    reason: str

    def kept(self, claim_scores: ArrayLike) -> Bools:
        """Return which claims of a new answer to keep, (n_claims,); never one without a score (NaN)."""
        return column("claim_scores", claim_scores) > self.threshold


def factuality_backoff(
    claim_scores: Sequence[ArrayLike], claim_correct: Sequence[ArrayLike], alpha: float
) -> Backoff:
    """Return from which score on claims are kept, so that all kept are correct with probability ≥ 1 − α.

    The probability is over calibration answers and new answer together, which must come from one
    population; an answer of which nothing is kept counts as correct.

    Parameters
    ----------
    claim_scores : sequence of array_like
        For each answer the score of each claim: higher = better supported. NaN: never kept.
    claim_correct : sequence of array_like
        For each answer whether each claim is correct: 1, 0, or NaN (unknown). An answer with an unknown one
        is left out; the statement is then about answers whose claims can all be judged.
    alpha : float
        Between 0 and 1.

    Returns
    -------
    Backoff
        Its threshold is the conformal one of the highest score of a wrong claim in each answer (−inf without
        one). A claim is kept above it, not at it, so that ties need no noise.

    Raises
    ------
    InputError
        An argument is outside its range; an answer has not as many labels as scores.

    References
    ----------
    Mohri & Hashimoto 2024, arXiv 2402.10978.

    Examples
    --------
    >>> rule = factuality_backoff([[0.9, 0.2], [0.8, 0.4], [0.7]], [[1, 0], [1, 0], [1]], 0.25)
    >>> rule.threshold, rule.kept([0.5, 0.4]).tolist()
    (0.4, [True, False])
    """
    score, correct, answer = ragged("claim_scores", claim_scores, "claim_correct", claim_correct)
    highest = np.full(len(claim_scores), -math.inf)
    wrong = (correct == 0) & ~np.isnan(score)
    np.maximum.at(highest, answer[wrong], score[wrong])
    highest[answer[np.isnan(correct)]] = math.nan
    n = int(np.count_nonzero(~np.isnan(highest)))
    return Backoff(conformal_threshold(highest, alpha), n, highest.size - n, label_shortage(n, alpha))
