"""Runs on a cluster: how far workers are used, what a call costs the driver, and where that is the limit.

Up to four workers are real processes of Ray, with a model that sleeps 50 ms a call. The driver alone is
measured with workers that only hand out reports made before. `simulated` puts the costs of the driver (of a
message, a call, a question of 11 calls) together for more workers than a machine has: while the driver is
busy each report gathers more calls, so messages slow nobody down; calls and questions do. Costs are those
of the driver's thread: Ray's own threads need another core.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

from bench.lines import Line, Size
from core.influence.step import InfluenceStep
from core.llm import CompletionCache, request_key
from core.llm.cache import row_of
from core.llm.types import Completion
from core.pipeline import RunOptions, begin, fill
from core.pipeline.cluster import Place, _in_workers, _opener, executor
from core.pipeline.executing import Part
from core.pipeline.rows import questions_of
from core.pipeline.worker import _AHEAD, Letter, Report
from core.sources.dataset import read_dataset
from core.text.display import count
from tests.cluster_runs import calls as calls_of
from tests.cluster_runs import first_passage, model
from tests.scripted import ScriptedLLM

SECONDS, CALLS = 0.05, 11  # of a call, and calls of a question with nine passages
STEP = InfluenceStep()


def begun(n: int, k: int, llm):
    text = " ".join(["word"] * 100)
    rows = [
        {"id": f"q{i}", "question": f"What is {i}?", "passages": [f"fact {i} {j} {text}" for j in range(k)]}
        for i in range(n)
    ]
    return begin(
        read_dataset("\n".join(map(json.dumps, rows)).encode(), "t.jsonl"), RunOptions(k=k), llm, STEP
    )


def throughput(workers: int, n: int) -> float:
    """Return the share of their time in which workers called the model, from when all of them had begun."""
    with tempfile.TemporaryDirectory() as folder, CompletionCache(Path(folder) / "c.db") as cache:
        llm = model(folder, first_passage, SECONDS)
        with executor(Place("ray", workers), {STEP.name: llm}) as on:
            fill(begun(n, CALLS - 2, llm), STEP, llm=llm, cache=cache, on=on)
            end = time.time()
        made = calls_of(folder)
        first: dict[int, float] = {}
        for _, at, pid in made:
            first.setdefault(pid, at)
        assert len(made) == n * CALLS and len(first) == workers
        start = max(first.values())
        return sum(at >= start for _, at, _ in made) * SECONDS / (workers * (end - start))


def seconds_of_a_message(n: int) -> float:
    """Return the time of the driver's thread for a turn of a worker that brings nothing, 64 at once."""
    import ray

    kind = ray.remote(num_cpus=1, max_concurrency=32)(_Nothing)
    workers = [kind.remote() for _ in range(2)]
    ray.get([one.turn.remote(Letter()) for one in workers])
    waiting = {one.turn.remote(Letter()): one for one in workers * 32}
    start, heard = time.thread_time(), 0
    while heard < n:
        done, rest = ray.wait([*waiting], num_returns=1)
        done += ray.wait(rest, num_returns=len(rest), timeout=0)[0] if rest else []
        ray.get(done)
        heard += len(done)
        for ref in done:
            one = waiting.pop(ref)
            waiting[one.turn.remote(Letter())] = one
    took = (time.thread_time() - start) / heard
    for one in workers:
        ray.kill(one)
    return took


class _Nothing:
    def turn(self, _: Letter) -> Report:
        return Report()


class _Ready:
    """A worker whose reports were made before: for each question one, which asks for the keys of the next."""

    def __init__(self, reports, facts) -> None:
        self._reports, self._facts = reports, facts
        self._ids: list[str] = []
        self.ready = SimpleNamespace(
            options=lambda **_: SimpleNamespace(remote=lambda: _done(pickle.dumps(facts)))
        )
        self.turn = SimpleNamespace(remote=self._turn)
        self.stop = SimpleNamespace(remote=lambda: None)

    def _turn(self, letter: Letter):
        pickle.dumps(letter)
        self._ids += letter.share.ids if letter.share else ()
        return _done(self._reports[self._ids.pop(0)] if self._ids else pickle.dumps(Report()))


def _done(value) -> Future:
    future: Future = Future()
    future.set_result(value)
    return future


class _Messages:
    """What the driver uses of Ray, without messages."""

    exceptions = SimpleNamespace(RayError=BrokenPipeError, RayActorError=BrokenPipeError)

    def __init__(self, reports, facts) -> None:
        self._reports, self._facts = reports, facts

    def remote(self, **_):
        return lambda _: SimpleNamespace(remote=lambda *_: _Ready(self._reports, self._facts))

    def wait(self, refs, num_returns, **_):
        return refs[:num_returns], refs[num_returns:]

    def get(self, refs):
        return [pickle.loads(ref.result()) for ref in refs]

    def kill(self, _):
        pass


def driver_seconds(n: int, k: int) -> float:
    """Return the time of the driver's thread for n questions of k + 2 calls, with their cache and tables.

    Each worker has as many questions to do as 512 have of 100,000, so that it gets as many at once.
    """
    from core.pipeline.steps import model_facts

    llm = ScriptedLLM(first_passage)
    run = begun(n, k, llm)
    question = questions_of(run)
    reports, usage = {}, dict.fromkeys(("answers", "calls", "prompt_tokens", "completion_tokens"), k + 2)
    ids = run.queries["query_id"].to_list()
    keyed = {
        query_id: [(call, request_key(llm, call.request)) for call in STEP.calls(question(query_id))]
        for query_id in ids
    }
    for query_id, later in zip(ids, [*ids[1:], None], strict=True):
        asked, requests = question(query_id), keyed[query_id]
        answers = {(c.kind, c.number): Completion("fact 1 2", "stop", 900, 3, SECONDS) for c, _ in requests}
        made = [row_of(key, answers[c.kind, c.number], llm.name) for c, key in requests]
        parts = [Part((query_id,), STEP.rows(asked, answers), None, True)]
        wanted = {1: [key[::-1] for _, key in keyed[later]]} if later else {}  # which nobody has answered
        counts = {**usage, "from_cache": 0, "read": 0, "cached": 0}
        reports[query_id] = pickle.dumps(Report(made, parts, [], wanted, counts))
    ray = _Messages(reports, model_facts(llm))
    place = Place("ray", max(1, n // 200))
    with tempfile.TemporaryDirectory() as folder, CompletionCache(Path(folder) / "c.db") as cache:
        start = time.thread_time()
        fill(
            run, STEP, llm=llm, cache=cache, progress=lambda *_: None,
            on=lambda job: _in_workers(job, ray, place, _opener(ray, None)),
        )  # fmt: skip
        took = time.thread_time() - start
        assert len(cache) == n * (k + 2)
    return took


def simulated(
    n: int, workers: int, message: float, call: float, question: float
) -> tuple[float, float, float]:
    """Return the hours of a run, and the shares of their time in which workers and driver are busy."""
    of_a_question = CALLS * call + question
    load = workers * of_a_question / (CALLS * SECONDS)
    if load >= 1:
        busy = 1 / load
    else:
        # A round of all workers; keys of the next questions are looked up meanwhile.
        turn = workers * message / (1 - load)
        busy = min(1.0, (1 + _AHEAD) * CALLS * SECONDS / turn)
    hours = n * CALLS * SECONDS / (workers * busy) / 3600
    return hours, busy, min(1.0, load * busy + workers * message / SECONDS * busy)


def lines(size: Size) -> Iterator[Line]:
    """Yield how far workers are used, the costs of the driver, and what they mean for many workers."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # else every other program of the machine goes first
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        for workers in size.pick((1,), (1, 4), (1, 2, 4)):
            shares = [throughput(workers, workers * size.pick(2, 20, 40)) for _ in range(size.pick(1, 1, 3))]
            goal = 0.85 if workers == 4 else None
            yield _line(
                f"{count(workers, 'worker')}: share of time in calls",
                shares,
                "%",
                100,
                "calls of 50 ms",
                goal,
            )
        message = seconds_of_a_message(size.pick(20, 500, 2000))
    finally:
        ray.shutdown()
    n = size.pick(50, 1000, 5000)
    # Of the second half: what a run costs once is nothing for 100,000 questions.
    few, many = ((driver_seconds(2 * n, k) - driver_seconds(n, k)) / n for k in (1, 20))
    call = (many - few) / 19
    question = few - 3 * call
    for name, seconds in (("message", message), ("call", call), ("question", question)):
        yield _line(f"driver, for each {name}", [seconds], "µs", 1e6, f"n = {n:,} questions more", None)
    for workers, size_of_run in itertools.product((8, 64, 512), (100_000, 1_000_000)):
        hours, busy, driver = simulated(size_of_run, workers, message, call, question)
        name = f"simulated: {workers} workers, {size_of_run:,} questions"
        yield _line(
            name, [busy], "% of workers busy", 100, f"{hours:.2g} h, driver busy {100 * driver:.0f} %", None
        )
    most = CALLS * SECONDS / (CALLS * call + question)
    yield _line(
        "simulated: workers that one driver keeps busy", [most], "workers", 1, "calls of 50 ms", 512.0
    )


def _line(name: str, values: list[float], unit: str, factor: float, note: str, goal: float | None) -> Line:
    found = sorted(value * factor for value in values)
    middle = found[len(found) // 2]
    scaled = None if goal is None else goal * factor
    return Line(name, "nothing", middle, found[0], found[-1], len(found), "", unit, None, scaled, False, note)
