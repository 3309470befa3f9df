from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from core.errors import BackendError, InputError
from core.influence.step import InfluenceStep
from core.llm import CompletionCache
from core.pipeline import PerQuestion, RunOptions, Speed, StepPlan, begin, measure_speed, plan_steps
from tests.live_runs import live_plan, live_run


def test_calls_are_counted_by_kind(make_dataset, make_llm):
    llm = make_llm()
    plan = live_plan(make_dataset(3, k=4), llm, step=InfluenceStep(repeats=2))
    assert dict(plan.calls) == {"baseline": 3, "ablation": 12, "repeat": 6, "closed book": 3}
    assert (plan.n_calls, plan.n_duplicates, plan.n_cached, plan.n_to_ask) == (24, 0, 0, 24)
    assert plan.completion_tokens == 24 * InfluenceStep().max_tokens
    assert plan.seconds is None
    assert not plan.estimated
    assert llm.calls == 0


def test_tokens_are_those_of_the_real_prompts(make_dataset, make_llm):
    llm, data = make_llm(), make_dataset(2, k=3)
    plan = live_plan(data, llm)
    live_run(data, llm)
    assert plan.prompt_tokens == sum(llm.count_tokens(r.messages) for r in llm.requests)


def test_identical_calls_and_cached_ones_are_not_counted_twice(make_dataset, make_llm):
    llm, cache = make_llm(), CompletionCache()
    one = make_dataset(1)
    twin = replace(one, questions=(one.questions[0], replace(one.questions[0], query_id="again")))
    plan = live_plan(twin, llm, cache)
    assert (plan.n_calls, plan.n_duplicates, plan.n_to_ask) == (12, 6, 6)
    live_run(one, llm, cache)
    plan = live_plan(twin, llm, cache)
    assert (plan.n_cached, plan.n_to_ask, plan.prompt_tokens) == (6, 0, 0)


def test_a_large_data_set_is_estimated_from_a_sample(make_dataset, make_llm):
    one = live_plan(make_dataset(1, k=2), make_llm())
    plan = live_plan(make_dataset(1200, k=2), make_llm())
    assert plan.estimated
    assert plan.n_calls == 1200 * 4
    assert plan.prompt_tokens == 1200 * one.prompt_tokens  # every question has as many words
    assert "estimated" in plan.to_frame().set_index("item").loc["prompt tokens", "note"]


def test_the_frame_adds_up(make_dataset, make_llm):
    frame = (
        live_plan(make_dataset(2), make_llm(), step=InfluenceStep(repeats=1))
        .to_frame()
        .set_index("item")["count"]
    )
    parts = ["baseline", "ablation", "repeat", "closed book", "identical, asked once", "answered before"]
    assert frame[parts].sum() == frame["to be asked"] == 14


def test_the_run_id_depends_on_everything_that_matters(make_dataset, make_llm):
    data, llm = make_dataset(2), make_llm()
    base = live_plan(data, llm).run.run_id
    assert live_plan(make_dataset(2), make_llm()).run.run_id == base
    others = [
        live_plan(data.head(1), llm).run.run_id,
        live_plan(data, llm, step=InfluenceStep(seed=1)).run.run_id,
        live_plan(data, llm, step=InfluenceStep(max_tokens=5)).run.run_id,
        live_plan(data, make_llm(name="other")).run.run_id,
        live_plan(data, make_llm(options={"dtype": "float32"})).run.run_id,
    ]
    assert len({base, *others}) == 6


def test_questions_that_cannot_be_asked_are_counted(make_dataset, make_llm):
    data = make_dataset(3)
    bare = replace(data.questions[1], passages=None)
    plan = live_plan(replace(data, questions=(data.questions[0], bare, data.questions[2])), make_llm())
    assert (plan.n_without_passages, plan.calls["baseline"]) == (1, 2)


def test_an_empty_data_set_and_double_ids_are_refused(make_dataset, make_llm):
    data = make_dataset(1)
    with pytest.raises(InputError, match="holds no question"):
        live_plan(replace(data, questions=()), make_llm())
    with pytest.raises(InputError, match="'q0' twice"):
        live_plan(replace(data, questions=data.questions * 2), make_llm())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k must be a whole number from 1 to 100, got 0"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"repeats": -1}, "repeats must be"),
        ({"max_tokens": True}, "max_tokens must be"),
        ({"tokenizer": "bytes"}, "tokenizer must be one of words, split, got 'bytes'"),
        ({"retriever": "tfidf"}, "retriever must be one of bm25, bm25s, dense, hybrid, got 'tfidf'"),
        ({"style": "long"}, "prompt style must be one of"),
    ],
)
def test_options_out_of_range_are_named(change, message):
    with pytest.raises(InputError, match=message):
        (InfluenceStep if change.keys() <= {"repeats", "max_tokens", "style"} else RunOptions)(**change)


@pytest.mark.parametrize(
    ("questions", "parallel", "calls"),
    # A tenth of the plan is less than a question, or more, or the calls of a question share nothing.
    [(2, 1, 2), (20, 1, 6), (20, 4, 2)],
)
def test_measuring_makes_calls_that_the_run_does_not_repeat(
    make_dataset, make_llm, questions, parallel, calls
):
    llm, cache, data = make_llm(delay=0.02, parallel=parallel), CompletionCache(), make_dataset(questions)
    plan = live_plan(data, llm, cache)
    speed = measure_speed(llm, plan.steps[0], cache)
    assert (llm.calls, speed.n_calls) == (calls, calls - 1)
    per_call = speed.seconds_per_token * plan.prompt_tokens / plan.n_calls
    assert 0.015 < per_call < 0.2
    live_run(data, llm, cache)
    assert llm.calls == plan.n_calls
    again = measure_speed(llm, plan.steps[0], cache)
    assert (llm.calls, again.seconds_per_token) == (plan.n_calls, speed.seconds_per_token)


def test_calls_answered_together_are_timed_together(make_dataset, make_llm):
    llm = make_llm()
    answer_each = llm.generate

    def together(requests, on_done=None, cancelled=None):
        """Finish all calls at once, as the embedded model does, each with its share of the time."""
        found = [replace(one, prompt_tokens=100, latency=3 / len(requests)) for one in answer_each(requests)]
        for place, one in enumerate(found if on_done else ()):
            on_done(place, one)
        return found

    llm.generate = together
    assert measure_speed(llm, live_plan(make_dataset(20), llm).steps[0]).seconds_per_token == pytest.approx(
        3 / 500
    )


def test_the_estimate_is_tokens_times_rate_shared_by_parallel_calls(make_dataset, make_llm):
    plan = live_plan(make_dataset(2), make_llm(parallel=4))
    assert plan.timed(Speed("influence", "scripted", 0.5, 1)).seconds == plan.prompt_tokens * 0.5 / 4
    assert plan.timed(Speed("other", "another", 0.5, 1)).seconds == 0


def test_measuring_nothing_is_an_error(make_dataset, make_llm):
    data = make_dataset(1)
    bare = replace(data, questions=(replace(data.questions[0], passages=None),))
    llm = make_llm()
    with pytest.raises(BackendError, match="nothing can be timed"):
        measure_speed(llm, live_plan(bare, llm).steps[0])
    with pytest.raises(BackendError, match="is down"):
        measure_speed(make_llm(down=True), live_plan(data, llm).steps[0])


def test_cached_calls_of_a_large_data_set_are_scaled_up_as_well(make_dataset, make_llm):
    llm, cache, data = make_llm(), CompletionCache(), make_dataset(1000, k=1)
    plan = live_plan(data, llm, cache)
    assert (plan.n_calls, plan.n_cached, plan.n_to_ask) == (3000, 0, 3000)
    # Every other question was answered before: so is every other question of the sample, give or take.
    live_run(replace(data, questions=data.questions[::2]), llm, cache)
    plan = live_plan(data, llm, cache)
    assert plan.n_cached == pytest.approx(1500, abs=30)
    assert plan.n_cached + plan.n_to_ask == plan.n_calls == 3000
    assert plan.prompt_tokens == pytest.approx(live_plan(data, llm).prompt_tokens / 2, rel=0.02)
    live_run(data, llm, cache)
    plan = live_plan(data, llm, cache)
    assert (plan.n_cached, plan.n_to_ask, plan.prompt_tokens) == (3000, 0, 0)


@dataclass(frozen=True)
class Judge(PerQuestion):
    """A step that cannot say beforehand what it will ask."""

    name: ClassVar[str] = "judge"
    title: ClassVar[str] = "Judge"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"signals": ("llm_score",)}

    def calls(self, question):
        return []

    def rows(self, question, answers):
        return {}

    def open(self, run, asker):
        work = super().open(run, asker)
        work.plan = lambda ids: StepPlan(about=2 * len(ids), about_tokens=7 * len(ids), notes=("a guess",))
        return work


def test_steps_that_ask_as_they_go_along_are_estimated(make_dataset, make_llm):
    answering, judging = make_llm(parallel=2), make_llm(name="judge", parallel=1)
    step = InfluenceStep(closed_book=False)
    run = begin(make_dataset(600, k=1), RunOptions(), answering, step)
    plan = plan_steps(run, [step, Judge()], {"influence": answering, "judge": judging})
    assert dict(plan.calls) == {"baseline": 600, "ablation": 600}
    assert (plan.steps[1].about, plan.steps[1].prompt_tokens) == (1200, 4200)
    facts = plan.to_dict()
    assert (facts["judge_calls_about"], facts["n_to_ask"], facts["model"]) == (1200, 1200, "scripted")
    assert facts["prompt_tokens"] == plan.steps[0].prompt_tokens + 4200
    frame = plan.to_frame().set_index("item")
    assert frame.loc["calls for judge, about"].to_list() == [1200, "a guess"]
    both = plan.timed(Speed("influence", "scripted", 1.0, 1), Speed("judge", "judge", 0.5, 1)).seconds
    assert both == plan.steps[0].prompt_tokens / 2 + 4200 * 0.5
    assert plan.timed(Speed("judge", "judge", 0.5, 1)).seconds == 2100


def test_what_one_step_asks_is_no_second_call_of_another(make_dataset, make_llm):
    llm, step = make_llm(), InfluenceStep(closed_book=False)

    @dataclass(frozen=True)
    class Again(InfluenceStep):
        name: ClassVar[str] = "again"

    run = begin(make_dataset(2, k=2), RunOptions(), llm, step)
    steps = [step, Again(closed_book=False, repeats=1)]
    plan = plan_steps(run, steps, {"influence": llm, "again": llm})
    assert [one.n_to_ask for one in plan.steps] == [6, 2]
    assert plan.n_duplicates == 6


def test_only_what_is_missing_is_planned(make_dataset, make_llm):
    llm, step = make_llm(), InfluenceStep()
    partial = live_run(make_dataset(3, k=2), llm, cancelled=lambda: llm.calls >= 4)
    assert plan_steps(partial, [step], {"influence": llm}).n_calls == 8
    whole = live_run(make_dataset(3, k=2), llm)
    assert plan_steps(whole, [step], {"influence": llm}).n_calls == 0
    assert plan_steps(whole, [replace(step, seed=1)], {"influence": llm}).n_calls == 12
