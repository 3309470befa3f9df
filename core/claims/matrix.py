"""The claim-evidence matrix: how well the passages support each claim of an answer.

A matrix M has one row per claim and one column per passage. A cell is the probability that the passage
supports the claim (or simply 0 / 1), and NaN where nobody could judge. NaN is *unscored*: a state of its own,
never read as "not supported".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from core.claims.known import DEFAULT_SUPPORT, Share, any_known, checked, decided, mean_known, share
from core.claims.types import Floats

Bools = NDArray[np.bool_]
Labels = NDArray[np.object_]

WELL_SUPPORTED, FRAGILE, UNSUPPORTED, UNSCORED = "well supported", "fragile", "unsupported", "unscored"
IRRELEVANT = "irrelevant"
STATES = (WELL_SUPPORTED, FRAGILE, UNSUPPORTED, UNSCORED, IRRELEVANT)


def claim_uncertainty(M: ArrayLike, threshold: float | None = None) -> Floats:
    """U(c) = 1 - mean over the passages of M[c, passage]: the lack of redundant evidence.

    Parameters
    ----------
    M : array_like of float, shape (n_claims, n_passages)
        0 / 1 as in the definition, or probabilities; NaN = unscored.
    threshold : float, optional
        Given, cells count as 1 where they reach it, else 0: the definition. Left out, the mean is over the
        cells as they are, so probabilities give the expected value of U.

    Returns
    -------
    ndarray of float64, shape (n_claims,)
        In [0, 1], higher = more fragile; over the scored passages only; NaN where no passage was scored.

    Notes
    -----
    A claim that one passage of ten fully supports has U = 0.9. Fragile is not unsupported: read U beside
    `support_maximum`.

    Examples
    --------
    >>> claim_uncertainty([[1, 0, 0, 1], [0, 0, 0, float("nan")]]).tolist()
    [0.5, 1.0]
    """
    m = checked(M)
    return 1 - mean_known(m if threshold is None else decided(m, threshold), axis=1)


def support_maximum(M: ArrayLike) -> Floats:
    """Return the best support of each claim by a single passage; NaN where no passage was scored.

    With unscored passages in the row it is a lower bound.
    """
    m = checked(M)
    best = np.max(np.where(np.isnan(m), -1.0, m), axis=1, initial=-1.0)
    return np.where(best < 0, np.nan, best)


def any_support(M: ArrayLike) -> Floats:
    """Return 1 - prod(1 - M): the probability that some passage supports, if passages were independent.

    Over the scored passages; NaN where there is none. Repeated passages are not independent, so it flatters
    redundant retrieval.
    """
    m = checked(M)
    value = 1 - np.prod(1 - np.where(np.isnan(m), 0.0, m), axis=1)
    return np.where(np.isnan(m).all(axis=1), np.nan, value)


def passage_importance(M: ArrayLike, threshold: float | None = None) -> Floats:
    """Return the mean support that each passage gives to the claims scored against it: the column means.

    ``threshold`` as in `claim_uncertainty`. NaN for a passage against which no claim was scored.
    """
    m = checked(M)
    return mean_known(m if threshold is None else decided(m, threshold), axis=0)


def claim_states(M: ArrayLike, threshold: float = DEFAULT_SUPPORT) -> Labels:
    """Return the state of every claim.

    Returns
    -------
    ndarray of str
        *well supported*: two passages or more support it; *fragile*: exactly one does; *unsupported*: none
        does, and every passage was scored; *unscored*: no cell was scored, or no support was found while
        some cells are unscored. What is unknown is not unsupported. (A fragile claim with unscored cells may
        be better supported than is known.)
    """
    support = decided(checked(M), threshold)
    n_supporting = (support == 1).sum(axis=1)
    conditions = [n_supporting >= 2, n_supporting == 1, any_known(support, axis=1) == 0]
    return np.select(conditions, [WELL_SUPPORTED, FRAGILE, UNSUPPORTED], UNSCORED).astype(object)


@dataclass(frozen=True, slots=True, eq=False)
class AggregatedMatrix:
    """A claim-evidence matrix small enough to draw; neighbours share a cell.

    Attributes
    ----------
    values : ndarray of float64
        Mean of the scored cells; NaN only where none of them was scored.
    unscored : ndarray of float64
        Share of each cell's claims and passages that were not scored.
    claims, passages : tuple of tuple of int
        Which rows and columns of the whole matrix each row and column stands for.
    """

    values: Floats
    unscored: Floats
    claims: tuple[tuple[int, ...], ...]
    passages: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ClaimEvidenceMatrix:
    """The claims of one answer against the passages it was given, and every score that follows.

    Attributes
    ----------
    claims : tuple of str
        Texts or identifiers, one per row.
    passages : tuple of str
        Labels, one per column, in retrieval order.
    probabilities : ndarray of float64, shape (n_claims, n_passages)
        Read-only; NaN = unscored.
    relevant : ndarray of bool
        False for refusals and talk about the answer; such claims enter no mean.
    judge : str
        Who judged.
    threshold : float
        From this probability on a passage supports a claim.
    """

    claims: tuple[str, ...]
    passages: tuple[str, ...]
    probabilities: Floats
    relevant: Bools
    judge: str
    threshold: float = DEFAULT_SUPPORT

    def __post_init__(self) -> None:
        claims, passages = tuple(self.claims), tuple(self.passages)
        matrix = checked(self.probabilities, "probabilities").copy()
        if not matrix.size and not (claims and passages):
            matrix = matrix.reshape(len(claims), len(passages))
        if matrix.shape != (len(claims), len(passages)):
            raise ValueError(
                f"probabilities must have a row for each of {len(claims)} claims and a column for each of "
                f"{len(passages)} passages; its shape is {matrix.shape}."
            )
        relevant = np.array(self.relevant, dtype=bool)
        if relevant.shape != (len(claims),):
            raise ValueError(f"relevant must have {len(claims)} entries, one per claim; got {relevant.size}.")
        decided(matrix, self.threshold)  # refuses a threshold that makes no sense
        matrix.setflags(write=False)
        relevant.setflags(write=False)
        for name, value in (("claims", claims), ("passages", passages), ("probabilities", matrix)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "relevant", relevant)

    @property
    def uncertainty(self) -> Floats:
        """U(c) of every claim, from the probabilities as they are."""
        return claim_uncertainty(self.probabilities)

    @property
    def support_maximum(self) -> Floats:
        """Best support of every claim by a single passage."""
        return support_maximum(self.probabilities)

    @property
    def any_support(self) -> Floats:
        """Chance of any support for every claim, passages taken as independent."""
        return any_support(self.probabilities)

    @property
    def passage_importance(self) -> Floats:
        """Mean support of every passage for the relevant claims."""
        return passage_importance(self.probabilities[self.relevant])

    @property
    def states(self) -> Labels:
        """State of every claim; *irrelevant* where there is nothing to support."""
        return np.where(self.relevant, claim_states(self.probabilities, self.threshold), IRRELEVANT)

    @property
    def supported(self) -> Floats:
        """1 for a claim that some passage supports, 0 if none does, NaN if unknown or irrelevant."""
        known = any_known(decided(self.probabilities, self.threshold), axis=1)
        return np.where(self.relevant, known, np.nan)

    @property
    def passage_support(self) -> Floats:
        """1 for a passage that supports some relevant claim, 0 if it supports none, NaN if unknown."""
        return any_known(decided(self.probabilities[self.relevant], self.threshold), axis=0)

    @property
    def grounding(self) -> Share:
        """Share of the relevant claims that are supported; unknown ones are left out and counted."""
        return share(self.supported[self.relevant], self._nothing)

    @property
    def mean_uncertainty(self) -> Share:
        """Mean U(c) of the relevant claims."""
        return share(self.uncertainty[self.relevant], self._nothing)

    @property
    def _nothing(self) -> str:
        return "no_relevant_claims" if self.claims else "no_claims"

    @property
    def n_unscored(self) -> int:
        """Number of cells that nobody could judge."""
        return int(np.isnan(self.probabilities).sum())

    @property
    def order(self) -> NDArray[np.int64]:
        """Rows to be read from the top: most uncertain first, then unscored, then irrelevant claims."""
        u = self.uncertainty
        return np.lexsort((-np.nan_to_num(u), np.isnan(u), ~self.relevant))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per cell: ``claim_index, claim, passage, relevant, probability, judge``."""
        rows, columns = np.indices(self.probabilities.shape).reshape(2, -1)
        return pd.DataFrame(
            {
                "claim_index": rows,
                "claim": [self.claims[i] for i in rows],
                "passage": [self.passages[j] for j in columns],
                "relevant": self.relevant[rows],
                "probability": self.probabilities.ravel(),
                "judge": self.judge,
            }
        )

    def claims_frame(self) -> pd.DataFrame:
        """Return one row per claim with its state and scores, in the order of the claims."""
        support = decided(self.probabilities, self.threshold)
        return pd.DataFrame(
            {
                "claim": list(self.claims),
                "relevant": self.relevant,
                "state": self.states,
                "uncertainty": self.uncertainty,
                "support_maximum": self.support_maximum,
                "any_support": self.any_support,
                "n_supporting": (support == 1).sum(axis=1),
                "n_unscored": np.isnan(support).sum(axis=1),
            }
        )

    def aggregated(self, max_claims: int = 60, max_passages: int = 60) -> AggregatedMatrix:
        """Return a matrix of at most the given size for display: rows as in `order`, columns as they are.

        Neighbouring rows and columns are put together in groups of nearly equal size; a matrix that is small
        enough keeps one group per claim and passage.

        Raises
        ------
        ValueError
            A size is below 1.
        """
        if max_claims < 1 or max_passages < 1:
            raise ValueError(f"sizes must be at least 1, got {max_claims} and {max_passages}.")
        rows = _groups(self.order.tolist(), max_claims)
        columns = _groups(range(len(self.passages)), max_passages)
        m = self.probabilities
        scored = _blocks(np.where(np.isnan(m), 0.0, 1.0), rows, columns)
        total = _blocks(np.nan_to_num(m), rows, columns)
        cells = np.outer([len(r) for r in rows], [len(c) for c in columns])
        with np.errstate(invalid="ignore"):
            values = total / scored
        return AggregatedMatrix(values, 1 - scored / cells, rows, columns)


def _groups(items: Iterable[int], at_most: int) -> tuple[tuple[int, ...], ...]:
    listed = list(items)
    n = min(len(listed), at_most)
    edges = [len(listed) * i // n for i in range(n + 1)] if n else [0]
    return tuple(tuple(listed[a:b]) for a, b in pairwise(edges))


def _blocks(m: Floats, rows: tuple[tuple[int, ...], ...], columns: tuple[tuple[int, ...], ...]) -> Floats:
    """Sum of ``m`` over each block of rows and columns."""
    if not rows or not columns:
        return np.zeros((len(rows), len(columns)))
    m = m[[i for group in rows for i in group]]
    m = np.add.reduceat(m, np.cumsum([0, *map(len, rows[:-1])]), axis=0)
    return np.asarray(np.add.reduceat(m, np.cumsum([0, *map(len, columns[:-1])]), axis=1))
