import asyncio
import contextlib
import os
import threading
import time
from types import SimpleNamespace

import pytest

from core.errors import BackendError, Cancelled, InputError, TransientError
from core.llm import remote as module
from core.llm.remote import (
    AdaptiveLimit,
    Overloaded,
    Remote,
    background_loop,
    estimate_tokens,
    run_on_loop,
    without_echo,
    without_prefill,
)
from core.llm.types import Completion, Message, Request


def request(n):
    return Request((Message("user", str(n)),))


def number(asked):
    return int(asked.messages[0].content)


def done(asked):
    return Completion(f"answer {number(asked)}", "stop", 1, 1, 0.0)


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("name", ["parallel", "timeout"])
def test_limits_must_be_above_zero(name, value):
    with pytest.raises(InputError, match=f"{name} must be above 0, got {value}"):
        Remote(value if name == "parallel" else 1, value if name == "timeout" else 0.5)


async def through(limit, failure=None):
    try:
        async with limit.slot():
            if failure is not None:
                raise failure
    except TransientError:
        pass


def test_the_limit_halves_when_overloaded_and_comes_back_one_by_one():
    async def steps():
        limit, seen = AdaptiveLimit(8), []
        for failure in [Overloaded("busy"), Overloaded("busy"), TransientError("odd"), *[None] * 8]:
            await through(limit, failure)
            seen.append(limit.limit)
        return seen

    # 8, halved to 4 and 2; another failure changes nothing. Then 2 + 1/2 + 1/2.5 = 2.9, + 1/2.9 = 3.24,
    # and by the same steps 3.55, 3.83, 4.10, 4.34, 4.57.
    assert asyncio.run(steps()) == [4, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4]


def test_one_call_at_least_may_always_run():
    async def steps():
        limit, seen = AdaptiveLimit(4), []
        for failure in [*[Overloaded("busy")] * 3, *[None] * 4]:
            await through(limit, failure)
            seen.append(limit.limit)
        return seen

    # Halved to 2, 1 and no further; then 1 + 1 = 2, + 1/2 = 2.5, + 1/2.5 = 2.9, + 1/2.9 = 3.24.
    assert asyncio.run(steps()) == [2, 1, 1, 2, 2, 2, 3]


def test_calls_that_fail_together_are_one_overload():
    async def steps():
        limit, start = AdaptiveLimit(8), asyncio.Event()

        async def failing():
            with pytest.raises(Overloaded):
                async with limit.slot():
                    await start.wait()
                    raise Overloaded("busy")

        tasks = [asyncio.create_task(failing()) for _ in range(8)]
        await asyncio.sleep(0)
        start.set()
        await asyncio.gather(*tasks)
        first = limit.limit
        await through(limit, Overloaded("still busy"))
        return first, limit.limit

    assert asyncio.run(steps()) == (4, 2)


def test_never_more_at_once_than_the_limit_also_from_many_threads():
    remote = Remote(3, timeout=30)
    running, most = 0, 0

    async def call(asked):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1
        return done(asked)

    results = {}

    def work(n):
        results[n] = remote.generate([request(10 * n + i) for i in range(6)], call)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 3
    assert {n: [r.text for r in found] for n, found in results.items()} == {
        n: [f"answer {10 * n + i}" for i in range(6)] for n in range(5)
    }


def shared_prefixes(n):
    """A baseline, and n prompts of which the last shares most with it."""
    return [
        Request((Message("user", text),))
        for text in ["a" * n + "z", *("a" * i + "b" * (n - i) for i in range(n))]
    ]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_calls_start_in_the_order_of_their_prefixes_the_first_alone(one_by_one):
    remote, started, together = Remote(3, 30), [], []
    remote.one_by_one = one_by_one
    asked, running = shared_prefixes(6), set()

    async def call(request):
        place = asked.index(request)
        started.append(place)
        running.add(place)
        together.append(frozenset(running))
        await asyncio.sleep(0.01)
        running.discard(place)
        return Completion(f"answer {place}", "stop", 1, 1, 0.0)

    answers = remote.generate(asked, call)
    assert [answer.text for answer in answers] == [f"answer {place}" for place in range(7)]
    assert started == [0, 6, 5, 4, 3, 2, 1]
    assert together[:2] == [{0}, {6}]
    assert max(map(len, together)) == (1 if one_by_one else 3)


def test_other_threads_use_the_other_slots():
    remote = Remote(2, 30)
    remote.one_by_one = True
    both = asyncio.Barrier(2)  # passed only where two calls are under way

    async def call(request):
        await both.wait()
        return done(request)

    threads = [
        threading.Thread(target=remote.generate, args=([request(10 * n + i) for i in range(3)], call))
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_the_others_are_asked_where_the_first_passes_away():
    async def call(asked):
        if number(asked) == 0:
            raise TransientError("broken")
        return done(asked)

    kept = []
    with pytest.raises(TransientError):
        Remote(2, 30).generate([request(n) for n in range(3)], call, lambda i, c: kept.append(c.text))
    assert sorted(kept) == ["answer 1", "answer 2"]


def test_the_others_are_finished_before_a_passing_failure_is_told():
    kept = []

    async def call(asked):
        if number(asked) in (0, 2):
            raise TransientError("broken", retry_after=float(number(asked)))
        await asyncio.sleep(0.02)
        return done(asked)

    with pytest.raises(TransientError) as failed:
        Remote(4, 30).generate([request(n) for n in range(4)], call, lambda i, c: kept.append((i, c.text)))
    assert failed.value.retry_after == 2.0
    assert sorted(kept) == [(1, "answer 1"), (3, "answer 3")]


def test_a_failure_that_stays_ends_the_batch_at_once():
    async def call(asked):
        if number(asked) == 1:
            raise BackendError("no such model")
        if number(asked) == 2:
            await asyncio.sleep(60)
        return done(asked)

    start = time.monotonic()
    with pytest.raises(BackendError, match="no such model"):
        Remote(4, 300).generate([request(n) for n in range(3)], call)
    assert time.monotonic() - start < 30


def test_a_call_out_of_time_is_an_overload():
    async def call(_):
        await asyncio.sleep(60)

    remote = Remote(4, 0.1)
    with pytest.raises(Overloaded, match=r"did not finish an answer in 0\.1 s"):
        remote.generate([request(0)], call)


def test_a_pause_holds_for_all_calls_of_the_server():
    remote = Remote(1, 30)
    asked_at = []

    async def call(asked):
        asked_at.append(number(asked))
        raise Overloaded("Slow down.", retry_after=0.3)

    with pytest.raises(Overloaded) as first:
        remote.generate([request(0), request(1), request(2)], call)
    assert asked_at == [0]
    assert first.value.retry_after == 0.3
    with pytest.raises(Overloaded, match="Slow down") as second:
        remote.generate([request(3)], call)
    assert asked_at == [0]
    assert 0 < second.value.retry_after <= 0.3
    time.sleep(second.value.retry_after)
    with pytest.raises(Overloaded):
        remote.generate([request(4)], call)
    assert asked_at == [0, 4]


def test_a_shorter_pause_does_not_end_a_longer_one():
    remote, short_begun, long_asked = Remote(4, 30), asyncio.Event(), asyncio.Event()

    async def call(asked):
        if number(asked) == 1:
            await short_begun.wait()
            long_asked.set()
            raise Overloaded("Long.", retry_after=60)
        if number(asked) == 2:
            short_begun.set()
            await long_asked.wait()
            raise Overloaded("Short.", retry_after=1)
        return done(asked)

    with pytest.raises(Overloaded, match="Long"):  # 1 and 2 are under way together, after 0
        remote.generate([request(n) for n in range(3)], call)
    with pytest.raises(Overloaded, match="Long") as waiting:
        remote.generate([request(3)], call)
    assert waiting.value.retry_after > 30


@pytest.mark.parametrize("pauses", [(None, 0.5), (0.5, None)])
def test_a_pause_is_told_though_another_call_failed_without_one(pauses):
    async def call(asked):
        raise TransientError("broken", retry_after=pauses[number(asked)])

    with pytest.raises(TransientError) as failed:
        Remote(2, 30).generate([request(0), request(1)], call)
    assert failed.value.retry_after == 0.5


def test_a_cancel_is_looked_for_five_times_a_second_and_the_call_has_ten_seconds_to_end(monkeypatch):
    waits = []

    class Event(threading.Event):
        def wait(self, timeout):
            waits.append(timeout)
            return super().wait(0.001 if len(waits) == 1 else timeout)

    names = SimpleNamespace(Event=Event, Thread=threading.Thread)
    monkeypatch.setattr(module, "threading", names)
    with pytest.raises(Cancelled):
        run_on_loop(asyncio.sleep(60), lambda: True)
    assert waits == [0.2, 10.0]


def test_the_loop_of_all_calls_does_not_keep_a_process_alive():
    assert background_loop() is background_loop()
    assert [one.daemon for one in threading.enumerate() if one.name == "leadline-remote"] == [True]


@pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # the child calls nothing that others may have locked
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_the_child_of_a_fork_has_a_loop_of_its_own():
    assert run_on_loop(asyncio.sleep(0, "here")) == "here"
    child = os.fork()
    if not child:
        looks = iter([False] * 50)  # ten seconds, where no thread serves the loop
        with contextlib.suppress(BaseException):
            os._exit(7 if run_on_loop(asyncio.sleep(0, 7), lambda: next(looks)) == 7 else 1)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_an_overload_without_a_pause_holds_nobody_up():
    remote, asked = Remote(1, 30), []

    async def call(request):
        asked.append(number(request))
        raise Overloaded("Busy.")

    for n in range(2):
        with pytest.raises(Overloaded, match="Busy"):
            remote.generate([request(n)], call)
    assert asked == [0, 1]


def test_a_cancel_in_the_middle_of_a_call_gives_it_up_and_keeps_what_arrived():
    waiting, ended, kept = threading.Event(), threading.Event(), []

    async def call(asked):
        if number(asked) != 1:
            return done(asked)
        try:
            waiting.set()
            await asyncio.sleep(60)
        finally:
            ended.set()

    def slowly(index, completion):
        if index:  # the others begin only after the first is kept
            assert waiting.wait(10)
            time.sleep(0.3)  # the cancel comes while this answer is being kept
        kept.append((index, completion.text))

    with pytest.raises(Cancelled):
        Remote(4, 300).generate([request(0), request(1), request(2)], call, slowly, waiting.is_set)
    assert ended.is_set()
    assert kept == [(0, "answer 0"), (2, "answer 2")]


def test_what_a_callback_raises_reaches_the_caller():
    async def call(asked):
        return done(asked)

    def refuse(index, completion):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Remote(2, 30).generate([request(0), request(1)], call, refuse)


def test_nothing_to_ask():
    assert Remote(2, 30).generate([], None) == []


def test_the_beginning_of_the_answer_is_not_sent_and_not_repeated():
    turns, prefix = without_prefill([Message("user", "q"), Message("assistant", "Answer:")])
    assert (turns, prefix) == ([{"role": "user", "content": "q"}], "Answer:")
    assert without_prefill([Message("assistant", "alone")])[1] == ""
    assert without_echo("\n answer: Paris", "Answer:") == "Paris"
    assert without_echo(" Paris", "Answer:") == "Paris"
    assert without_echo(" Paris", "") == "Paris"


def test_tokens_are_estimated_by_script():
    assert estimate_tokens([Message("user", "abcdefgh"), Message("user", "")]) == 4 + 2 + 4
    assert estimate_tokens([Message("user", "巴黎a")]) == 4 + 2 + 1
    # From U+2E80 on, the first of the radicals of Chinese characters, each counts.
    assert estimate_tokens([Message("user", "\u2e80" * 4)]) == 4 + 4
    assert estimate_tokens([Message("user", "\u2e7f" * 9)]) == 4 + 3
