"""What a passage does and what its place in the prompt does: the same passages in other orders."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import f as fisher

from core.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Split:
    """Effects of passages and of slots on the score of an answer, in the unit of the game.

    ``passages`` and ``slots``, (k,) each: what the answer gains from keeping this passage, and from keeping
    whatever stands at this place, beside the mean of all places. ``passage_share`` and ``slot_share``: the
    part of the variance of the scores that each explains beyond the other, without what as many random
    columns would explain; below 0 = less than chance. ``slot_p_value`` tests that no place matters (F test).
    NaN where there are too few measurements.
    """

    passages: Floats
    slots: Floats
    passage_share: float
    slot_share: float
    slot_p_value: float
    n: int


def split(masks: Bools, orders: Ints, values: Floats) -> Split:
    """Split scores into effects of passages and of places, by least squares.

    ``masks``, (n, k): passages kept; ``orders``, (n, k): the passage at each place, numbered from 0;
    ``values``, (n,). A place is that in the order of all passages, kept or not. At least 2k + 2 measurements
    in several orders, else NaN. In a Latin square each passage stands at each place equally often, so that
    neither effect can pass for the other.
    """
    n, k = masks.shape
    at_place = np.take_along_axis(masks, orders, axis=1) - 0.5
    by_passage = masks - 0.5
    # Places sum to 0: their mean is that of the passages.
    by_slot = at_place[:, :-1] - at_place[:, -1:] if k > 1 else at_place[:, :0]
    one = np.ones((n, 1))
    both = np.hstack([one, by_passage, by_slot])
    free = n - both.shape[1]
    if free < 2 or np.linalg.matrix_rank(both) < both.shape[1] or np.ptp(values) == 0:
        nothing = np.full(k, np.nan)
        return Split(nothing, nothing, math.nan, math.nan, math.nan, n)
    beta = np.linalg.lstsq(both, values)[0]
    slots = beta[k + 1 :]
    error = _rest(both, values)
    without_slots, without_passages = (
        _rest(np.hstack([one, part]), values) for part in (by_passage, by_slot)
    )
    total = float(np.sum((values - values.mean()) ** 2))
    mean_error = error / free
    tested = (without_slots - error) / (k - 1)
    p_value = float(fisher.sf(tested / mean_error, k - 1, free)) if mean_error > 1e-12 * total else 0.0
    return Split(
        beta[1 : k + 1],
        np.append(slots, -slots.sum()),
        (without_passages - error - k * mean_error) / total,
        (without_slots - error - (k - 1) * mean_error) / total,
        p_value,
        n,
    )


def _rest(x: Floats, values: Floats) -> float:
    return float(np.sum((values - x @ np.linalg.lstsq(x, values)[0]) ** 2))
