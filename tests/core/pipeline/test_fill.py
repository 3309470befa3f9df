import random
import threading
import time
import unicodedata
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BackendError, TransientError
from core.influence import analyse
from core.influence.step import InfluenceStep
from core.llm import CompletionCache
from core.llm.cache import CacheError
from core.llm.types import Completion
from core.pipeline import RetryPolicy, RunOptions
from core.run import Run
from tests.live_runs import answered, live_run
from tests.scripted import ScriptedLLM

QUICK = RetryPolicy(attempts=4, first_wait=0.01, longest_wait=0.02, budget=5.0)


def run(data, llm, cache=None, **more):
    return live_run(data, llm, cache, **{"retry": QUICK, **more})


def same_tables(a, b):
    for name in a:
        x, y = a[name], b[name]
        if name == "queries":
            x, y = x.drop(columns="latency"), y.drop(columns="latency")
        pd.testing.assert_frame_equal(x, y)
    return a.run_id == b.run_id


def user_text(request):
    return request.messages[0].content


def test_one_question_from_prompt_to_influence(make_dataset, make_llm):
    result = run(
        make_dataset(1, k=4, kind="single", language="en"), make_llm(), step=InfluenceStep(repeats=1)
    )
    q = result.queries.iloc[0]
    # The rule answers with the first passage that is there: only leaving out the first changes it.
    assert (q.answer, q.answer_status, q.closed_book_answer) == ("fact 0 1", "answered", "closed")
    assert (q.kind, q.language, list(q.reference_answers)) == ("single", "en", ["fact 0 1"])
    assert q.prompt_tokens > 20
    assert q.completion_tokens == 3
    assert result.passages["ablated_answer"].to_list() == ["fact 0 2"] + ["fact 0 1"] * 3
    assert result.passages["retrieval_rank"].to_list() == [1, 2, 3, 4]
    assert result.passages["slot"].to_list() == [1, 2, 3, 4]
    assert result.repeats[["repeat", "answer"]].to_numpy().tolist() == [[1, "fact 0 1"]]
    influence = analyse(result).passages["influence"]
    assert influence.to_list() == pytest.approx([1 / 3, 0, 0, 0])
    assert result.manifest["complete"]


def test_the_manifest_says_what_was_run(make_dataset, make_llm, tmp_path):
    llm = make_llm(options={"dtype": "float32"})
    result = run(make_dataset(2), llm, options=RunOptions(k=3), step=InfluenceStep(max_tokens=9), name="mine")
    m = result.manifest
    assert (m["source"], m["name"], m["model"]["name"]) == ("live", "mine", "scripted")
    assert m["model"]["options"] == {"dtype": "float32"}
    assert (m["prompt"]["max_tokens"], m["options"]["k"], m["dataset"]["n_questions"]) == (9, 3, 2)
    assert "I don't know" in m["prompt"]["instruction"]
    assert (m["cost"]["calls"], m["cost"]["cached"]) == (10, 0)
    assert m["environment"]["packages"]["numpy"]
    assert m["notes"] == []
    assert same_tables(Run.load(result.save(tmp_path / "r")), result)


def test_one_batch_per_question_and_identical_calls_asked_once(make_dataset, make_llm):
    one = make_dataset(1, k=3)
    twin = replace(one, questions=(one.questions[0], replace(one.questions[0], query_id="again")))
    llm = make_llm()
    seen = []
    result = run(twin, llm, progress=lambda done, total, what: seen.append((done, total)))
    assert llm.batches == [5]
    assert result.queries["answer"].to_list() == ["fact 0 1"] * 2
    # What the cache answered for the second question takes no time: it counts in neither number.
    assert seen[-1] == (5, 5)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_every_answered_call_is_told_at_once_with_its_question(make_dataset, make_llm, tmp_path):
    told, order = [], []
    llm = make_llm(lambda request: order.append(len(told)) or f"answer {len(order)}")
    with CompletionCache(tmp_path / "cache.db") as cache:
        run(make_dataset(1, k=2), llm, cache=cache, on_call=told.append)
        assert order == [0, 1, 2, 3]
        assert [(one.kind, one.number, one.completion.text) for one in told] == [
            ("baseline", 1, "answer 1"),
            ("ablation", 1, "answer 2"),
            ("ablation", 2, "answer 3"),
            ("closed book", 1, "answer 4"),
        ]
        again, seen = [], []
        run(make_dataset(1, k=2), llm, cache=cache, on_call=again.append, progress=lambda *s: seen.append(s))
    assert llm.calls == 4
    assert {(one.kind, one.number): one.completion for one in again} == {
        (one.kind, one.number): one.completion for one in told
    }
    assert seen[-1] == (0, 0, "question 1 of 1, 4 from the cache")


@pytest.mark.parametrize(("style", "stop"), [("short", ("\n",)), ("full", ())])
def test_every_request_ends_where_its_style_ends(make_dataset, make_llm, style, stop):
    llm = make_llm()
    run(make_dataset(1), llm, step=InfluenceStep(style=style))
    assert {request.stop for request in llm.requests} == {stop}


def test_two_threads_ask_an_identical_call_once(make_dataset, make_llm):
    one = make_dataset(1, k=3)
    data = replace(one, questions=tuple(replace(one.questions[0], query_id=f"q{i}") for i in range(6)))
    llm = make_llm(delay=0.01, parallel=6)
    result = run(data, llm)
    assert llm.calls == 5
    assert result.queries["answer"].to_list() == ["fact 0 1"] * 6


def test_repeats_are_really_asked_again(make_dataset, make_llm):
    llm = make_llm(lambda request: f"answer {request.seed}")
    result = run(make_dataset(1), llm, step=InfluenceStep(repeats=3, seed=10))
    assert result.repeats["answer"].to_list() == ["answer 11", "answer 12", "answer 13"]


def test_a_second_run_asks_nothing(make_dataset, make_llm, tmp_path):
    llm, cache = make_llm(), CompletionCache(tmp_path / "c.db")
    first = run(make_dataset(3), llm, cache)
    calls = llm.calls
    second = run(make_dataset(3), llm, cache)
    assert llm.calls == calls
    assert same_tables(first, second)
    assert first.queries["latency"].equals(second.queries["latency"])
    assert (second.manifest["cost"]["calls"], second.manifest["cost"]["cached"]) == (0, calls)


@pytest.mark.parametrize("after", [1, 6, 7, 12, 17])
def test_a_cancel_keeps_what_is_done_and_the_rest_follows(make_dataset, make_llm, after):
    whole = run(make_dataset(3), make_llm())
    llm, cache = make_llm(), CompletionCache()
    partial = run(make_dataset(3), llm, cache, cancelled=lambda: llm.calls >= after)
    assert not partial.manifest["complete"]
    assert llm.calls == after == len(cache)
    assert answered(partial) == after // 6
    assert len(partial.queries) == 3
    assert "error" not in set(partial.queries["answer_status"])
    assert partial.run_id == whole.run_id
    rest = run(make_dataset(3), llm, cache)
    assert llm.calls == 18
    assert rest.manifest["complete"]
    assert same_tables(rest, whole)


def test_cancelled_before_the_first_call(make_dataset, make_llm):
    llm = make_llm()
    partial = run(make_dataset(2), llm, cancelled=lambda: True)
    assert (llm.calls, answered(partial), partial.manifest["complete"]) == (0, 0, False)


def test_a_cancel_does_not_wait_for_a_long_pause(make_dataset, make_llm):
    llm = make_llm(transient_failures=99, retry_after=60.0)
    policy = RetryPolicy(attempts=5, first_wait=60, longest_wait=60, budget=600)
    start = time.monotonic()
    data = make_dataset(1)
    partial = run(data, llm, retry=policy, cancelled=lambda: time.monotonic() - start > 0.3)
    assert not partial.manifest["complete"]
    assert time.monotonic() - start < 5


def test_the_partial_run_is_offered_after_questions(make_dataset, make_llm):
    offered = []
    run(make_dataset(3), make_llm(delay=0.05), on_part=offered.append)
    assert answered(offered[0]) == 1
    assert not any(r.manifest["complete"] for r in offered)
    assert [answered(r) for r in offered] == sorted({answered(r) for r in offered})


def test_transient_failures_are_tried_again(make_dataset, make_llm):
    llm = make_llm(transient_failures=3)
    result = run(make_dataset(2), llm)
    assert result.queries["answer_status"].to_list() == ["answered"] * 2
    assert llm.calls == 12 + 3


def test_finished_calls_of_a_failed_batch_are_not_repeated(make_dataset, make_llm):
    asked = []

    def rule(request):
        asked.append(request)
        if len(asked) == 4:
            raise TransientError("busy")
        return "x"

    result = run(make_dataset(1), make_llm(rule))
    assert len(asked) == 7
    assert len(set(asked)) == 6
    assert result.manifest["complete"]


def test_a_pause_the_server_asks_for_is_kept(make_dataset, make_llm):
    start = time.monotonic()
    run(make_dataset(1), make_llm(transient_failures=1, retry_after=0.4))
    assert time.monotonic() - start >= 0.4


def test_a_failure_that_stays_is_told_per_question(make_dataset, make_llm):
    def rule(request):
        if "number 1" in user_text(request):
            raise TransientError("The server is busy.")
        return "x"

    llm = make_llm(rule)
    result = run(make_dataset(3), llm)
    assert result.queries["answer_status"].to_list() == ["answered", "error", "answered"]
    assert result.queries["status_reason"].to_list()[1] == "The server is busy."
    assert pd.isna(result.queries["answer"][1])
    assert result.manifest["complete"]
    assert result.manifest["notes"] == ["Without an answer: 1 of 3 questions; the table has the reasons."]
    assert sum("number 1" in user_text(r) for r in llm.requests) == QUICK.attempts
    assert analyse(result).queries["reason"].to_list()[1] == "error"


@pytest.mark.parametrize(
    "failure", [ValueError("odd"), BackendError("gone"), ZeroDivisionError("x"), MemoryError()]
)
def test_no_failure_of_one_question_sinks_the_run(make_dataset, make_llm, failure):
    def rule(request):
        if "number 2" in user_text(request):
            raise failure
        return "x"

    result = run(make_dataset(4), make_llm(rule))
    assert result.queries["answer_status"].to_list() == ["answered", "answered", "error", "answered"]
    assert result.queries["status_reason"].to_list()[2]


def test_a_model_that_never_answered_is_unreachable(make_dataset, make_llm):
    with pytest.raises(BackendError, match="is down"):
        run(make_dataset(3), make_llm(down=True))
    with pytest.raises(TransientError, match="is busy"):
        run(make_dataset(3), make_llm(transient_failures=99))
    with pytest.raises(BackendError, match="is down"):
        run(make_dataset(30), make_llm(down=True, parallel=4))


def test_an_error_of_one_call_stays_with_that_call(make_dataset, make_llm):
    def rule(request):
        text = user_text(request)
        if "number 0" in text and "[2]" not in text and "[1]" in text:
            return Completion("", "error", 9, 0, 0.0, error="too long")
        if "number 1" in text and "[1]" in text and "[4]" in text and "[3]" in text and "[2]" in text:
            return Completion("", "error", 9, 0, 0.0, error="too long")
        return "x"

    cache = CompletionCache()
    result = run(make_dataset(2), make_llm(rule), cache)
    assert result.queries["answer_status"].to_list() == ["answered", "error"]
    assert result.queries["status_reason"].to_list()[1] == "too long"
    first = result.passages[result.passages["query_id"] == "q0"]
    assert first["ablated_status"].to_list() == ["answered", "error", "answered", "answered"]
    assert pd.isna(first["ablated_answer"].to_list()[1])
    assert analyse(result).queries["reason"].to_list() == ["incomplete", "error"]
    assert "Missing: 1 ablated answer; its question is undefined (incomplete)." in result.manifest["notes"]
    assert len(cache) == 10  # errors are asked again next time


def test_a_question_without_anything_to_answer_from(make_dataset, make_llm):
    data = make_dataset(2)
    data = replace(data, questions=(replace(data.questions[0], passages=None), data.questions[1]))
    result = run(data, make_llm())
    assert result.queries["answer_status"].to_list() == ["error", "answered"]
    assert "no documents and no passages" in result.queries["status_reason"].to_list()[0]


def test_empty_answers_and_abstentions_have_their_own_status(make_dataset, make_llm):
    def rule(request):
        text = user_text(request)
        if "number 0" in text:
            return Completion("", "length", 5, 24, 0.1)
        return "I don't know." if "number 1" in text else Completion("", "stop", 5, 0, 0.1)

    result = run(make_dataset(3), make_llm(rule))
    assert result.queries["answer_status"].to_list() == ["empty", "abstained", "empty"]
    reasons = result.queries["status_reason"].to_list()
    assert reasons[0] == "The token limit was used up without an answer."
    assert pd.isna(reasons[1])
    assert reasons[2] == "The model returned no text."


def test_answers_are_composed_unicode(make_dataset, make_llm):
    result = run(make_dataset(1), make_llm(lambda _: unicodedata.normalize("NFD", "Vịnh Hạ Long")))
    assert result.queries["answer"][0] == "Vịnh Hạ Long"
    assert set(result.passages["ablated_answer"]) == {"Vịnh Hạ Long"}


def test_a_cache_that_breaks_stops_the_run(make_dataset, make_llm):
    cache, done = CompletionCache(), []

    def rule(_request):
        done.append(1)
        if len(done) == 7:
            cache._db.execute("DROP TABLE completions")
        return "x"

    # The seventh completion cannot be kept: to go on would pay for what is lost again.
    with pytest.raises(CacheError, match="cannot be used"):
        run(make_dataset(3), make_llm(rule), cache)
    assert len(done) == 7


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_any_order_of_completion_gives_the_same_tables(seed, parallel):
    from core.sources.dataset import read_dataset

    rows = "\n".join(
        f'{{"id": "q{i}", "question": "number {i}", "passages": ["a {i}", "b {i % 3}", "c"]}}'
        for i in range(8)
    )
    data = read_dataset(rows.encode(), "t.jsonl")
    shuffler = random.Random(seed)
    lock = threading.Lock()

    def rule(request):
        with lock:
            pause = shuffler.random() * 0.003
        time.sleep(pause)
        return user_text(request)[-40:].replace("\n", " ")

    plain = ScriptedLLM(lambda r: user_text(r)[-40:].replace("\n", " "))
    expected = run(data, plain, step=InfluenceStep(repeats=1))
    result = run(data, ScriptedLLM(rule, parallel=parallel), step=InfluenceStep(repeats=1))
    assert same_tables(result, expected)


def test_plain_pages_may_poll_from_another_thread(make_dataset, make_llm):
    states, result = [], []
    llm = make_llm(delay=0.01, parallel=2)
    worker = threading.Thread(
        target=lambda: result.append(run(make_dataset(3), llm, progress=lambda *state: states.append(state)))
    )
    worker.start()
    worker.join(timeout=30)
    assert result[0].manifest["complete"]
    assert states[-1][:2] == (18, 18)
    assert states[-1][2].startswith("question 3 of 3") or states[-1][2].startswith("question 2 of 3")
