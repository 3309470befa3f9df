from dataclasses import replace

import pytest

from core.errors import BackendError, InputError
from core.llm import CompletionCache
from core.pipeline import Calibration, RunOptions, calibrate, execute, make_plan


def test_calls_are_counted_by_kind(make_dataset, make_llm):
    llm = make_llm()
    plan = make_plan(make_dataset(3, k=4), RunOptions(repeats=2), llm)
    assert dict(plan.calls) == {"baseline": 3, "ablation": 12, "repeat": 6, "closed book": 3}
    assert (plan.n_calls, plan.n_duplicates, plan.n_cached, plan.n_to_ask) == (24, 0, 0, 24)
    assert plan.completion_tokens == 24 * plan.options.max_tokens
    assert plan.seconds is None
    assert not plan.estimated
    assert llm.calls == 0


def test_tokens_are_those_of_the_real_prompts(make_dataset, make_llm):
    llm, data = make_llm(), make_dataset(2, k=3)
    plan = make_plan(data, RunOptions(), llm)
    execute(plan, llm)
    assert plan.prompt_tokens == sum(llm.count_tokens(r.messages) for r in llm.requests)


def test_identical_calls_and_cached_ones_are_not_counted_twice(make_dataset, make_llm):
    llm, cache = make_llm(), CompletionCache()
    one = make_dataset(1)
    twin = replace(one, questions=(one.questions[0], replace(one.questions[0], query_id="again")))
    plan = make_plan(twin, RunOptions(), llm, cache)
    assert (plan.n_calls, plan.n_duplicates, plan.n_to_ask) == (12, 6, 6)
    execute(make_plan(one, RunOptions(), llm, cache), llm, cache)
    plan = make_plan(twin, RunOptions(), llm, cache)
    assert (plan.n_cached, plan.n_to_ask, plan.prompt_tokens) == (6, 0, 0)


def test_a_large_data_set_is_estimated_from_a_sample(make_dataset, make_llm):
    one = make_plan(make_dataset(1, k=2), RunOptions(), make_llm())
    plan = make_plan(make_dataset(1200, k=2), RunOptions(), make_llm())
    assert plan.estimated
    assert plan.n_calls == 1200 * 4
    assert plan.prompt_tokens == 1200 * one.prompt_tokens  # every question has as many words
    assert "estimated" in plan.to_frame().set_index("item").loc["prompt tokens", "note"]


def test_the_frame_adds_up(make_dataset, make_llm):
    frame = (
        make_plan(make_dataset(2), RunOptions(repeats=1), make_llm()).to_frame().set_index("item")["count"]
    )
    parts = ["baseline", "ablation", "repeat", "closed book", "identical, asked once", "answered before"]
    assert frame[parts].sum() == frame["to be asked"] == 14


def test_the_run_id_depends_on_everything_that_matters(make_dataset, make_llm):
    data, llm = make_dataset(2), make_llm()
    base = make_plan(data, RunOptions(), llm).run_id
    assert make_plan(make_dataset(2), RunOptions(), make_llm()).run_id == base
    others = [
        make_plan(data.head(1), RunOptions(), llm).run_id,
        make_plan(data, RunOptions(seed=1), llm).run_id,
        make_plan(data, RunOptions(max_tokens=5), llm).run_id,
        make_plan(data, RunOptions(), make_llm(name="other")).run_id,
        make_plan(data, RunOptions(), make_llm(options={"dtype": "float32"})).run_id,
    ]
    assert len({base, *others}) == 6


def test_questions_that_cannot_be_asked_are_counted(make_dataset, make_llm):
    data = make_dataset(3)
    bare = replace(data.questions[1], passages=None)
    plan = make_plan(
        replace(data, questions=(data.questions[0], bare, data.questions[2])), RunOptions(), make_llm()
    )
    assert (plan.n_without_passages, plan.calls["baseline"]) == (1, 2)


def test_an_empty_data_set_and_double_ids_are_refused(make_dataset, make_llm):
    data = make_dataset(1)
    with pytest.raises(InputError, match="holds no question"):
        make_plan(replace(data, questions=()), RunOptions(), make_llm())
    with pytest.raises(InputError, match="'q0' twice"):
        make_plan(replace(data, questions=data.questions * 2), RunOptions(), make_llm())


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
        RunOptions(**change)


def test_calibration_makes_two_calls_that_the_run_does_not_repeat(make_dataset, make_llm):
    llm, cache = make_llm(delay=0.02), CompletionCache()
    plan = make_plan(make_dataset(2), RunOptions(), llm, cache)
    calibration = calibrate(llm, plan, cache)
    assert (llm.calls, calibration.n_calls, calibration.from_cache) == (2, 1, False)
    per_call = calibration.seconds_per_token * plan.prompt_tokens / plan.n_calls
    assert 0.015 < per_call < 0.2
    execute(plan, llm, cache)
    assert llm.calls == plan.n_calls
    assert calibrate(llm, plan, cache).from_cache
    assert llm.calls == plan.n_calls


def test_the_estimate_is_tokens_times_rate_shared_by_parallel_calls(make_dataset, make_llm):
    plan = make_plan(make_dataset(2), RunOptions(), make_llm(parallel=4))
    assert plan.estimate(Calibration(0.5, 1)) == plan.prompt_tokens * 0.5 / 4
    assert plan.calibrated(Calibration(0.5, 1)).seconds == plan.prompt_tokens * 0.5 / 4


def test_calibrating_nothing_is_an_error(make_dataset, make_llm):
    data = make_dataset(1)
    bare = replace(data, questions=(replace(data.questions[0], passages=None),))
    llm = make_llm()
    with pytest.raises(BackendError, match="nothing can be timed"):
        calibrate(llm, make_plan(bare, RunOptions(), llm))
    with pytest.raises(BackendError, match="is down"):
        calibrate(make_llm(down=True), make_plan(data, RunOptions(), llm))
