"""From the rows of a run to games, and back.

`attribute` decides by what it saw which masks come next, and always in the same way. So the analysis plays
the same game again on the measurements that the step has kept; what it misses is still to be measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.arrays import Bools, Floats, Ints
from core.attribution.attribute import BUDGET, Attribution, Game, attribute, placed, swapped
from core.attribution.methods import SHAPLEY, SURROGATE
from core.attribution.place import Split
from core.text.abstention import answer_status
from core.text.overlap import rouge_l

LOGPROB, ROUGE = "logprob", "rouge"
SUPPORTS = 0.5  # least probability of a passage that supports a claim
SAME = 0.9  # cosine similarity of two passages that say nearly the same
RANGES: Mapping[str, tuple[int, int]] = {"masks": (BUDGET, 1024), "seed": (0, 2**31 - 1)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured of each question; see `core.attribution.step.AttributionStep`."""

    masks: int = 64
    shapley: bool = False
    place: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that the masks of one question say; a part that was not measured is None or empty.

    ``groups`` are passages that belong together, numbered from 0, with what the answer loses
    without all of them, and without each.
    """

    surrogate: Attribution
    shapley: Attribution | None
    place: Split | None
    swaps: Floats
    groups: tuple[tuple[tuple[int, ...], float, tuple[float, ...]], ...]


def play(game: Game, plan: Plan, groups: Sequence[Sequence[int]] = ()) -> Found:
    """Measure everything that a plan asks for; see `core.attribution.attribute`."""
    k = game.k
    surrogate = attribute(game, SURROGATE, max(plan.masks, BUDGET), plan.seed)
    shared = attribute(game, SHAPLEY, max(plan.masks, BUDGET), plan.seed) if plan.shapley else None
    place, swaps = None, np.empty(0)
    if plan.place and k > 1:
        place, swaps = placed(game, plan.seed), swapped(game, plan.seed)
    dropped = []
    for group in groups:
        masks = np.ones((2 + len(group), k), dtype=bool)
        masks[1, list(group)] = False
        masks[range(2, 2 + len(group)), list(group)] = False
        whole, together, *each = game(masks).tolist()
        dropped.append((tuple(group), whole - together, tuple(whole - one for one in each)))
    return Found(surrogate, shared, place, swaps, tuple(dropped))


def kept_text(mask: Bools) -> str:
    """Return a mask as a run keeps it: ``"1011"``."""
    return "".join("01"[int(one)] for one in mask)


def ablation_id(mask: Bools, order: Ints | None = None) -> str:
    """Return the id of a measurement within its question.

    >>> ablation_id(np.array([True, False])), ablation_id(np.array([True, True]), np.array([1, 0]))
    ('10', '11:1.0')
    """
    return kept_text(mask) if order is None else f"{kept_text(mask)}:{'.'.join(map(str, order.tolist()))}"


def recorded(k: int, answer: str, rows: Mapping[str, Mapping[str, Any]]) -> tuple[Game, set[str]]:
    """Return the game of one question on rows of the table ``ablations``, by id; and the ids that it misses.

    Scores are log-probabilities of the answer where the rows have them, else ROUGE-L F1 with it: 1 for the
    same answer, and for two that abstain. A row that failed is not missed.
    """
    missing: set[str] = set()

    def score(masks: Bools, orders: Ints | None = None) -> Floats:
        ids = [ablation_id(mask, None if orders is None else orders[i]) for i, mask in enumerate(masks)]
        missing.update(one for one in ids if one not in rows)
        return np.array([likeness(answer, rows.get(one, {})) for one in ids], dtype=np.float64)

    def again(masks: Bools) -> Floats:
        asked = [rows.get(kept_text(mask), {}) for mask in masks]
        return np.array([_rouge(answer, row.get("again")) for row in asked], dtype=np.float64)

    tokens = next((row["n_tokens"] for row in rows.values() if row.get("n_tokens")), None)
    return Game(k, score, float(tokens or 1), score, None if tokens else again), missing


def claim_game(k: int, rows: Mapping[str, float], text: str) -> Game:
    """Return the game of one claim on its scores by ablation."""

    def score(masks: Bools) -> Floats:
        return np.array([rows.get(kept_text(mask), math.nan) for mask in masks], dtype=np.float64)

    return Game(k, score, float(max(1, len(text.split()))))


def own_claims(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the claims of the answer by id; of an answer with one claim, that one is the answer."""
    own = {row["claim_id"]: row["text"] for row in rows if row["side"] != "reference" and row["text"].strip()}
    return own if len(own) > 1 else {}


def likeness(answer: str, row: Mapping[str, Any]) -> float:
    """Return the score of a row: higher = more of the answer is left; NaN where it failed or is not there."""
    if row.get("logprob") is not None:
        return float(row["logprob"])
    return math.nan if row.get("answer_status") == "error" else _rouge(answer, row.get("answer"))


def _rouge(answer: str, other: str | None) -> float:
    if other is None or answer_status(answer) == "empty":
        return math.nan
    if answer_status(answer) == "abstained" and answer_status(other) == "abstained":
        return 1.0
    return rouge_l(answer, other).f1


def near_duplicates(texts: Sequence[str], embed: Callable[[Sequence[str]], Any]) -> list[tuple[int, ...]]:
    """Group passages that say nearly the same: cosine of their embeddings at least `SAME`, chained.

    Passages without words belong to no group; groups have two members or more, numbered from 0.
    """
    known = [i for i, text in enumerate(texts) if text.strip()]
    if len(known) < 2:
        return []
    vectors = np.asarray(embed([texts[i] for i in known]))
    alike = vectors @ vectors.T >= SAME - 1e-6
    groups: list[tuple[int, ...]] = []
    left = list(range(len(known)))
    while left:
        group = [left.pop(0)]
        while new := [i for i in left if alike[i, group].any()]:
            group += new
            left = [i for i in left if i not in new]
        if len(group) > 1:
            groups.append(tuple(sorted(known[i] for i in group)))
    return groups


def same_support(passage_ids: Sequence[str], support: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
    """Group passages that support the same claims, one or more, by rows of the table ``support``.

    >>> found = {"a": 0.9, "b": 0.1, "c": 0.8}
    >>> rows = [{"passage_id": one, "claim_id": "1", "probability": p} for one, p in found.items()]
    >>> same_support(["a", "b", "c"], rows)
    [(0, 2)]
    """
    groups: dict[frozenset[str], list[int]] = {}
    for i, passage_id in enumerate(passage_ids):
        of = (row for row in support if row["passage_id"] == passage_id and row["probability"] is not None)
        claims = frozenset(row["claim_id"] for row in of if row["probability"] >= SUPPORTS)
        if claims:
            groups.setdefault(claims, []).append(i)
    return [tuple(group) for group in groups.values() if len(group) > 1]
