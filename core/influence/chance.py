"""The chance baseline of rank agreement: ρ when a question's own influences come in random order."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.arrays import Floats, Ints
from core.influence.metrics import RBO_PERSISTENCE, order_and_rank, rbo_by_chance

# Random orders drawn: without ties, with ties, and with ties where there may be very many tie patterns.
_UNTIED, _TIED, _TIED_LONG = 200_000, 50_000, 5_000
_LONG, _VERY_LONG = 12, 30  # passages; from the latter on 20,000 orders place an untied band well enough
_CELLS = 4_000_000  # of one batch of orders: bounds the memory, not the result
_SLACK = 1e-9  # keeps "below" strict although a ρ is a sum of rounded fractions


@dataclass(frozen=True, slots=True)
class ChanceBand:
    """Where ρ falls when one question's influences are dealt to its passages at random.

    Of ``k`` passages: ``low`` and ``high`` enclose the middle 95 %, ``q05`` and ``q95`` are the lower and the
    upper 5 % point; an order is *inverted* when its ρ is below ``q05``. ``mean_rbo``: mean rank-biased
    overlap (p = 0.9) of random orders, exact. ``null``: the ρ of all orders, or of many random ones,
    ascending; empty, and all else NaN, where ρ is undefined.
    """

    k: int
    low: float
    high: float
    q05: float
    q95: float
    mean_rbo: float
    null: Floats = field(repr=False, compare=False)

    def p_below(self, threshold: float) -> float:
        """Return the probability that a random order has ρ below ``threshold``."""
        return float((self.null < threshold - _SLACK).mean()) if self.null.size else math.nan


def chance_band(retrieval_rank: ArrayLike | int, influence: ArrayLike | None = None) -> ChanceBand:
    """Return where ρ falls by chance, given one question's ranks and influences.

    ``retrieval_rank`` and ``influence`` as for `core.influence.spearman`; only their ties matter. A number k
    in place of both stands for k passages without ties. Exact (all k! orders) up to k = 8; else seeded random
    orders, at least 5,000, and 200,000 without ties (20,000 beyond k = 30).

    Examples
    --------
    >>> band = chance_band(10)
    >>> round(band.q95, 2), round(band.p_below(0.7), 3)
    (0.55, 0.987)
    >>> one_of_ten = chance_band(range(1, 11), [1] + 9 * [0])
    >>> round(one_of_ten.high, 2), one_of_ten.p_below(0.7)
    (0.52, 1.0)
    """
    if influence is None:
        plain = tuple(float(rank) for rank in range(1, int(retrieval_rank) + 1))  # type: ignore[arg-type]
        return _band(plain, plain)
    pair = order_and_rank(retrieval_rank, influence)
    return _band(*((tuple(np.sort(ranks).tolist()) for ranks in pair) if pair else ((), ())))


@lru_cache(maxsize=64)
def _band(order: tuple[float, ...], rank: tuple[float, ...]) -> ChanceBand:
    k = len(order)
    if k < 3:
        nan = math.nan
        return ChanceBand(k, nan, nan, nan, nan, nan, np.zeros(0))
    rhos = RandomRhos.of([(np.zeros(1, np.int64), np.array([order]), np.array([rank]))], 1)
    (null,) = (np.round(np.sort(found[0]), 12) for _, found in rhos.batches())
    low, q05, q95, high = (float(_point(null, level)) for level in (0.025, 0.05, 0.95, 0.975))
    return ChanceBand(k, low, high, q05, q95, rbo_by_chance(k, RBO_PERSISTENCE), null)


@dataclass(frozen=True, slots=True, eq=False)
class RandomRhos:
    """ρ of random orders for many questions at once: computed once for each pair of tie patterns.

    ``pattern``, (n,), says which pattern each question has; -1 where its ρ is undefined. ``ties`` are average
    ranks of retrieval and of influence, (m, k), one row for each pattern; patterns are numbered through.
    """

    pattern: Ints
    ties: tuple[tuple[Floats, Floats], ...]

    @classmethod
    def of(cls, blocks: Iterable[tuple[Ints, Floats, Floats]], n: int) -> RandomRhos:
        """Find the patterns of n questions.

        ``blocks`` hold questions with equally many passages: their numbers, (m,), and their average ranks of
        retrieval and of influence, (m, k). Questions in no block have an undefined ρ.
        """
        pattern, ties, n_patterns = np.full(n, -1), [], 0
        for questions, order, rank in blocks:
            order, rank = np.sort(order, axis=1), np.sort(rank, axis=1)
            tied = np.hstack([np.diff(order, axis=1) == 0, np.diff(rank, axis=1) == 0])
            _, first, which = np.unique(
                np.packbits(tied, axis=1), axis=0, return_index=True, return_inverse=True
            )
            pattern[questions] = n_patterns + which.ravel()
            n_patterns += first.size
            # The orders drawn are the same for all patterns. Each meets them through a shuffle of its own:
            # errors of sampling are then independent, and do not add up over questions.
            shuffled = [_shuffled(row) for row in rank[first]]
            ties.append((order[first], np.array(shuffled)))
        return cls(pattern, tuple(ties))

    def batches(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield numbers of patterns, (m,), and the ρ of their random orders, (m, n_orders)."""
        start = 0
        for order, rank in self.ties:
            k, untied = order.shape[1], (np.diff(order) > 0).all(1) & (np.diff(np.sort(rank)) > 0).all(1)
            many = _UNTIED if k <= _VERY_LONG else 20_000
            for chosen, n_orders in ((untied, many), (~untied, _TIED if k <= _LONG else _TIED_LONG)):
                rows = np.flatnonzero(chosen)
                for found, rho in random_sums(_unit(order[rows]), _unit(rank[rows]), n_orders):
                    yield start + rows[found], rho
            start += len(order)

    def p_below(self, points: Sequence[float]) -> Floats:
        """Return for each question the probability of a ρ below each point, shape (n, n_points)."""
        found = [
            (numbers, np.stack([(rho < point - _SLACK).mean(axis=1) for point in points], axis=1))
            for numbers, rho in self.batches()
        ]
        return self._per_question(found, len(points))

    def bands(self) -> Floats:
        """Return for each question ``low, high, q05`` of `ChanceBand` and P(ρ < q05), shape (n, 4)."""
        found = []
        for numbers, rho in self.batches():
            rho = np.sort(rho, axis=1)
            low, q05, high = (_point(rho, level) for level in (0.025, 0.05, 0.975))
            below = (rho < q05[:, None] - _SLACK).mean(axis=1)
            found.append((numbers, np.round(np.stack([low, high, q05, below], axis=1), 12)))
        return self._per_question(found, 4)

    def _per_question(self, found: list[tuple[Ints, Floats]], width: int) -> Floats:
        values = np.full((sum(len(order) for order, _ in self.ties) + 1, width), np.nan)
        for numbers, rows in found:
            values[numbers] = rows
        return values[self.pattern]  # -1 is the last row, which stays NaN


def random_sums(fixed: Floats, dealt: Floats, n_orders: int) -> Iterator[tuple[Ints, Floats]]:
    """Yield rows, and Σ fixed · dealt where each row of ``dealt`` comes in random order.

    ``fixed`` and ``dealt``, (n, k): row by row, what stands still and what is dealt, in all k! orders where
    there are at most ``n_orders``, else in that many seeded random ones, the same for all. Yields rows, (m,),
    and sums, (m, n_orders).
    """
    if not len(fixed):
        return
    orders = _orders(fixed.shape[1], n_orders)
    same = (fixed == fixed[0]).all()
    which = (
        np.zeros(len(fixed), np.int64) if same else np.unique(fixed, axis=0, return_inverse=True)[1].ravel()
    )
    rows, starts = np.argsort(which, kind="stable"), np.flatnonzero(np.diff(np.sort(which))) + 1
    for alike in np.split(rows, starts):
        standing = fixed[alike[0]][orders].T
        for chunk in np.array_split(alike, -(-alike.size * orders.shape[0] // _CELLS)):
            yield chunk, dealt[chunk] @ standing


@lru_cache(maxsize=8)
def _orders(k: int, n: int) -> NDArray[np.int16]:
    if k < 10 and math.factorial(k) <= n:
        return np.array(list(itertools.permutations(range(k))), dtype=np.int16)
    return np.random.default_rng(k).permuted(np.tile(np.arange(k, dtype=np.int16), (n, 1)), axis=1)


def _shuffled(row: Floats) -> Floats:
    if (np.diff(row) > 0).all():  # without ties there is but one pattern
        return row
    return np.random.default_rng(zlib.crc32(row.tobytes())).permutation(row)


def _unit(ranks: Floats) -> Floats:
    """Ranks about their mean, each row of length 1: a product of two such rows is a ρ."""
    centred = ranks - (ranks.shape[1] + 1) / 2
    return np.asarray(centred / np.linalg.norm(centred, axis=1, keepdims=True))


def _point(ascending: Floats, level: float) -> Floats:
    """Smallest value that at least this share of the last axis does not exceed."""
    n = ascending.shape[-1]
    return np.asarray(ascending[..., math.ceil(level * n - _SLACK) - 1])
