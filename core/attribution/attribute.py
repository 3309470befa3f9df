"""Attribution of an answer to its passages, under one budget of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.arrays import Bools, Floats, Ints
from core.attribution.faithfulness import TOP, Faithfulness, judged, left_out_one_by_one
from core.attribution.methods import (
    BANZHAF,
    EXACT,
    LEAVE_ONE_OUT,
    METHODS,
    PREDICT,
    SURROGATE,
    Fit,
    Method,
    method_of,
)
from core.attribution.pairs import Pair, enough_for_pairs, interacting
from core.attribution.place import Split, split
from core.attribution.settling import FIRST, settled
from core.errors import InputError
from core.html import card
from core.stats.designs import held_out, latin_square, random_masks

BUDGET = 32
N_TEST = 32
ROUND = 16  # masks between two looks at whether the order is settled
_PLACE_SEED = 2_000_003  # so that no two parts draw the same masks
_RANDOM = 2  # times as many random passages are left out
_SWAPS = 4
_CLEAR = 0.005  # p-value of a pair that may help to predict the masks it was found in
MOST_AFTER = len(TOP) * (1 + _RANDOM)  # masks that follow from what was found


@dataclass(frozen=True, slots=True)
class Attribution:
    """How the passages of one question made its answer.

    ``scores``, (k,), in the unit of the game, higher = the passage helped the answer more; ``interval``,
    (k, 2), 95 %, NaN where nothing tells; ``pairs`` that do not add up; ``interactions``, (k, k), what the
    method itself adds to the sum of scores for two passages kept together. ``settled``: how many of the first
    three places are settled (`core.attribution.settling`); all where every subset was measured.
    ``n_calls`` different masks were measured, ``n_failed`` of them without a score; ``looked_for_pairs``:
    whether there were enough for pairs.
    """

    method: str
    scores: Floats
    interval: Floats
    pairs: tuple[Pair, ...]
    interactions: Floats
    faithfulness: Faithfulness
    settled: int
    n_calls: int
    n_failed: int
    looked_for_pairs: bool

    def to_frame(self) -> pd.DataFrame:
        """Return one row per passage: ``passage`` (from 0), ``score, low, high``."""
        low, high = self.interval.T
        columns = {"passage": np.arange(len(self.scores)), "score": self.scores, "low": low, "high": high}
        return pd.DataFrame(columns)

    def _repr_html_(self) -> str:
        rows = [
            (f"passage {one.passage}", f"{one.score:.3g} ({one.low:.3g} to {one.high:.3g})")
            for one in self.to_frame().itertuples()
        ]
        judged = self.faithfulness
        told = f"Spearman's ρ {judged.lds:.2f}, n = {judged.n}"
        said = f"Predicted and measured scores of subsets that were not fitted to: {judged.reason or told}."
        return card(f"Attribution by {self.method}, {self.n_calls} calls", rows, [said])


class Game:
    """Scores of an answer with some of its k passages, each mask measured once.

    ``score(masks)`` takes masks of shape (n, k), True = kept, and returns n numbers, NaN where one failed;
    ``in_order(masks, orders)`` the same with the passages in other orders, (n, k), each row the passage at
    each place. ``unit`` is the number of the answer's tokens where scores are log-probabilities, else 1:
    penalties are per token. ``again(masks)`` measures once more, NaN where it does not. ``n_calls`` different
    prompts were measured.
    """

    def __init__(
        self,
        k: int,
        score: Callable[[Bools], Floats],
        unit: float = 1.0,
        in_order: Callable[[Bools, Ints], Floats] | None = None,
        again: Callable[[Bools], Floats] | None = None,
    ) -> None:
        self.k, self.unit, self.again = k, unit, again
        self._score, self._in_order = score, in_order
        self._known: dict[bytes, float] = {}

    def __call__(self, masks: Bools) -> Floats:
        """Return the score of each mask, shape (n,)."""
        new = {mask.tobytes(): mask for mask in masks if mask.tobytes() not in self._known}
        if new:
            self._keep(list(new), self._score(np.array(list(new.values()))))
        return np.array([self._known[mask.tobytes()] for mask in masks])

    def ordered(self, masks: Bools, orders: Ints) -> Floats:
        """Return the score of each mask with the passages in other orders, shape (n,)."""
        if self._in_order is None:
            return np.full(len(masks), np.nan)
        keys = [mask.tobytes() + order.tobytes() for mask, order in zip(masks, orders, strict=True)]
        new = [i for i, key in enumerate(keys) if key not in self._known]
        if new:
            self._keep([keys[i] for i in new], self._in_order(masks[new], orders[new]))
        return np.array([self._known[key] for key in keys])

    def _keep(self, keys: Sequence[bytes], found: Floats) -> None:
        found = np.asarray(found, dtype=np.float64)
        if found.shape != (len(keys),):
            raise InputError(
                f"score must return {len(keys)} numbers for as many masks, got shape {found.shape}."
            )
        self._known.update(zip(keys, found.tolist(), strict=True))

    @property
    def n_calls(self) -> int:
        """Different prompts measured so far."""
        return len(self._known)

    @property
    def n_failed(self) -> int:
        """Those without a score."""
        return sum(value != value for value in self._known.values())


def attribute(
    game: Game, method: str = SURROGATE, budget: int = BUDGET, seed: int = 0, n_test: int = N_TEST
) -> Attribution:
    """Attribute an answer to its passages.

    Cost: the method's masks, at most ``budget``; ``n_test`` random masks on which it is judged; and those
    without its first 1, 3 and 5 passages and without as many random ones, twice. Methods with random masks
    draw them in rounds until the order of the first three passages is settled or the budget is spent. Where
    the budget covers all 2^k masks, these are measured, scores are exact, and each mask is predicted from the
    others.

    Parameters
    ----------
    game : Game
        Scores by mask.
    method : str
        One of `core.attribution.methods.METHODS`. "predict" methods say what leaving passages out does,
        "share" methods how the credit is shared; only the former are judged by predictions.
    budget : int
        Most masks for the method, at least 32; the method decides how many it needs.
    seed : int
        Of all masks.
    n_test : int
        Held-out masks; 0 judges nothing.
    """
    chosen, k = method_of(method), game.k
    if k < 1 or isinstance(budget, bool) or budget < BUDGET:
        raise InputError(f"budget must be at least {BUDGET} masks for 1 passage or more, got {budget!r}.")
    masks = chosen.masks(k, budget, seed)
    every = len(masks) == 2**k and len(np.unique(masks, axis=0)) == 2**k
    places = min(FIRST, k)
    at = 0 if not every else places
    if chosen.random and not every:
        n = BUDGET
        while (at := _settled(masks[:n], game)) < places and n < len(masks):
            n = min(n + ROUND, len(masks))
        masks = masks[:n]
    values = game(masks)
    if every and np.isnan(values).any():
        at = 0
    # Nothing is estimated where all subsets are known: every method that predicts finds the same.
    fit = (METHODS[EXACT] if every and chosen.random else chosen).fit(masks, values, game.unit)
    usable = ~np.isnan(values)
    looks = (chosen.random or every) and enough_for_pairs(masks[usable])
    found = interacting(masks[usable], values[usable]) if looks else ()
    if chosen.answers == PREDICT:
        judgement = _judge(chosen, fit, masks, values, game, found if every else None, n_test, seed)
    else:
        judgement = Faithfulness(reason="shares_credit", drops=_drops(fit.scores, game, seed))
    return Attribution(
        chosen.name,
        fit.scores,
        fit.interval,
        found,
        fit.pairs,
        judgement,
        at,
        game.n_calls,
        game.n_failed,
        looks,
    )


def _settled(masks: Bools, game: Game) -> int:
    values = game(masks)
    usable = ~np.isnan(values)
    scores = METHODS[BANZHAF].fit(masks, values, 1.0).scores
    return settled(masks[usable], values[usable], scores)


def _judge(
    chosen: Method,
    fit: Fit,
    masks: Bools,
    values: Floats,
    game: Game,
    of_all: Sequence[Pair] | None,
    n_test: int,
    seed: int,
) -> Faithfulness:
    """Judge by held-out masks or, where all were measured and ``of_all`` are their pairs, one by one."""
    drops = _drops(fit.scores, game, seed)
    if of_all is not None and chosen.name != LEAVE_ONE_OUT:
        if np.isnan(values).any():
            return Faithfulness(n=len(values), drops=drops, reason="incomplete")
        again = None if game.again is None else game.again(masks)
        # They were chosen by the same masks, so that only clear ones may help to predict these.
        pairs = [(one.first, one.second) for one in of_all if one.p_value <= _CLEAR]
        return judged(left_out_one_by_one(masks, values, pairs), values, again, drops)
    # A mask that was drawn twice is measured once.
    test = np.unique(held_out(game.k, n_test, seed), axis=0)
    own = {mask.tobytes() for mask in masks}  # what was fitted is no test
    test = test[[mask.tobytes() not in own for mask in test]]
    tested = game(test)
    usable = ~np.isnan(tested)
    again = game.again(test)[usable] if game.again is not None else None
    return judged(fit.predict(test[usable]), tested[usable], again, drops)


def _drops(scores: Floats, game: Game, seed: int) -> Mapping[int, tuple[float, float]]:
    """Return what is lost without the first passages, and without as many random ones, by their number."""
    k, rng = len(scores), np.random.default_rng([seed, 3])
    dealt = [rng.permutation(k) for _ in range(_RANDOM)]
    if np.isnan(scores).any():
        return {}
    chosen = [m for m in TOP if m < k]
    orders = [np.argsort(-scores, kind="stable"), *dealt]
    masks = [~np.isin(np.arange(k), order[:m]) for m in chosen for order in orders]
    whole, *found = game(np.array([np.ones(k, dtype=bool), *masks])).tolist()
    rows = np.array(found).reshape(len(chosen), 1 + _RANDOM)
    return {m: (whole - row[0], float(whole - row[1:].mean())) for m, row in zip(chosen, rows, strict=True)}


def n_placed(k: int) -> int:
    """Return the masks that `placed` measures: at least 4 k + 4, the same number in each of k orders."""
    return -(-max(BUDGET, 4 * (k + 1)) // k) * k


def n_swapped(k: int) -> int:
    """Return the swaps that `swapped` measures."""
    return min(_SWAPS, k - 1)


def placed(game: Game, seed: int = 0) -> Split:
    """Split the influence of passages from that of places; see `core.attribution.place.split`.

    Random masks in the orders of a Latin square; `n_placed` calls.
    """
    k = game.k
    orders = np.resize(latin_square(k, seed), (n_placed(k), k))
    masks = random_masks(k, len(orders), seed + _PLACE_SEED)
    values = game.ordered(masks, orders)
    usable = ~np.isnan(values)
    return split(masks[usable], orders[usable], values[usable])


def swapped(game: Game, seed: int = 0) -> Floats:
    """Return the placebo: how much the score changes where two neighbours change places, shape (m,).

    All passages are there; a few random pairs of neighbours, each by itself; `n_swapped` calls, and
    that of all in order.
    """
    k = game.k
    first = np.random.default_rng([seed, 4]).permutation(max(k - 1, 0))[: n_swapped(k)]
    orders = np.tile(np.arange(k), (len(first), 1))
    for row, place in zip(orders, first.tolist(), strict=True):
        row[[place, place + 1]] = row[[place + 1, place]]
    whole = game(np.ones((1, k), dtype=bool))[0]
    return np.asarray(np.abs(game.ordered(np.ones((len(first), k), dtype=bool), orders) - whole))
