"""What a passage does and what its place in the prompt does: the same passages in other orders."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from core.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Split:
    """Effects of passages and of slots on the score of an answer, in the unit of the game.

    ``passages``, (k,): what the answer gains from keeping this passage, wherever it stands; ``slots``, (k,):
    how much more, or less, whatever stands at this place counts; they add up to 0. ``passage_share`` and
    ``slot_share``: the part of the variance of the scores that differences between passages, and between
    places, explain beyond all else, without what as many random columns would explain; below 0 = less than
    chance. What every passage gains alike belongs to neither. ``slot_p_value`` tests that no place matters
    (F test). NaN where there are too few measurements.
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
    at_place = np.take_along_axis(masks, orders, axis=1)
    common = np.column_stack([np.ones(n), masks.sum(axis=1) - k / 2])
    # Differences add up to 0: those to the last one say all.
    by_passage, by_slot = (part[:, :-1] - part[:, -1:].astype(float) for part in (masks, at_place))
    both = np.hstack([common, by_passage, by_slot])
    free = n - both.shape[1]
    if k < 2 or free < 2 or np.linalg.matrix_rank(both) < both.shape[1] or np.ptp(values) == 0:
        nothing = np.full(k, np.nan)
        return Split(nothing, nothing, math.nan, math.nan, math.nan, n)
    beta = np.linalg.lstsq(both, values)[0]
    passages, slots = (np.append(part, -part.sum()) for part in (beta[2 : k + 1], beta[k + 1 :]))
    error = _rest(both, values)
    without_slots, without_passages = (
        _rest(np.hstack([common, part]), values) for part in (by_passage, by_slot)
    )
    total = float(np.sum((values - values.mean()) ** 2))
    mean_error = error / free
    tested = (without_slots - error) / (k - 1)
    if mean_error > 1e-12 * total:
        p_value = float(fdtrc(k - 1, free, max(tested / mean_error, 0.0)))
    else:  # no noise: whatever places explain is there
        p_value = float(tested <= 1e-12 * total)
    by_chance = (k - 1) * mean_error
    return Split(
        beta[1] + passages,
        slots,
        (without_passages - error - by_chance) / total,
        (without_slots - error - by_chance) / total,
        p_value,
        n,
    )


def _rest(x: Floats, values: Floats) -> float:
    return float(np.sum((values - x @ np.linalg.lstsq(x, values)[0]) ** 2))
