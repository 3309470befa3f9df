"""Rows of a run to games, and back."""

import math

import numpy as np
import pytest

from core.attribution.analysis import plan_of
from core.attribution.attribute import Game
from core.attribution.measured import (
    RANGES,
    Plan,
    ablation_id,
    claim_game,
    kept_text,
    likeness,
    near_duplicates,
    own_claims,
    play,
    recorded,
)
from core.errors import InputError
from core.run import Run
from tests.core.attribution.attribution_runs import ANSWER, Embedder, answer_with

ALL = Plan(48, shapley=True, place=True, seed=3)


def told(found):
    """Everything that was found, as plain values to compare."""
    parts = [found.surrogate, found.shapley]
    arrays = [getattr(one, name) for one in parts if one for name in ("scores", "interval", "interactions")]
    said = found.surrogate.faithfulness
    numbers = [said.lds, said.low, said.high, said.concordance, said.n, found.surrogate.settled, *np.ravel(list(said.drops.items()) and [x for m in said.drops for x in said.drops[m]])]  # fmt: skip
    place = (
        [] if found.place is None else [*found.place.passages, *found.place.slots, found.place.slot_p_value]
    )
    ends = [x for group in found.groups for x in (*group[0], group[1], *group[2])]
    return np.concatenate([*map(np.ravel, arrays), numbers, place, found.swaps, ends]), found.surrogate.pairs


@pytest.mark.parametrize("k", [1, 2, 4, 8])
@pytest.mark.parametrize("by", ["logprob", "rouge"])
def test_an_attribution_is_played_again_on_its_rows(k, by):
    """The game of the rows gives what the game of the model gave, and misses nothing."""
    rows = {}

    def measure(masks, orders=None):
        for i, mask in enumerate(masks):
            key = ablation_id(mask, None if orders is None else orders[i])
            gained = (
                2 * bool(mask[0] or mask[-1])
                + int(mask.sum()) // 3
                + (orders is not None and orders[i][0] == 0)
            )
            if by == "logprob":
                rows[key] = {"logprob": -20.0 + gained, "n_tokens": 7}
            else:
                rows[key] = {"answer": answer_with(gained), "again": answer_with(gained)}
        ids = [ablation_id(mask, None if orders is None else orders[i]) for i, mask in enumerate(masks)]
        return np.array([likeness(ANSWER, rows[key]) for key in ids])

    groups = [[0, k - 1]] if k > 1 else []
    unit = 7.0 if by == "logprob" else 1.0
    first = play(Game(k, measure, unit, measure), ALL, groups)
    game, missing = recorded(k, ANSWER, rows)
    again = play(game, ALL, groups)
    assert not missing and again.surrogate.n_calls == first.surrogate.n_calls
    numbers, pairs = told(again)
    np.testing.assert_array_equal(numbers, told(first)[0])
    assert pairs == told(first)[1]
    # Under another seed other masks are wanted, and a row that is not there is missed.
    other, missing = recorded(k, ANSWER, rows)
    play(other, Plan(48, place=True, seed=4), groups)
    assert bool(missing) == (k > 4) or k in (2, 4)  # the orders may be the same of few passages
    lost = {key: row for key, row in rows.items() if key != "1" * k}
    short, missing = recorded(k, ANSWER, lost)
    play(short, ALL, groups)
    assert missing == {"1" * k} and short.n_failed > 0


def test_only_what_a_plan_asks_for_is_played():
    game = Game(4, lambda masks: masks.sum(axis=1) * 1.0, in_order=lambda masks, _: masks.sum(axis=1) * 1.0)
    found = play(game, Plan())
    assert (found.shapley, found.place, found.swaps.size, found.groups) == (None, None, 0, ())
    assert game.n_calls == 16
    assert play(game, Plan(place=True)).swaps.tolist() == [0, 0, 0]
    # One passage stands at one place only.
    alone = Game(1, lambda masks: masks[:, 0] * 1.0, in_order=lambda masks, _: masks[:, 0] * 1.0)
    found = play(alone, Plan(place=True))
    assert (found.place, found.swaps.size, alone.n_calls) == (None, 0, 2)


def test_near_duplicates_are_dropped_together_by_hand():
    # Either of two is enough, and a third adds 1.
    game = Game(3, lambda masks: 4.0 * (masks[:, 0] | masks[:, 2]) + masks[:, 1])
    assert play(game, Plan(), [[0, 2]]).groups == (((0, 2), 4.0, (0.0, 0.0)),)


def test_ids():
    assert kept_text(np.array([True, False, True])) == "101"
    assert ablation_id(np.array([False])) == "0"
    assert ablation_id(np.array([True] * 3), np.array([2, 0, 1])) == "111:2.0.1"


def test_the_score_of_a_row():
    assert likeness(ANSWER, {"logprob": -3.5, "answer": None, "answer_status": "answered"}) == -3.5
    # Five of seven words, in an answer of as many: F1 = 5/7.
    assert likeness(ANSWER, {"answer": answer_with(5)}) == pytest.approx(5 / 7)
    assert likeness(ANSWER, {"answer": ""}) == 0
    assert math.isnan(likeness(ANSWER, {"answer": "x", "answer_status": "error"}))
    assert math.isnan(likeness(ANSWER, {})) and math.isnan(likeness("", {"answer": "x"}))
    # Two abstentions in other words are the same answer.
    assert likeness("I don't know.", {"answer": "The passages do not say."}) in (0.0, 1.0)
    assert likeness("I don't know.", {"answer": "I do not know."}) == 1
    # An answer and an abstention, which share no word, are not.
    assert likeness("I don't know.", {"answer": ANSWER}) == 0 == likeness(ANSWER, {"answer": "I don't know."})


def test_the_ceiling_comes_from_the_answers_given_once_more():
    from core.stats.designs import random_masks

    k, rng = 6, np.random.default_rng(0)
    masks = random_masks(k, 40, 1)
    rows = {kept_text(mask): {"answer": answer_with(int(mask.sum())), "again": answer_with(int(rng.integers(7)))} for mask in masks}  # fmt: skip
    rows[kept_text(masks[0])]["again"] = None
    game, _ = recorded(k, ANSWER, rows)
    again = game.again(masks)
    assert math.isnan(again[0]) and np.isfinite(again[1:]).any()
    assert recorded(k, ANSWER, {"111111": {"logprob": -1.0, "n_tokens": 4}})[0].again is None
    assert recorded(k, ANSWER, {"111111": {"logprob": -1.0, "n_tokens": 4}})[0].unit == 4


def test_a_game_of_a_claim():
    game = claim_game(2, {"11": -2.0, "10": -3.0}, "two words")
    values = game(np.array([[True, True], [True, False], [False, True]]))
    assert values[:2].tolist() == [-2, -3] and math.isnan(values[2]) and game.unit == 2
    assert claim_game(2, {}, "Yes").unit == 1


def test_claims_are_those_of_the_answer_with_words_and_more_than_one():
    rows = [
        {"claim_id": f"c{i}", "text": text, "side": side}
        for i, (text, side) in enumerate([("One", "baseline"), (" ", "baseline"), ("Two", "reference"), ("Three", "baseline")])
    ]  # fmt: skip
    assert own_claims(rows) == {"c0": "One", "c3": "Three"}
    assert own_claims(rows[:3]) == own_claims([]) == {}


@pytest.mark.parametrize(
    ("texts", "groups"),
    [
        ([], []),
        (["same-1"], []),
        (["same-1", "other", "same-1"], [(0, 2)]),
        (["same-1", "same-2", "same-2", "x", "same-1", "same-1"], [(0, 4, 5), (1, 2)]),
        (["x", "same-1", "same-1", "same-2", "same-2"], [(1, 2), (3, 4)]),  # in the order of the prompt
        (["same-1", "same-1"], [(0, 1)]),
        (["", " ", "same-1"], []),  # without words they say nothing alike
        (["", "same-1", "x", "same-1"], [(1, 3)]),
    ],
)
def test_near_duplicates(texts, groups):
    assert near_duplicates(texts, Embedder().embed) == groups


def test_near_duplicates_are_chained_and_need_a_cosine_of_09():
    # At angles of 0, 25, 50 and 100 degrees: cos 25° = 0.906, cos 50° = 0.643.
    angles = np.radians([0, 50, 25, 100])
    vectors = np.column_stack([np.cos(angles), np.sin(angles)])
    assert near_duplicates(list("abcd"), lambda _: vectors) == [(0, 1, 2)]
    angles = np.radians([0, 26])  # cos 26° = 0.899
    vectors = np.column_stack([np.cos(angles), np.sin(angles)])
    assert near_duplicates(list("ab"), lambda _: vectors) == []
    # 0.9 itself is enough, whatever the rounding of the embedder.
    for cosine, groups in ((0.9, [(0, 1)]), (0.9 - 5e-7, [(0, 1)]), (0.9 - 5e-6, [])):
        vectors = np.array([[1.0, 0.0], [cosine, math.sqrt(1 - cosine**2)]])
        assert near_duplicates(list("ab"), lambda _, vectors=vectors: vectors) == groups


@pytest.mark.parametrize(
    "options", [{"masks": 10**9}, {"masks": "64"}, {"masks": True}, {"seed": -1}, {"seed": 0.5}]
)
def test_a_plan_that_no_step_has_is_refused_before_its_masks_are_drawn(options):
    run = Run.create({"source": "upload", "steps": {"attribution": {"options": options}}})
    with pytest.raises(InputError, match=f"^{next(iter(options))} must be a whole number from .*, got "):
        plan_of(run)


def test_what_is_measured_by_default_and_the_ranges():
    assert Plan() == Plan(masks=64, shapley=False, place=False, seed=0)
    assert RANGES == {"masks": (32, 1024), "seed": (0, 2_147_483_647)}
    for options in ({"masks": 1024, "seed": 2_147_483_647}, {"masks": 32, "seed": 0}):
        run = Run.create({"source": "upload", "steps": {"attribution": {"options": options}}})
        assert plan_of(run) == Plan(**options)
