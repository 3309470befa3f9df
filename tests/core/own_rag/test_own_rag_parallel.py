"""`core.analyze` with async functions, many calls at once, a running event loop, and a stop in the middle."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

import core
from core.influence import analyse
from core.run import Run

ROOT = Path(__file__).parents[3]
QUESTIONS = [f"question {i}?" for i in range(6)]


def retrieve(question):
    return [f"{question} {word}" for word in ("alpha", "beta gamma", "delta")]


def answer(question, passages):
    return " ".join(passages[:2])


async def slow_retrieve(question):
    await asyncio.sleep(random.random() / 100)
    return retrieve(question)


async def slow_answer(question, passages):
    await asyncio.sleep(random.random() / 100)
    if question == QUESTIONS[2] and len(passages) == 2:
        raise ValueError("two of the third")
    return answer(question, passages)


def threaded_answer(question, passages):
    time.sleep(random.random() / 100)
    return asyncio.run(slow_answer(question, passages))  # no loop runs in this thread


def same(first, second):
    for name in first:
        drop = ["latency"] if name == "queries" else []
        pd.testing.assert_frame_equal(first[name].drop(columns=drop), second[name].drop(columns=drop))
    assert first.run_id == second.run_id
    pd.testing.assert_frame_equal(analyse(first).passages, analyse(second).passages)


def test_the_same_run_however_many_at_once():
    def run(**more):
        return core.analyze(QUESTIONS, retrieve=slow_retrieve, repeats=1, name="x", **more)

    serial = run(answer=threaded_answer)
    assert serial.passages["ablated_status"].eq("error").sum() == 3
    same(serial, run(answer=threaded_answer, parallel=3))
    same(serial, run(answer=slow_answer))
    same(serial, run(answer=slow_answer, parallel=1))
    same(serial, run(answer=lambda q, p: slow_answer(q, p)))


def test_many_at_once_really_are():
    # One question has five calls; the barrier opens only when all of them are under way.
    barrier = threading.Barrier(5, timeout=20)

    def together(question, passages):
        barrier.wait()
        return answer(question, passages)

    run = core.analyze(["q"], retrieve=retrieve, answer=together, parallel=5)
    assert run.queries["answer_status"].tolist() == ["answered"]


def test_in_a_running_loop_as_in_a_notebook():
    async def cell():
        own = asyncio.get_running_loop()

        async def elsewhere(question, passages):
            assert asyncio.get_running_loop() is not own
            return answer(question, passages)

        return core.analyze(QUESTIONS, retrieve=slow_retrieve, answer=elsewhere)

    run = asyncio.run(cell())
    assert run.queries["answer_status"].tolist() == ["answered"] * 6
    # The loop of the notebook goes on afterwards, and a second cell works too.
    same(run.renamed("x"), asyncio.run(cell()).renamed("x"))


def test_an_async_client_lives_from_one_run_to_the_next():
    locks = []

    async def with_client(question, passages):
        if not locks:
            locks.append((asyncio.Lock(), asyncio.get_running_loop()))
        async with locks[0][0]:
            await asyncio.sleep(0.001)
        assert asyncio.get_running_loop() is locks[0][1]
        return "a"

    for _ in range(2):
        run = core.analyze(QUESTIONS, retrieve=retrieve, answer=with_client)
        assert run.queries["answer_status"].tolist() == ["answered"] * 6


def test_async_generators_are_retrievers_too():
    async def streamed(question):
        for text in retrieve(question):
            await asyncio.sleep(0)
            yield text

    run = core.analyze(["q"], retrieve=streamed, answer=answer)
    assert run.passages["text"].tolist() == retrieve("q")


def test_no_thread_is_left_behind():
    core.analyze(["q"], retrieve=slow_retrieve, answer=slow_answer)
    before = threading.active_count()
    for _ in range(5):
        core.analyze(QUESTIONS, retrieve=slow_retrieve, answer=slow_answer, parallel=4)
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_an_interrupt_keeps_what_is_done(tmp_path):
    calls = []

    def interrupted(question, passages):
        calls.append((question, len(passages)))
        if len(calls) == 8:
            raise KeyboardInterrupt
        return answer(question, passages)

    arguments = {"retrieve": retrieve, "cache": tmp_path / "c.db", "name": "mine", "save": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        core.analyze(QUESTIONS, answer=interrupted, **arguments)
    partial = Run.load(tmp_path / "run")
    assert not partial.manifest["complete"]
    assert partial.queries["question"].tolist() == QUESTIONS
    assert partial.queries["question"][partial.queries["answer_status"].notna()].tolist() == QUESTIONS[:1]
    assert partial.manifest["retriever"]["name"] == "function"
    run = core.analyze(QUESTIONS, answer=interrupted, **arguments)
    assert run.manifest["complete"] and run.run_id == partial.run_id
    # Five calls a question; seven were finished, the eighth is made again.
    assert len(calls) == 8 + 6 * 5 - 7
    assert Run.load(tmp_path / "run").manifest["complete"]
    same(run, core.analyze(QUESTIONS, retrieve=retrieve, answer=answer, name="mine"))


def test_ctrl_c_while_the_calling_thread_waits_ends_the_calls_under_way():
    begun, ended = [], []

    async def never(question, passages):
        begun.append((question, len(passages)))
        if len(begun) == 8:
            await asyncio.sleep(0.3)  # by then the calling thread only waits
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        try:
            await asyncio.sleep(100)
        finally:
            ended.append((question, len(passages)))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            core.analyze(QUESTIONS, retrieve=retrieve, answer=never)
    finally:
        signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 10
    while len(ended) < 8 and time.monotonic() < deadline:
        time.sleep(0.01)  # they end in the background
    assert len(begun) == 8 and sorted(ended) == sorted(begun)


SCRIPT = textwrap.dedent("""
    import asyncio, itertools, signal, sys, time
    import core

    # A shell starts background jobs with SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder, asynchronous = sys.argv[1], sys.argv[2] == "async"
    counter = itertools.count(1)

    def retrieve(question):
        return [f"{question} {word}" for word in ("alpha", "beta gamma", "delta")]

    def begin(question, passages):
        with open(f"{folder}/calls.log", "a") as file:
            file.write(f"{question}|{' '.join(passages)}\\n")
        return 600 if next(counter) > 13 else 0.01  # the fourteenth never ends

    def answer(question, passages):
        time.sleep(begin(question, passages))
        return " ".join(passages[:2])

    async def async_answer(question, passages):
        await asyncio.sleep(begin(question, passages))
        return " ".join(passages[:2])

    core.analyze(
        [f"question {i}?" for i in range(6)],
        retrieve=retrieve,
        answer=async_answer if asynchronous else answer,
        name="mine",
        cache=f"{folder}/c.db",
        save=f"{folder}/run",
    )
""")


@pytest.mark.parametrize(("kind", "number"), [("plain", signal.SIGKILL), ("async", signal.SIGINT)])
def test_stopped_in_the_middle_and_started_again(tmp_path, kind, number):
    log = tmp_path / "calls.log"

    def lines():
        return log.read_text().splitlines() if log.exists() else []

    started = 14 if kind == "plain" else 13 + 8
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path), kind], cwd=ROOT, stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None and len(lines()) < started:
            time.sleep(0.01)
        os.kill(process.pid, number)
        _, error = process.communicate(timeout=60)
    assert process.returncode in (-number, 130)
    assert (b"KeyboardInterrupt" in error) == (number == signal.SIGINT)
    first = lines()
    assert len(first) == started

    def logged(question, passages):
        with log.open("a") as file:
            file.write(f"{question}|{' '.join(passages)}\n")
        return answer(question, passages)

    run = core.analyze(
        QUESTIONS,
        retrieve=retrieve,
        answer=logged,
        name="mine",
        cache=tmp_path / "c.db",
        save=tmp_path / "run",
    )
    # Thirteen calls were finished and are not made again; those under way are.
    again = lines()[started:]
    assert len(again) == 6 * 5 - 13
    assert len(set(first) & set(again)) == started - 13
    assert set(first) | set(again) == {f"{q}|{' '.join(p)}" for q in QUESTIONS for p in subsets(retrieve(q))}
    same(run, core.analyze(QUESTIONS, retrieve=retrieve, answer=answer, name="mine"))
    same(run, Run.load(tmp_path / "run"))


def subsets(passages):
    return [passages, *(passages[:i] + passages[i + 1 :] for i in range(3)), []]
