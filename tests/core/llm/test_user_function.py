import asyncio
import functools
import threading
import time

import pytest

from core.errors import Cancelled
from core.llm.functions import UserFunction


def outcomes(function, calls, **options):
    found = {}
    wrapped = UserFunction(function, "answer", lambda value: value, **options)
    try:
        wrapped.each(calls, found.__setitem__)
    finally:
        wrapped.close()
    return [found[i] for i in range(len(calls))]


def test_plain_functions_run_in_the_callers_thread_one_by_one():
    here = threading.get_ident()
    assert [o.value for o in outcomes(lambda x: threading.get_ident() == here, [(1,), (2,)])] == [True] * 2


@pytest.mark.parametrize("parallel", [2, 3])
def test_parallel_plain_functions_really_run_at_once(parallel):
    barrier = threading.Barrier(parallel, timeout=20)
    found = outcomes(lambda x: barrier.wait() >= 0 and x, [(x,) for x in range(parallel)], parallel=parallel)
    assert [o.value for o in found] == list(range(parallel))


async def double(x):
    await asyncio.sleep(0)
    return 2 * x


class AsyncCallable:
    async def __call__(self, x):
        return await double(x)


async def generated(x):
    for i in range(x):
        yield i


@pytest.mark.parametrize(
    "function", [double, lambda x: double(x), AsyncCallable(), functools.partial(double)]
)
def test_async_functions(function):
    assert [o.value for o in outcomes(function, [(1,), (2,)])] == [2, 4]


class AsyncGenerating:
    async def __call__(self, x):
        yield x


@pytest.mark.parametrize(
    ("function", "given", "at_once"),
    [
        (len, None, 1),
        (len, 3, 3),
        (functools.partial(len), None, 1),
        (double, None, 8),
        (double, 3, 3),
        (functools.partial(double, 1), None, 8),
        (generated, None, 8),
        (AsyncCallable(), None, 8),
        (AsyncGenerating(), None, 8),
        (functools.partial(AsyncCallable(), 1), None, 8),
    ],
)
def test_async_functions_of_every_kind_are_called_eight_at_once_where_nothing_else_is_said(
    function, given, at_once
):
    wrapped = UserFunction(function, "answer", lambda value: value, given)
    assert wrapped.parallel == at_once
    wrapped.close()


def test_async_generators_are_gone_through():
    value = outcomes(generated, [(3,)])[0].value
    assert not isinstance(value, list) and list(value) == [0, 1, 2]  # pieces, not a list that was returned


def test_async_functions_run_eight_at_once_and_never_more():
    running, most = 0, 0

    async def answer(x):
        nonlocal running, most
        running += 1
        most = max(most, running)
        async with asyncio.timeout(20):
            await barrier.wait()
        running -= 1
        return x

    async def make():
        return asyncio.Barrier(8)

    barrier = outcomes(make, [()])[0].value
    assert [o.value for o in outcomes(answer, [(i,) for i in range(24)])] == list(range(24))
    assert most == 8


def test_async_functions_work_where_a_loop_is_running_and_share_one_loop():
    async def which():
        return asyncio.get_running_loop()

    async def notebook():
        return [o.value for o in outcomes(which, [(), ()])], asyncio.get_running_loop()

    (first, second), own = asyncio.run(notebook())
    assert first is second is outcomes(which, [()])[0].value
    assert first is not own


def test_a_timeout_and_a_cancel_inside_an_async_function_are_its_own_errors():
    async def late(kind):
        if kind == "timeout":
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        raise asyncio.CancelledError

    timeout, cancel = outcomes(late, [("timeout",), ("cancel",)])
    assert isinstance(timeout.error, TimeoutError)
    assert "CancelledError" in str(cancel.error)


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_cancel_ends_the_calls(parallel):
    calls = []

    def slow(x):
        calls.append(x)
        time.sleep(0.005)

    function = UserFunction(slow, "answer", lambda value: value, parallel)
    stop = []
    with pytest.raises(Cancelled):
        function.each([(i,) for i in range(1000)], lambda i, o: stop.append(i), lambda: bool(stop))
    function.close()
    assert 1 <= len(calls) < 1000


def test_outcomes_that_have_arrived_before_a_cancel_are_delivered_and_no_others():
    still, seen = threading.Event(), []
    function = UserFunction(lambda x: x < 3 or still.wait(20), "answer", lambda value: value, parallel=4)

    def done(index, outcome):
        if not seen:  # the threads of the first three are free for other work only once those are done
            free = threading.Barrier(3)
            for work in [function._pool.submit(free.wait, 20) for _ in range(3)]:
                work.result()
        seen.append(index)
        raise Cancelled("Stop.")

    with pytest.raises(Cancelled):
        function.each([(x,) for x in range(5)], done)
    assert sorted(seen) == [0, 1, 2]
    still.set()
    function.close()


def test_a_cancel_and_a_failure_of_the_functions_own_are_outcomes():
    asked = []

    def answer(kind):
        asked.append(kind)
        raise Cancelled("mine") if kind == "cancel" else ValueError("mine")

    for cancelled in (None, lambda: False):
        found, function = [], UserFunction(answer, "answer", lambda value: value)
        function.each([("cancel",)], lambda i, outcome, found=found: found.append(outcome.error), cancelled)
        assert isinstance(found[0], Cancelled)
    found = []
    function.each([("fail",)], lambda i, outcome: found.append(outcome.error), lambda: asked[-1:] == ["fail"])
    assert isinstance(found[0], ValueError)  # though the user has cancelled meanwhile


def test_a_cancel_does_not_wait_for_an_async_call():
    async def forever(x):
        await asyncio.sleep(3600)

    function = UserFunction(forever, "answer", lambda value: value)
    end = time.monotonic() + 0.3
    with pytest.raises(Cancelled):
        function.each([(i,) for i in range(20)], lambda i, o: None, lambda: time.monotonic() > end)
    function.close()


def test_after_an_interrupt_async_calls_end():
    started, ended = threading.Event(), threading.Event()

    async def forever(x):
        if x == 0:
            while not started.is_set():  # a call that never began has nothing to end
                await asyncio.sleep(0.01)
            return x
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    def interrupted(index, outcome):
        raise KeyboardInterrupt

    function = UserFunction(forever, "answer", lambda value: value)
    with pytest.raises(KeyboardInterrupt):
        function.each([(0,), (1,)], interrupted)
    assert ended.wait(20)
    function.close()


def test_what_the_callback_raises_reaches_the_caller():
    def done(index, outcome):
        raise RuntimeError("full disk")

    for parallel in (1, 2):
        function = UserFunction(lambda x: x, "answer", lambda value: value, parallel)
        with pytest.raises(RuntimeError, match="full disk"):
            function.each([(1,), (2,), (3,)], done)
        function.close()
