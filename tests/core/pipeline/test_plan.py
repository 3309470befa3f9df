from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd
import pytest

from core.errors import BackendError, InputError
from core.influence.step import InfluenceStep
from core.llm import CompletionCache, Message, Request
from core.llm.types import Completion
from core.pipeline import Call, PerQuestion, RunOptions, Speed, StepPlan, begin, measure_speed, plan_steps
from core.pipeline.steps import PlanChoice
from core.run import Run
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


@dataclass(frozen=True)
class Planned(Judge):
    """A step whose plan of a question is given by a function of the question's number."""

    name: ClassVar[str] = "planned"
    seen: ClassVar[list] = []

    def open(self, run, asker):
        work = PerQuestion.open(self, run, asker)
        work.plan = lambda ids: self.seen.append(ids) or type(self).of(int(ids[0][1:]))
        return work


def planned(n, of, llm, cache=None):
    Planned.seen, Planned.of = [], staticmethod(of)
    queries = pd.DataFrame({"query_id": [f"q{i}" for i in range(n)], "question": "What?"})
    run = Run.create({"source": "upload"}, queries=queries)
    return plan_steps(run, [Planned()], {"planned": llm}, cache)


def call(kind, text, number=1, max_tokens=24):
    return Call(kind, number, Request((Message("user", text),), max_tokens=max_tokens))


@pytest.mark.parametrize(
    ("n", "estimated", "n_planned", "n_counted"),
    [(20, False, 20, 20), (21, True, 21, 20), (500, True, 500, 20), (501, True, 500, 20)],
)
def test_calls_are_exact_up_to_500_questions_and_tokens_up_to_20(
    make_llm, monkeypatch, n, estimated, n_planned, n_counted
):
    llm, read = make_llm(), []
    count = llm.count_tokens
    monkeypatch.setattr(llm, "count_tokens", lambda messages: read.append(1) or count(messages))
    plan = planned(n, lambda i: StepPlan((call("one", f"question {i}"),)), llm)
    assert (plan.estimated, len(Planned.seen), len(read)) == (estimated, n_planned, n_counted)
    assert Planned.seen[0] == ["q0"] and Planned.seen[-1] == [f"q{n - 1}"]
    assert (plan.n_calls, plan.n_to_ask, plan.prompt_tokens) == (n, n, 2 * n)


def test_a_kind_that_no_counted_question_has_gets_the_mean_of_the_others(make_llm):
    # Of 21 questions the eleventh is not among the twenty whose tokens are counted.
    def of(i):
        return StepPlan((call("rare", f"{i} a b c d e f"),) if i == 10 else (call("usual", f"{i} a"),))

    assert planned(21, of, make_llm()).prompt_tokens == 20 * 2 + 2
    assert planned(20, of, make_llm()).prompt_tokens == 19 * 2 + 7


def test_tokens_are_the_mean_of_a_kind_times_the_calls_left(make_llm):
    def of(i):
        return StepPlan((call("usual", "a" + " b" * i), call("closed", "the same for all")))

    llm, cache = make_llm(), CompletionCache()
    plan = planned(4, of, llm, cache)
    assert dict(plan.calls) == {"usual": 4, "closed": 4}
    assert (plan.n_duplicates, plan.n_to_ask) == (3, 5)
    assert plan.prompt_tokens == 1 + 2 + 3 + 4 + 4
    measure_speed(llm, plan.steps[0], cache)
    plan = planned(4, of, llm, cache)
    # The first two calls are known now; the others are the mean of all four.
    assert (plan.n_cached, plan.n_to_ask, plan.prompt_tokens) == (2, 3, 8)  # 7.5, rounded
    assert plan.completion_tokens == 3 * 24


def test_the_table_says_how_many_tokens_a_call_may_take_where_all_take_as_many(make_llm):
    def note(*limits):
        calls = tuple(call("one", str(i), max_tokens=limit) for i, limit in enumerate(limits))
        frame = planned(1, lambda i: StepPlan(calls, kinds={"one": "a call"}), make_llm()).to_frame()
        assert frame["item"].to_list() == [
            "one", "identical, asked once", "answered before", "to be asked", "prompt tokens", "max answer tokens",
        ]  # fmt: skip
        n = len(limits)
        assert frame["count"].to_list() == [n, 0, 0, n, n, sum(limits)]
        assert frame["note"].to_list()[:5] == ["a call", "", "found in the cache", "", ""]
        return frame["note"].to_list()[5]

    assert note(24, 24) == "24 a call"
    assert note(24, 7) == ""


def test_the_table_of_a_step_that_only_estimates_has_no_calls(make_llm):
    def choices(i):
        return (
            PlanChoice("exact", 8, 3000, "as measured", True),
            PlanChoice("screened", 2, 500, "nearly the same", False),
        )

    def of(i):
        return StepPlan((), 10, 50, notes=("passes", "a guess"), choices=choices(i))

    plan = planned(2, of, make_llm(parallel=2))
    frame = plan.to_frame()
    assert frame.to_numpy().tolist() == [
        ["calls for planned, about", 20, "passes; a guess"],
        ["planned, exact", 16, "chosen; about 6,000 prompt tokens; as measured"],
        ["planned, screened", 4, "about 1,000 prompt tokens; nearly the same"],
        ["prompt tokens", 100, "estimated from a sample of questions"],
        ["max answer tokens", 0, ""],
    ]
    timed = plan.timed(Speed("planned", "other", 0.02, 1), Speed("other", "scripted", 9.0, 1))
    assert timed.seconds == 100 * 0.02 / 2
    assert timed.to_dict()["planned_choices"] == [
        {"name": "exact", "calls": 16, "tokens": 6000, "expected": "as measured", "chosen": True, "seconds": 60.0},
        {"name": "screened", "calls": 4, "tokens": 1000, "expected": "nearly the same", "chosen": False, "seconds": 10.0},
    ]  # fmt: skip
    assert timed.to_frame()["note"][1] == "chosen; about 6,000 prompt tokens; about 1 min 00 s; as measured"
    # A model that was timed in another step only is as fast here.
    assert plan.timed(Speed("other", "scripted", 0.5, 1)).seconds == 100 * 0.5 / 2
    assert plan.steps[0].n_to_ask == 0


def test_where_no_model_is_asked_the_table_says_so(make_llm):
    plan = planned(1, lambda i: StepPlan(about=0), make_llm())
    assert plan.to_frame().to_numpy().tolist() == [
        ["calls for planned, about", 0, "no language model is asked"],
        ["prompt tokens", 0, ""],
        ["max answer tokens", 0, ""],
    ]
    assert not plan.estimated


def test_a_step_without_a_model_is_neither_named_one_nor_timed(make_llm):
    class Own(Judge):
        needs_llm = False

    queries = pd.DataFrame({"query_id": ["q0"], "question": "What?"})
    run = Run.create({"source": "upload"}, queries=queries)
    plan = plan_steps(run, [Own()], {"judge": make_llm(parallel=4)})
    (step,) = plan.steps
    assert (step.model, step.parallel, step.first, step.kinds, step.prompt_tokens) == (None, 1, (), {}, 7)
    assert plan.timed(Speed("other", "scripted", 0.5, 1)).seconds == 0
    assert plan.timed(Speed("judge", "scripted", 0.5, 1)).seconds == 3.5
    # A model that says it is worth no call at once is worth one.
    assert plan_steps(run, [Judge()], {"judge": make_llm(parallel=0)}).steps[0].parallel == 1
    # After rounding, what is saved may be more than what there is.
    assert replace(step, calls={"one": 3, "two": 2}, n_duplicates=1, n_cached=2).n_to_ask == 2
    assert replace(step, calls={"one": 1}, n_duplicates=1, n_cached=1).n_to_ask == 0


def test_the_plan_as_json_has_every_figure(make_dataset, make_llm):
    data, step = make_dataset(2, k=3), InfluenceStep(max_tokens=9)
    plan = live_plan(data, make_llm(options={"dtype": "x"}), step=step)
    run = plan.run
    assert plan.to_dict() == {
        "run_id": run.run_id, "dataset": data.name,
        "n_questions": 2, "n_without_passages": 0, "backend": "", "model": "scripted",
        "model_options": {"dtype": "x"}, "options": run.manifest["options"],
        "calls": {"baseline": 2, "ablation": 6, "closed book": 2}, "n_calls": 10, "n_duplicates": 0,
        "n_cached": 0, "n_to_ask": 10, "prompt_tokens": plan.prompt_tokens, "max_completion_tokens": 90,
        "estimated": False, "seconds": None, "prompt": run.manifest["prompt"],
    }  # fmt: skip
    assert run.manifest["prompt"]["max_tokens"] == 9
    # An uploaded run names neither data set nor model.
    facts = planned(1, lambda i: StepPlan((call("one", "a"),)), make_llm()).to_dict()
    assert facts["dataset"].startswith("upload ")
    assert [facts[name] for name in ("backend", "model", "model_options", "options", "prompt")] == [None] * 5


@pytest.mark.parametrize(("tokens", "each"), [(0, 6.0), (1, 6.0), (2, 3.0), (3, 2.0)])
def test_seconds_are_shared_by_the_tokens_that_were_read(make_llm, tokens, each):
    llm = make_llm(lambda _: Completion("x", "stop", tokens, 1, 6.0))
    plan = planned(1, lambda i: StepPlan((call("one", "a"), call("one", "b", 2))), llm)
    speed = measure_speed(llm, plan.steps[0])
    assert speed == Speed("planned", "scripted", each, 1)


def test_a_step_of_one_call_is_timed_on_it_and_a_failure_is_told(make_llm):
    llm = make_llm(lambda _: Completion("x", "stop", 4, 1, 6.0))
    plan = planned(1, lambda i: StepPlan(timed=(call("read", "a"),)), llm)
    assert measure_speed(llm, plan.steps[0]) == Speed("planned", "scripted", 1.5, 1)
    broken = make_llm(lambda _: Completion.failed("too long"))
    with pytest.raises(BackendError, match="could not answer a first question: too long"):
        measure_speed(broken, plan.steps[0], CompletionCache())
