"""The step with the quick screen, by a model whose estimates are its exact values and a table of errors."""

import io
import math
from dataclasses import replace

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.influence.diagnostic import influence_csv
from core.likelihood.screening import agreement, costs, n_approximate, to_check
from core.likelihood.step import LikelihoodStep
from core.pipeline import fill, plan_steps
from core.pipeline.plan import Speed, measure_speed
from tests.core.likelihood.likelihood_runs import Reader, likelihood_run

SIX = {f"word{i}": False for i in range(6)}
# By what each passage raises the answer, and by how much less the screen says.
GAINS = {"omega": {"word0": 5.0, "word1": 4.0, "word2": 3.0, "word3": 2.0, "word4": 1.0, "word5": 0.5}}
OFF = {"word0": 0.25, "word3": 0.5, "word5": -1.0}


class Screener(Reader):
    """Also screens: leaving out a passage takes ``off`` less from an answer than it does in truth."""

    def __init__(self, gains, off, blind=(), **options):
        super().__init__(gains, **options)
        self.capabilities = replace(self.capabilities, screen=True)
        self.screened = 0
        self._off, self._blind = off, blind

    def screen(self, messages, without, answers, cancelled=None):
        self.screened += 1
        return [
            [self._estimate(turns[0].content, answer) for answer in answers] for turns in (messages, *without)
        ]

    def _estimate(self, prompt, answer):
        gone = [word for word in SIX if word not in prompt]
        if set(gone) & set(self._blind):
            return None
        first, second = self._one(prompt, answer)
        return (first, second + sum(self._off.get(word, 0.0) for word in gone))


def filled(exactness, model, *questions):
    return fill(
        likelihood_run(*questions or [("omega", None, SIX)]), LikelihoodStep(exactness=exactness), llm=model
    )


def column(run, name):
    return run.passages[name].to_list()


def test_screen_only():
    model = Screener(GAINS, OFF)
    run = filled("screen", model)
    assert column(run, "logprob_drop") == [4.75, 4.0, 3.0, 1.5, 1.0, 1.5] == column(run, "screened_drop")
    assert column(run, "approximate_drop") == [True] * 6
    assert (model.screened, model.calls_of_score) == (1, [])
    facts = run.manifest["steps"]["likelihood"]
    assert facts["options"] == {"style": "short", "exactness": "screen"} and facts["complete"]
    assert facts["notes"] == [
        "Approximate, estimated by the quick screen: 6 of 6 drops of log-probability. None was checked."
    ]
    assert facts["approximate"] == 6 and facts["agreement"]["mean_absolute_difference"] is None


def test_screen_then_the_first_three_and_two_others_exactly():
    model = Screener(GAINS, OFF)
    run = filled("screen+3", model)
    exact = [i for i, approximate in enumerate(column(run, "approximate_drop")) if not approximate]
    assert exact[:3] == [0, 1, 2] and len(exact) == 5
    left = ({3, 4, 5} - set(exact)).pop()
    true, estimated = list(GAINS["omega"].values()), [4.75, 4.0, 3.0, 1.5, 1.0, 1.5]
    assert column(run, "screened_drop") == estimated
    assert column(run, "logprob_drop") == [estimated[i] if i == left else true[i] for i in range(6)]
    # With all passages and without each of the five, in one call.
    assert [len(call) for call in model.calls_of_score] == [6]
    facts = run.manifest["steps"]["likelihood"]["agreement"]
    off = {3: 0.5, 4: 0.0, 5: 1.0}
    assert facts["n"] == 2
    assert facts["mean_absolute_difference"] == pytest.approx((sum(off.values()) - off[left]) / 2)


def test_exact_asks_for_no_screen_and_says_nothing():
    model = Screener(GAINS, OFF)
    run = filled("exact", model)
    assert column(run, "logprob_drop") == list(GAINS["omega"].values()) and model.screened == 0
    assert column(run, "approximate_drop") == [False] * 6
    assert run.passages["screened_drop"].isna().all()
    facts = run.manifest["steps"]["likelihood"]
    assert facts["options"] == {"style": "short"} and facts["notes"] == [] and "approximate" not in facts


def test_what_cannot_be_estimated_is_read_exactly():
    run = filled("screen", Screener(GAINS, OFF, blind=["word3"]))
    assert column(run, "logprob_drop") == [4.75, 4.0, 3.0, 2.0, 1.0, 1.5]
    assert column(run, "approximate_drop") == [True, True, True, False, True, True]


def test_a_model_without_a_screen_reads_everything_exactly():
    run = filled("screen", Reader(GAINS))
    assert column(run, "logprob_drop") == list(GAINS["omega"].values())
    assert run.manifest["steps"]["likelihood"]["approximate"] == 0


def test_the_reference_is_estimated_with_the_answer_and_leads_without_one():
    gains = GAINS | {"alpha": {"word4": 9.0, "word5": 8.0, "word3": 7.0}}
    run = filled("screen+3", Screener(gains, {}), ("omega", ["alpha"], SIX), (None, ["alpha"], SIX, "error"))
    exact = run.passages[~run.passages["approximate_drop"]].groupby("query_id")["text"].agg(set)
    assert exact["q1"] >= {"word0", "word1", "word2"} and exact["q2"] >= {"word3", "word4", "word5"}
    assert run.passages["reference_logprob_drop"].to_list() == [0.0, 0.0, 0.0, 7.0, 9.0, 8.0] * 2
    assert run.passages["screened_drop"].isna().to_list() == [False] * 6 + [True] * 6


def test_an_estimate_of_nothing_comes_after_a_small_one():
    run = filled("screen+3", Screener({"omega": {"word3": 0.9, "word4": 0.8, "word5": 0.7}}, {}))
    assert column(run, "screened_drop") == pytest.approx([0, 0, 0, 0.9, 0.8, 0.7])
    assert column(run, "approximate_drop")[3:] == [False] * 3 and sum(column(run, "approximate_drop")) == 1


def test_nothing_is_kept_of_a_screen_that_loses_a_text():
    class Short(Screener):
        def screen(self, messages, without, answers, cancelled=None):
            return [own[:1] for own in super().screen(messages, without, answers, cancelled)]

    run = filled("screen", Short(GAINS, OFF), ("omega", ["alpha"], SIX))
    assert run.passages["logprob_drop"].isna().all()
    assert run.manifest["steps"]["likelihood"]["n_left"] == 1


def test_another_exactness_reads_again():
    first = filled("screen", Screener(GAINS, OFF))
    second = fill(first, LikelihoodStep(), llm=Screener(GAINS, OFF))
    assert column(second, "logprob_drop") == list(GAINS["omega"].values())
    assert not any(column(second, "approximate_drop"))


def test_an_unknown_exactness():
    with pytest.raises(InputError, match="exactness must be one of exact, screen\\+3, screen, got 'fast'"):
        LikelihoodStep(exactness="fast")


def test_the_check_is_of_the_first_and_the_same_others_each_time():
    estimates = [0.0, 9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 4.0]
    chosen = to_check(estimates, "q1")
    assert chosen == to_check(estimates, "q1") and {1, 3, 5} < set(chosen) and len(chosen) == 5
    assert {tuple(to_check(estimates, f"q{i}")) for i in range(20)} > {tuple(chosen)}
    assert to_check([1.0, 2.0], "q1") == [0, 1] and to_check([1.0, 2.0, 3.0, 4.0], "q1") == [0, 1, 2, 3]


def test_agreement_is_of_what_the_screen_did_not_choose():
    passages = pd.DataFrame(
        {
            "query_id": ["a"] * 6 + ["b"] * 5 + ["c"] * 5,
            "screened_drop": [
                9.0,
                8.0,
                7.0,
                1.0,
                2.0,
                3.0,
                *[9.0, 8.0, 7.0, 2.0, 1.0],
                *[9.0, 8.0, 7.0, 1.0, 2.0],
            ],
            # Of a, 1 and 2 are checked, in the other order; of b, 2 and 1, and of c, 1 and 2, in the same one.
            "logprob_drop": [
                0.0,
                0.0,
                0.0,
                4.0,
                2.5,
                3.0,
                *[9.0, 8.0, 7.0, 2.5, 2.0],
                *[9.0, 8.0, 7.0, 0.5, 1.5],
            ],
            "approximate_drop": pd.array([False] * 5 + [None] + [False] * 10, dtype="boolean"),
        }
    )
    found = agreement(passages)
    assert (found.n, found.n_questions, found.n_pairs, found.same_order) == (6, 3, 3, 2 / 3)
    assert found.apart == pytest.approx((3.0 + 0.5 + 0.5 + 1.0 + 0.5 + 0.5) / 6)
    # Wilson's interval of 2 of 3; the means of the questions are 1.75, 0.75 and 0.5.
    assert found.order_interval == pytest.approx((0.2077, 0.9385), abs=1e-4)
    assert str(found).endswith("; in the same order: 67 % of 3 pairs (by chance 50 %)")
    assert str(found._replace(n=1, n_pairs=1)).startswith("1 other, drawn at random")
    assert found.apart_interval == pytest.approx((0.5, 1.75))
    assert found.facts == {
        "n": 6, "mean_absolute_difference": found.apart, "n_pairs": 3, "same_order": 2 / 3,
    }  # fmt: skip
    # Without question c's and b's fifth passage, and of a only what was put first and one other.
    alone = agreement(passages.iloc[[0, 1, 2, 3, 6, 7, 8, 9]])
    assert str(alone) == "2 others, drawn at random and read exactly, it is off by 1.75 nats"
    assert alone.facts["same_order"] is None


def test_what_is_not_said_to_be_estimated_is_not_counted():
    told = pd.array([True, None, False], dtype="boolean")
    assert n_approximate(pd.DataFrame({"approximate_drop": told})) == 1


def test_no_agreement_where_nothing_was_checked():
    passages = pd.DataFrame(
        {"query_id": ["a"], "screened_drop": [1.0], "logprob_drop": [1.0], "approximate_drop": [True]}
    )
    found = agreement(passages)
    assert (found.n, found.n_pairs) == (0, 0) and math.isnan(found.apart) and math.isnan(found.same_order)


def test_the_plan_offers_all_three():
    long = {f"{word} {'and more ' * 100}": False for word in SIX}
    run, model = likelihood_run(("omega", ["alpha"], long)), Screener(GAINS, OFF)
    plan = plan_steps(run, [LikelihoodStep(exactness="screen")], {"likelihood": model})
    exact, checked, screen = plan.to_dict()["likelihood_choices"]
    # Two texts after seven prompts; two passes, then two texts after six; two passes.
    assert (exact["calls"], checked["calls"], screen["calls"]) == (14, 14, 2)
    assert 2 * screen["tokens"] < checked["tokens"] and 2 * screen["tokens"] < exact["tokens"]
    assert plan.to_dict()["likelihood_calls_about"] == 2 and plan.prompt_tokens == screen["tokens"]
    timed = plan.timed(Speed("likelihood", model.name, 0.5, 1))
    assert timed.to_dict()["likelihood_choices"][2]["seconds"] == pytest.approx(0.5 * screen["tokens"])
    rows = timed.to_frame().set_index("item")
    assert rows.loc["likelihood, screen", "note"].startswith("chosen; about ")
    assert "chosen" not in rows.loc["likelihood, exact", "note"]


def test_a_plan_of_this_step_alone_is_timed_by_reading_a_prompt():
    run, model = likelihood_run(("omega", ["alpha"], SIX)), Reader(GAINS, delay=0.01)
    model._rule = lambda request: "omega"
    plan = plan_steps(run, [LikelihoodStep()], {"likelihood": model})
    speed = measure_speed(model, plan.steps[0])
    assert (speed.step, speed.n_calls) == ("likelihood", 1)
    assert [call.request.max_tokens for call in plan.steps[0].first] == [1, 1]
    exact, *_ = plan.timed(speed).steps[0].choices
    assert exact.seconds == pytest.approx(speed.seconds_per_token * exact.tokens) and exact.seconds > 0


def test_costs_by_hand():
    # Five prompts: 100 tokens, and without passages of 10, 20, 30 and 25; one text, a tail of 15.
    found = costs([100, 90, 80, 70, 75], 1, 15)
    assert found["exact"] == (5, 100 + (75 + 15) + (55 + 15) + (25 + 15) + 15)
    assert found["screen"] == (2, 100 + 5 * 15)
    assert found["screen+3"] == (2 + 5, 175 + 315)
    # Ten of 9 tokens: five of them exactly, behind each 40.5 on average.
    found = costs([100, *[91] * 10], 1, 10)
    assert found["screen+3"] == (2 + 6, 210 + 100 + round(5 * (40.5 + 10)))
    # Two texts after three prompts: what is behind each passage is 20 and 0.
    assert costs([100, 90, 80], 2, 15) == {
        "exact": (6, 100 + (20 + 15) + 15),
        "screen": (2, 100 + 3 * 2 * 15),
        "screen+3": (2 + 6, 190 + 100 + 50),
    }
    # One passage only, and nothing behind it.
    assert costs([100, 90], 1, 20) == {"exact": (2, 120), "screen": (2, 140), "screen+3": (4, 140 + 100 + 20)}
    assert set(costs([100, 90], 0, 20).values()) == {(0, 0)}


def numbers_of(run):
    return {one.key: one for one in Diagnosis(run).numbers("likelihood")}


def test_the_numbers_say_what_is_estimated_and_how_far_off():
    found = numbers_of(filled("screen+3", Screener(GAINS, {"word3": 0.5, "word4": 0.5, "word5": 0.5})))
    assert (found["n_approximate"].value, found["n_approximate"].of) == (1, 6)
    assert (found["screen_off"].value, found["screen_off"].n) == (0.5, 2)
    # 2, 1 and 0.5 less 0.5 each are in the same order.
    order = found["screen_order"]
    assert (order.value, order.n, order.chance) == (1.0, 1, 0.5)
    # Wilson's interval of 1 of 1: from 1 / (1 + 1.96²); the two differences are of one question.
    assert order.interval == pytest.approx((0.2065, 1.0), abs=1e-4)
    assert found["screen_off"].interval is None
    assert found["gold_by_answer"].note == found["n_misleading"].note == "partly approximate"
    assert found["gold_by_retrieval"].note == ""


def test_the_numbers_of_exact_drops_say_that_nothing_is_estimated():
    found = numbers_of(filled("exact", Screener(GAINS, OFF)))
    assert (found["n_approximate"].value, found["n_approximate"].of) == (0, 6)
    assert found["screen_off"].value is found["screen_order"].value is found["screen_order"].chance is None
    assert found["screen_off"].interval is found["screen_order"].interval is None
    assert found["gold_by_answer"].note == ""


def test_the_influence_csv_by_log_probability_says_which_are_estimated():
    run = filled("screen+3", Screener(GAINS, OFF))
    text = influence_csv(Diagnosis(run, {"influence": "logprob"})).decode("utf-8-sig")
    told = pd.read_csv(io.StringIO(text))["approximate_drop"].to_list()
    assert told == column(run, "approximate_drop") and True in told
