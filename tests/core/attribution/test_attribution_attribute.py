"""One answer attributed under one budget of calls."""

import numpy as np
import pytest

from core.attribution.attribute import Game, attribute, swapped
from core.attribution.methods import METHODS
from core.errors import InputError
from core.stats.designs import all_masks, random_masks


def additive(effects, **more):
    effects = np.asarray(effects, dtype=float)
    return Game(len(effects), lambda masks: masks @ effects, **more)


class Counting:
    """A game that keeps the masks that it was asked for."""

    def __init__(self, rule):
        self.rule, self.asked = rule, []

    def __call__(self, masks):
        self.asked += masks.tolist()
        return np.asarray(self.rule(masks), dtype=float)


STRICT = np.array([0, 9.0, 0, 6, 0, 3.5, 0, 0, 0, 0])


def test_a_mask_is_measured_once():
    score = Counting(lambda masks: masks @ STRICT)
    game = Game(10, score)
    masks = random_masks(10, 8, 0)
    first = game(np.vstack([masks, masks[::-1]]))
    np.testing.assert_array_equal(first, np.append(masks @ STRICT, masks[::-1] @ STRICT))
    assert game.n_calls == len(score.asked) == 8
    game(masks)
    for name in METHODS:
        attribute(game, name, 48)
    assert (
        game.n_calls == len(score.asked) == len({tuple(mask) for mask in score.asked}) == 1024
    )  # exact had all


def test_orders_are_other_prompts_and_are_measured_once():
    asked = []
    game = additive(STRICT, in_order=lambda masks, orders: asked.append(len(masks)) or np.zeros(len(masks)))
    first = swapped(game, seed=2)
    assert first.tolist() == [18.5] * 4 and game.n_calls == 5
    swapped(game, seed=2)
    assert asked == [4]


def test_failed_masks_are_counted():
    game = Game(3, lambda masks: np.where(masks[:, 0], np.nan, masks[:, 1] * 1.0))
    found = attribute(game)
    assert (found.n_calls, found.n_failed) == (8, 4)
    assert found.faithfulness.reason == "incomplete"
    assert found.settled == 0  # nothing was measured with the first passage


@pytest.mark.parametrize("shape", ["too few", "a matrix"])
def test_a_score_of_another_shape_is_refused(shape):
    game = Game(2, lambda masks: np.zeros(1) if shape == "too few" else masks)
    with pytest.raises(InputError, match="score must return 4 numbers"):
        attribute(game)


@pytest.mark.parametrize("budget", [31, 0, -5, True])
def test_a_budget_is_at_least_32(budget):
    with pytest.raises(InputError, match="budget must be at least 32"):
        attribute(additive(STRICT), budget=budget)


def test_a_game_has_passages_and_a_method_its_name():
    with pytest.raises(InputError, match="1 passage or more"):
        attribute(Game(0, lambda masks: np.zeros(len(masks))))
    with pytest.raises(InputError, match="method must be one of"):
        attribute(additive(STRICT), "lime")


# --- every mask ---


@pytest.mark.parametrize("name", METHODS)
def test_where_the_budget_covers_all_masks_scores_are_exact(name):
    score = Counting(lambda masks: masks @ np.array([3.0, -2, 1, 0]))
    found = attribute(Game(4, score), name)
    np.testing.assert_allclose(found.scores, [3, -2, 1, 0], atol=1e-9)
    if name != "leave_one_out":
        assert found.n_calls == 16 and found.settled == 3
        np.testing.assert_allclose(found.interval, np.column_stack([found.scores] * 2), atol=1e-9)
    if name == "shapley":
        assert found.faithfulness.reason == "shares_credit"
    elif name != "leave_one_out":
        # 11 sums of different masks: -2 to 4, in ties of two by the last passage.
        assert found.faithfulness.n == 16 and found.faithfulness.concordance == 1


def test_pairs_are_looked_for_where_all_masks_are_there():
    # Three passages with 8 masks; one has a wobble that no pair explains, so that an error is left.
    def rule(masks):
        return 4.0 * (masks[:, 0] | masks[:, 1]) + 0.1 * masks.all(axis=1)

    found = attribute(Game(3, rule))
    assert found.looked_for_pairs and [(one.first, one.second) for one in found.pairs][:1] == [(0, 1)]
    assert found.interactions[0, 1] == pytest.approx(
        -4 + 0.05
    )  # the second difference, half of the time 0.1 more


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", METHODS)
def test_one_or_two_passages(name, k):
    found = attribute(additive([5.0, 2.0][:k]), name)
    assert found.scores.tolist() == [5.0, 2.0][:k]
    assert found.n_calls == 2**k and found.pairs == ()
    assert found.faithfulness.reason == ("shares_credit" if name == "shapley" else "too_few_masks")
    assert found.faithfulness.drops == ({} if k == 1 else {1: (5.0, pytest.approx(3.5, abs=1.5))})


def test_as_many_masks_as_there_are_subsets_need_not_be_all():
    """Of 7 passages 98 masks hold 8 pairs of orders: 128 = 2^7 masks along them, in which the ends come often."""
    score = Counting(lambda masks: masks @ STRICT[:7])
    found = attribute(Game(7, score), "shapley", 98)
    np.testing.assert_allclose(found.scores, STRICT[:7], atol=1e-9)
    assert found.settled == 0 and found.n_calls == len(score.asked) < 128
    assert (found.faithfulness.n, found.faithfulness.reason) == (0, "shares_credit")


# --- stopping ---


def test_drawing_stops_once_the_order_is_settled():
    clear = attribute(additive(STRICT), budget=256, n_test=0)
    assert clear.settled == 3 and clear.n_calls < 128
    masks = clear.n_calls
    # Rounds of 16 behind the first 32; without the first passages and without random ones 10 more at most.
    assert any(0 <= masks - n <= 10 for n in range(32, 129, 16))
    noise = np.random.default_rng(0)
    nothing = attribute(Game(10, lambda masks: noise.normal(size=len(masks))), budget=96, n_test=0)
    assert nothing.settled == 0
    assert len(np.unique(random_masks(10, 96), axis=0)) <= nothing.n_calls <= 96 + 10


def test_the_order_is_looked_at_after_32_masks_and_after_each_further_16():
    """What a step measured is found again only where the analysis looks after the same masks."""
    noise, asked = np.random.default_rng(0), []
    game = Game(10, lambda masks: asked.append(masks.tolist()) or noise.normal(size=len(masks)))
    assert attribute(game, "banzhaf", 70, n_test=0).settled == 0
    drawn, seen = random_masks(10, 70).tolist(), []
    for n, masks in zip((32, 48, 64, 70), asked, strict=False):
        seen += masks
        assert {tuple(mask) for mask in seen} == {tuple(mask) for mask in drawn[:n]}, n


def test_the_budget_is_not_exceeded_and_the_seed_decides():
    first, again = (attribute(additive(STRICT), budget=48, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.scores, again.scores)
    assert first.n_calls <= 48 + 32 + 10
    other = attribute(additive(STRICT), budget=48, seed=5)
    assert (first.scores != other.scores).any()
    plain, zero = (attribute(additive(STRICT), budget=48, **seed) for seed in ({}, {"seed": 0}))
    assert plain.scores.tolist() == zero.scores.tolist()


# --- judgement ---


def test_an_attribution_is_judged_on_masks_that_it_was_not_fitted_to():
    fitted = random_masks(10, 32).tolist()
    score = Counting(lambda masks: masks @ STRICT)
    found = attribute(Game(10, score), "banzhaf", 32)
    n = found.faithfulness.n
    assert 28 <= n <= 32 and not any(mask in fitted for mask in score.asked[-n:])
    assert found.faithfulness.lds > 0.99 and found.faithfulness.readable
    # Of 64 masks many are drawn twice: each counts once.
    few = attribute(additive(STRICT[:6]), "banzhaf", 32).faithfulness
    assert few.n <= 64 - len(np.unique(random_masks(6, 32), axis=0))
    # Noise that no other mask shares cannot be predicted.
    rng = np.random.default_rng(1)
    noise = attribute(Game(10, lambda masks: rng.normal(size=len(masks))), "banzhaf", 32)
    assert abs(noise.faithfulness.lds) < 0.5 and noise.faithfulness.readable is False
    nothing = attribute(additive(STRICT), n_test=0).faithfulness
    assert nothing.reason == "too_few_masks" and nothing.n == 0


def test_the_game_is_measured_again_on_the_held_out_masks():
    seen = []
    game = additive(STRICT, again=lambda masks: seen.append(len(masks)) or masks @ STRICT)
    found = attribute(game, "banzhaf", 32)
    assert seen == [found.faithfulness.n] and found.faithfulness.ceiling == 1


def test_failed_held_out_masks_are_left_out():
    game = Game(10, lambda masks: np.where(masks[:, 0] & masks[:, 2], np.nan, masks @ STRICT))
    found = attribute(game, budget=64)
    assert 8 <= found.faithfulness.n < 30 and found.n_failed > 0
    # With all passages there is no score.
    assert all(np.isnan(lost) for both in found.faithfulness.drops.values() for lost in both)
    assert np.isfinite(found.scores).all()


def test_a_score_that_never_changes():
    found = attribute(Game(10, lambda masks: np.full(len(masks), -4.0)))
    assert found.faithfulness.reason == "constant" and not found.scores.any() and found.pairs == ()
    assert found.faithfulness.drops == {1: (0, 0), 3: (0, 0), 5: (0, 0)}


def test_a_game_without_any_score():
    found = attribute(Game(10, lambda masks: np.full(len(masks), np.nan)))
    assert np.isnan(found.scores).all() and found.n_failed == found.n_calls
    assert found.faithfulness.reason == "too_few_masks" and found.settled == 0


def test_what_is_lost_without_the_first_passages():
    drops = attribute(additive(STRICT), budget=64).faithfulness.drops
    assert {m: top for m, (top, _) in drops.items()} == {1: 9, 3: 18.5, 5: 18.5}
    assert all(random < top for top, random in list(drops.values())[:2])
    # Where only one passage matters a random draw costs all or nothing: the mean of two is 0, half or all.
    alone = attribute(additive([8.0] + [0.0] * 9), budget=64).faithfulness.drops
    assert [top for top, _ in alone.values()] == [8, 8, 8]
    assert {random for _, random in alone.values()} <= {0, 4, 8} and alone[1][1] < 8
    # Of four passages there are no five to leave out.
    assert list(attribute(additive([4.0, 3, 2, 1])).faithfulness.drops) == [1, 3]


def test_adding_a_constant_or_another_unit_changes_nothing_else():
    rng = np.random.default_rng(3)
    values = dict(zip(map(bytes, all_masks(8)), rng.normal(size=256) + all_masks(8)[:, 0] * 3, strict=True))
    plain, moved = (
        attribute(Game(8, lambda m, a=a, b=b: np.array([values[bytes(one)] * a + b for one in m]), unit=a), budget=64)
        for a, b in ((1.0, 0.0), (5.0, -70.0))
    )  # fmt: skip
    np.testing.assert_allclose(moved.scores, plain.scores * 5, atol=1e-6)
    np.testing.assert_allclose(moved.interval, plain.interval * 5, atol=1e-6)
    assert moved.faithfulness.lds == pytest.approx(plain.faithfulness.lds)
    assert (moved.settled, moved.n_calls) == (plain.settled, plain.n_calls)
    assert [one[:2] for one in moved.pairs] == [one[:2] for one in plain.pairs]


def test_shown_in_a_notebook_it_says_what_it_is_and_whether_it_can_be_judged():
    few = attribute(additive([5.0, 2.0]))._repr_html_()
    for said in ("Attribution by surrogate, 4 calls", "passage 0", "5 (5 to 5)", "passage 1", "2 (2 to 2)"):
        assert said in few
    about = "Predicted and measured scores of subsets that were not fitted to: "
    assert f"{about}too_few_masks." in few
    judged = attribute(additive([4.0, 3, 2, 1]))._repr_html_()  # all 16 masks, each predicted from the others
    assert f"{about}Spearman&#x27;s ρ 1.00, n = 16." in judged.replace("&#39;", "&#x27;")


def test_the_frame_has_a_row_for_each_passage():
    frame = attribute(additive([5.0, 2.0])).to_frame()
    assert frame.to_dict("list") == {"passage": [0, 1], "score": [5, 2], "low": [5, 2], "high": [5, 2]}
