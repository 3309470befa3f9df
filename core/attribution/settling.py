"""When enough masks were drawn: whether the order of the first three passages is settled.

The test may be looked at after every mask: it keeps its promise at all of these times together.
"""

from __future__ import annotations

import math

import numpy as np

from core.arrays import Bools, Floats

LEVEL = 0.05
FIRST = 3
_WARM = 4  # masks before the scale of the errors is known
_LATEST = 8  # errors that say how large the next one may be
_EXACT = 0.05  # of the spread of the scores: errors below count as this large, lest one mask outweigh all
_SPREAD = 12.0  # about the masks at which the test is strongest


def settled(masks: Bools, values: Floats, scores: Floats, level: float = LEVEL) -> int:
    """Return how many places of the order, up to three, are settled after these random masks.

    A place is settled where its passage is told apart from all behind it, and all places before it are. With
    probability of at least 1 − ``level``, whenever drawing stops, no settled place has a passage that could
    change places with one behind it: interchangeable in the game, or worse.

    For passages i and j only masks that keep one of them speak. Let x be the score less what earlier masks
    predict (without i and j), with the sign of whichever is kept. Where i and j are interchangeable, x is as
    likely as −x whatever came before, so exp(λ Σx − λ² Σx² / 2) is a supermartingale for every λ (de la Peña
    1999), and so is its mean over a normal λ. By Ville's inequality it exceeds 1 / α with probability α at
    most, ever. A wrong passage at place p must beat the one that belongs there, so α is shared among 3k − 6
    pairs. x is divided by the size of earlier errors, so that units do not matter.
    """
    k = masks.shape[1]
    if k < 2 or len(masks) <= _WARM:
        return 0
    evidence, direction = _evidence(masks, values)
    apart = evidence >= math.log(max(1, FIRST * k - 6) / level)
    order = np.argsort(-scores, kind="stable")
    for place, one in enumerate(order[: min(FIRST, k)].tolist()):
        behind = order[place + 1 :]
        if not (apart[one, behind] & (direction[one, behind] > 0)).all():
            return place
    return min(FIRST, k)


def _evidence(masks: Bools, values: Floats) -> tuple[Floats, Floats]:
    """Return the log of the test of each pair, and which of both helps more, (k, k) each."""
    k = masks.shape[1]
    total, squares = np.zeros((k, k)), np.zeros((k, k))
    z, missed = np.asarray(masks - 0.5, dtype=np.float64), [float(np.std(values[:_WARM]))]
    for t in range(_WARM, len(masks)):
        weight = _ridge(z[:t], values[:t])
        # The size of the last errors, of masks before this one: what is exact by now counts for more.
        scale = (
            max(math.sqrt(np.mean(np.square(missed[-_LATEST:]))), _EXACT * float(np.std(values[:t]))) or 1.0
        )
        error = values[t] - weight[0] - z[t] @ weight[1:]
        missed.append(float(error))
        # Without i and j: what both add to the prediction where only one is kept is taken out.
        own = z[t] * weight[1:]
        x = (z[t][:, None] - z[t][None, :]) * (error + own[:, None] + own[None, :]) / scale
        total += x
        squares += x**2
    return total**2 / (2 * (squares + _SPREAD)) - np.log1p(squares / _SPREAD) / 2, total


def _ridge(z: Floats, values: Floats) -> Floats:
    """Return constant and effects of what is known so far; of few masks drawn towards 0."""
    centre = z.mean(axis=0)
    x = z - centre
    beta = np.linalg.solve(x.T @ x + 0.25 * np.eye(z.shape[1]), x.T @ (values - values.mean()))
    return np.concatenate([[values.mean() - centre @ beta], beta])
