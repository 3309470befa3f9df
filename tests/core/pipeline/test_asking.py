import threading

import pytest

from core.errors import BackendError, Cancelled, TransientError
from core.influence.step import InfluenceStep
from core.llm import CompletionCache
from core.llm.remote import Overloaded, Remote
from core.llm.types import Completion, Message, Request
from core.pipeline import RetryPolicy
from core.pipeline.asking import Asker
from tests.live_runs import live_run
from tests.scripted import ScriptedLLM

POLICY = RetryPolicy(attempts=3, first_wait=1.0, longest_wait=4.0, budget=60.0)


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("core.pipeline.asking.time", clock)
    monkeypatch.setattr("core.pipeline.asking.random.uniform", lambda low, high: 0.0)
    return clock


def requests(n, first=0):
    return [Request((Message("user", str(i)),)) for i in range(first, first + n)]


def number(request):
    return int(request.messages[0].content)


def asker(rule, cache=None, policy=POLICY, cancelled=lambda: False):
    llm = ScriptedLLM(rule)
    store = cache if cache is not None else CompletionCache()
    return Asker(llm, store, policy, cancelled, lambda n: None), llm


def failing(times, failure=None, then="x"):
    """A rule by which each request fails so often before it is answered."""
    failed = {}

    def rule(request):
        n = number(request)
        failed[n] = failed.get(n, 0) + 1
        if failed[n] <= times.get(n, 0):
            raise failure or TransientError("busy")
        return then

    return rule


def test_the_waits_double_up_to_the_longest():
    still = RetryPolicy(9, 0.0, 4.0)
    assert (still.pause(3, 7.0), still.pause(3, None)) == (7.0, 0.0)
    policy = RetryPolicy(9, 1.0, 4.0)
    for tries, least in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 4.0)):
        assert least <= policy.pause(tries, None) <= least + 1.0
    assert 30.0 <= policy.pause(1, 30.0) <= 31.0
    assert 1.0 <= policy.pause(0, None) <= 2.0  # after a try that brought some answers
    assert policy.pause(5000, None) <= 5.0  # the doubled wait would be no number any more
    # Threads that fail together do not come back together.
    waits = [policy.pause(1, None) for _ in range(60)]
    assert min(waits) < 1.4 and max(waits) > 1.6


def test_without_a_policy_six_tries_are_made_in_half_a_minute(clock):
    llm = ScriptedLLM(failing({0: 99}))
    with pytest.raises(TransientError):
        Asker(llm).ask(requests(1))
    assert (llm.calls, clock.now) == (6, 1000.0 + 1 + 2 + 4 + 8 + 16)
    assert RetryPolicy().pause(9, None) == 30.0


@pytest.mark.parametrize(("seconds", "calls"), [(900.0, 2), (900.5, 1)])
def test_a_server_may_ask_for_a_quarter_of_an_hour(clock, seconds, calls):
    llm = ScriptedLLM(failing({0: 99}, Overloaded("later", seconds)))
    with pytest.raises(Overloaded):
        Asker(llm).ask(requests(1))
    assert llm.calls == calls


def test_an_answer_starts_the_tries_anew(clock):
    # Each of six requests fails twice; three tries in a row in vain would be the end.
    asked, llm = asker(failing(dict.fromkeys(range(6), 2)))
    assert [c.text for c in asked.ask(requests(6))] == ["x"] * 6
    assert llm.calls == 18


def test_an_answer_starts_the_budget_anew(clock):
    policy = RetryPolicy(attempts=99, first_wait=5.0, longest_wait=5.0, budget=12.0)
    asked, _ = asker(failing(dict.fromkeys(range(4), 2)), policy=policy)
    assert [c.text for c in asked.ask(requests(4))] == ["x"] * 4
    assert clock.now >= 1000 + 8 * 5.0 - 0.01
    asked, llm = asker(failing({0: 99}), policy=policy)
    with pytest.raises(TransientError):
        asked.ask(requests(1))
    # After 0, 5 and 10 seconds; a third wait would go beyond the budget.
    assert llm.calls == 3


def test_one_call_that_keeps_failing_costs_only_itself(clock):
    cache = CompletionCache()
    asked, llm = asker(failing({2: 99}), cache)
    first, second, third = asked.ask(requests(3))
    assert (first.text, second.text) == ("x", "x")
    assert third == Completion("", "error", 0, 0, 0.0, error="busy")
    assert llm.calls == 2 + 4  # one try that brought answers, three in vain
    assert len(cache) == 2
    again, other = asker(failing({}), cache)
    assert [c.text for c in again.ask(requests(3))] == ["x"] * 3
    assert other.calls == 1


def test_what_other_calls_brought_survives_a_failure_that_stays(clock):
    asked, llm = asker(failing({1: 99}, BackendError("no credit")))
    answers = asked.ask(requests(3))
    assert [c.error for c in answers] == [None, "no credit", "no credit"]
    assert llm.calls == 2
    with pytest.raises(BackendError, match="no credit"):
        asked.ask(requests(1, first=1))


def test_answers_from_the_cache_are_not_lost_either(clock):
    cache = CompletionCache()
    asker(failing({}), cache)[0].ask(requests(2))
    answers = asker(failing({2: 99}), cache)[0].ask(requests(3))
    assert [c.error for c in answers] == [None, None, "busy"]


def test_a_server_that_is_gone_does_not_cost_all_tries_each_time(clock):
    gone = True

    def rule(_):
        if gone:
            raise TransientError("refused")
        return "x"

    asked, llm = asker(rule)
    for n, calls in ((0, 3), (10, 4), (20, 5)):
        with pytest.raises(TransientError, match="refused"):
            asked.ask(requests(1, first=n))
        assert llm.calls == calls
    gone = False
    assert asked.ask(requests(1, first=30))[0].text == "x"
    gone = True
    with pytest.raises(TransientError):
        asked.ask(requests(1, first=40))
    assert llm.calls == 6 + 3


def test_an_overloaded_server_that_answers_others_is_waited_for(clock):
    def rule(request):
        if number(request) == 0 and len(llm.requests) < 20:
            if len(llm.requests) < 16:
                asked.ask(requests(1, first=len(llm.requests)))  # meanwhile, another thread
            raise Overloaded("slow down")
        return "x"

    asked, llm = asker(rule)
    with pytest.raises(Overloaded):
        asked.ask(requests(1))
    # Eight tries during which another question had answers, then three in vain.
    assert len([r for r in llm.requests if number(r) == 0]) == 8 + 3


def test_a_pause_beyond_the_budget_is_not_waited_for(clock):
    asked, llm = asker(failing({0: 9}, Overloaded("tomorrow", 3600.0)))
    with pytest.raises(Overloaded):
        asked.ask(requests(1))
    assert (llm.calls, clock.now) == (1, 1000.0)
    asked, llm = asker(failing({0: 1}, Overloaded("soon", 50.0)))
    assert asked.ask(requests(1))[0].text == "x"
    assert clock.now == pytest.approx(1050.0)


def test_the_model_can_see_a_cancel_while_it_works():
    stop = threading.Event()

    class Waiting(ScriptedLLM):
        def generate(self, requests, on_done=None, cancelled=None):
            stop.set()
            assert cancelled()
            raise Cancelled("given up")

    asked = Asker(Waiting("x"), CompletionCache(), POLICY, stop.is_set, lambda n: None)
    with pytest.raises(Cancelled, match="given up"):
        asked.ask(requests(1))


class Together(ScriptedLLM):
    """Tells nobody of an answer before all are there."""

    def generate(self, requests, on_done=None, cancelled=None):
        return super().generate(requests)


@pytest.mark.parametrize("kind", [ScriptedLLM, Together])
def test_every_answer_is_told_and_counted_once(kind):
    told, seen, cache = [], [], CompletionCache()
    llm = kind(lambda request: f"answer {number(request)}")
    asked = Asker(llm, cache, on_answer=seen.append)
    twice = [*requests(2), *requests(1)]
    answers = asked.ask(twice, lambda place, answer: told.append((place, answer.text)))
    assert [one.text for one in answers] == ["answer 0", "answer 1", "answer 0"]
    assert sorted(told) == [(0, "answer 0"), (1, "answer 1"), (2, "answer 0")]
    assert seen == [2, 3]
    assert asked.usage == {"calls": 2, "cached": 0, "prompt_tokens": 2, "completion_tokens": 4}
    assert (asked.n_made, asked.n_answers, asked.n_cached, len(cache)) == (2, 3, 0, 2)
    asked.ask(requests(3))
    assert seen == [2, 3, 4, 5, 6]
    assert asked.counts == {
        "answers": 6, "from_cache": 2, "read": 0, "calls": 3, "cached": 2, "prompt_tokens": 3, "completion_tokens": 6,
    }  # fmt: skip


def test_what_another_process_counted_is_added():
    seen = []
    asked = Asker(ScriptedLLM("x"), on_answer=seen.append)
    more = {
        "answers": 7, "from_cache": 2, "read": 3, "calls": 4, "cached": 1, "prompt_tokens": 50, "completion_tokens": 9,
    }  # fmt: skip
    for _ in range(2):
        asked.count(more)
    assert asked.counts == {name: 2 * n for name, n in more.items()}
    assert (asked.n_made, seen) == (8 + 6, [7, 14])


def test_notes_of_model_cache_and_other_processes_come_once_each():
    llm = ScriptedLLM("x")
    assert Asker(llm).notes == ()
    llm.notes = ("No seed.", "No schema.")
    asked = Asker(llm)
    asked.notes_elsewhere.update(dict.fromkeys(["No schema.", "No top_p."]))
    assert asked.notes == ("No seed.", "No schema.", "No top_p.")


def test_a_cancel_ends_the_wait_for_what_another_thread_asks():
    inside, go, stop = threading.Event(), threading.Event(), threading.Event()

    def rule(_):
        inside.set()
        assert go.wait(10)
        return "x"

    found, waiting = [], threading.current_thread()
    # Of the two threads only the one that waits sees the cancel.
    asked, _ = asker(rule, cancelled=lambda: stop.is_set() and threading.current_thread() is waiting)
    first = threading.Thread(target=lambda: found.append(asked.ask(requests(1))))
    first.start()
    assert inside.wait(10)
    threading.Timer(0.02, stop.set).start()
    with pytest.raises(Cancelled):
        asked.ask(requests(1))
    go.set()
    first.join(10)
    assert [one.text for (one,) in found] == ["x"]


# --- in a run


class Server(ScriptedLLM):
    """Makes its calls as a server's do: a failure of one does not keep the others from being made."""

    def generate(self, requests, on_done=None, cancelled=None):
        async def call(request):
            return self._answer(request)

        return Remote(4, 30.0).generate(requests, call, on_done, cancelled)


def run(data, rule):
    llm = Server(rule)
    policy = RetryPolicy(attempts=2, first_wait=0.001, longest_wait=0.001)
    return live_run(data, llm, step=InfluenceStep(repeats=1), retry=policy)


def test_a_failing_ablation_leaves_the_question_its_answer(make_dataset):
    def rule(request):
        text = request.messages[0].content
        if "[1]" in text and "[2]" not in text:
            raise TransientError("The server broke.")
        return "x"

    result = run(make_dataset(2), rule)
    assert result.queries["answer_status"].to_list() == ["answered"] * 2
    assert result.passages["ablated_status"].to_list() == ["answered", "error", "answered", "answered"] * 2
    assert result.repeats["answer_status"].to_list() == ["answered"] * 2
    assert any("Missing: 2 ablated answers;" in note for note in result.manifest["notes"])


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("reasoning", "token limit was spent on reasoning before any answer; raise the max answer tokens (--max-tokens)"),
        ("content_filter", "The server's content filter withheld the answer."),
        ("length", "The token limit was used up without an answer."),
    ],
)  # fmt: skip
def test_an_empty_answer_says_why(make_dataset, reason, words):
    result = run(make_dataset(1), lambda _: Completion("", reason, 5, 24, 0.1))
    assert result.queries["answer_status"].to_list() == ["empty"]
    assert words in result.queries["status_reason"][0]


@pytest.mark.parametrize("reason", ["reasoning", "content_filter"])
def test_an_answer_that_was_withheld_says_nothing_about_a_passage(make_dataset, reason):
    def rule(request):
        text = request.messages[0].content
        whole = all(f"[{n}]" in text for n in (1, 2, 3, 4))
        return "x" if whole and request.seed == 0 else Completion("", reason, 5, 24, 0.1)

    result = run(make_dataset(1), rule)
    assert result.queries["answer"][0] == "x"
    assert result.passages["ablated_status"].to_list() == ["error"] * 4
    assert result.repeats["answer_status"].to_list() == ["error"]
    assert result.queries["closed_book_answer"].isna().all()


def test_an_answer_that_the_limit_cut_is_an_answer(make_dataset):
    result = run(make_dataset(1), lambda _: Completion("The bridge was", "length", 5, 24, 0.1))
    assert result.queries["answer_status"].to_list() == ["answered"]
    assert result.queries["status_reason"].isna().all()


def test_what_the_back_end_found_out_is_noted(make_dataset):
    llm = ScriptedLLM(lambda _: "x")
    llm.notes = ("The server does not take seed.",)
    result = live_run(make_dataset(1), llm)
    assert "The server does not take seed." in result.manifest["notes"]


def test_rows_of_the_cache_that_were_replaced_are_noted(make_dataset):
    cache, llm = CompletionCache(), ScriptedLLM(lambda _: "x")
    live_run(make_dataset(2), llm, cache)
    cache._db.execute("UPDATE completions SET logprobs = 'nonsense'")
    n = llm.calls
    result = live_run(make_dataset(2), llm, cache)
    assert llm.calls == 2 * n and result.queries["answer"].to_list() == ["x", "x"]
    assert (
        f"{n} rows of the completion cache could not be read; asked again and replaced."
        in result.manifest["notes"]
    )
