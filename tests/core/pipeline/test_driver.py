"""The driver's side of a cluster, by a Ray that is scripted: shares, deaths, and how it is reached."""

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import core
from core.errors import BackendError
from core.llm import CompletionCache
from core.pipeline import ModelChoice, RetryPolicy, fill
from core.pipeline.cluster import Place, _Cluster, _in_workers, _Opener, _opener, _Reply, _RowsOf, executor
from core.pipeline.worker import Report
from core.run import Run
from tests.core.pipeline.test_executing import Ask, run_of
from tests.scripted import ScriptedLLM
from tests.scripted_ray import Handle, ScriptedRay

QUICK = RetryPolicy(attempts=2, first_wait=0.0, longest_wait=0.0, budget=5.0)


class RayError(Exception):
    pass


class Died(RayError):
    actor_init_failed = False


class NeverBegan(Died):
    actor_init_failed = True


class Mortal:
    """A worker that dies of one question, and is started again."""

    def __init__(self, ray, make):
        self.ray, self.make, self.worker = ray, make, make()
        self.ready, self.stop = lambda: self.worker.ready(), lambda: self.worker.stop()

    def turn(self, letter):
        ids = () if letter.share is None else letter.share.ids
        self.ray.shares.append(ids)
        if self.ray.deadly in ids:
            self.worker.stop()
            self.worker = self.make()
            raise Died("The actor died.\nIts process ended.")
        return self.worker.turn(letter)


class MortalRay(ScriptedRay):
    exceptions = SimpleNamespace(RayError=RayError, RayActorError=Died)

    def __init__(self, n_workers=1, deadly=None):
        super().__init__(n_workers)
        self.deadly, self.shares, self.killed = deadly, [], []

    def remote(self, **options):
        self.options = options
        return lambda kind: SimpleNamespace(
            remote=lambda *given: self._start(Mortal(self, lambda: kind(*given)))
        )

    def wait(self, futures, num_returns, timeout):
        if num_returns < 1:
            raise ValueError("num_returns must be at least one.")  # as Ray has it
        done, rest = super().wait(futures, num_returns, timeout)
        return done[:num_returns], [*done[num_returns:], *rest]

    def kill(self, handle):
        self.killed.append(handle)
        super().kill(handle)


def work(ray, n, llm, place=None, step=None, **more):
    def on(job):
        return _in_workers(job, ray, place or Place("ray"), lambda: llm)

    return fill(run_of(n), step or Ask(), llm=llm, retry=QUICK, on=on, **more)


def asked(run):
    signals = run["signals"]
    return signals["query_id"][signals["llm_score"].notna()].to_list()


# --- workers that die


@pytest.mark.parametrize(("parallel", "n_deaths"), [(1, 3), (6, 4)])
def test_a_question_that_ends_its_worker_three_times_is_given_up(parallel, n_deaths):
    """Where a worker held others as well, that death says nothing of any of them."""
    ray = MortalRay(deadly="q3")
    found = work(ray, 6, ScriptedLLM(lambda _: "1", parallel=parallel))
    assert asked(found) == ["q0", "q1", "q2", "q4", "q5"]
    reason = "Its worker ended 3 times while it worked on this question."
    assert found.manifest["steps"]["ask"]["reasons"] == {reason: 1}
    deadly = [ids for ids in ray.shares if "q3" in ids]
    assert len(deadly) == n_deaths
    assert deadly[-3:] == [("q3",)] * 3
    # After the first death all that died with it are asked alone, and the last worker is let go.
    if parallel > 1:
        together, *alone = filter(None, ray.shares)
        assert together == ("q0", "q1", "q2", "q3", "q4", "q5")
        assert all(len(ids) == 1 for ids in alone)
    assert ray.killed == ray.opened


def test_a_cancel_stops_the_workers_and_keeps_what_they_have_answered():
    told, heard = threading.Event(), []

    class Telling(MortalRay):
        def _start(self, worker):
            stop = worker.stop
            worker.stop = lambda: (stop(), told.set())
            return super()._start(worker)

    def answer(_):
        if llm.calls > 3:
            heard.append(told.wait(10))
        return "1"

    llm = ScriptedLLM(answer)
    found = work(Telling(2), 60, llm, Place("ray", 2), cancelled=lambda: llm.calls > 3)
    assert heard and all(heard)  # those that were answering learned of it, and ended what they had begun
    assert len(asked(found)) == llm.calls < 60
    assert not found.manifest["steps"]["ask"]["complete"]


def test_a_worker_that_cannot_start_ends_the_run():
    ray = MortalRay()
    ray._start = lambda worker: Handle(SimpleNamespace(ready=began, stop=lambda: None))

    def began():
        raise NeverBegan("The actor died.\n  File x.py\nValueError: no model.")

    with pytest.raises(BackendError) as error:
        work(ray, 3, ScriptedLLM("x"))
    assert str(error.value) == "A worker could not start: ValueError: no model."


def test_what_a_worker_says_it_cannot_do_ends_the_run():
    ray = MortalRay()
    ray._start = lambda worker: Handle(
        SimpleNamespace(ready=lambda: BackendError("No model."), stop=lambda: None)
    )
    with pytest.raises(BackendError, match=r"^No model\.$"):
        work(ray, 3, ScriptedLLM("x"))


def test_a_cluster_that_fails_is_said_in_one_sentence():
    ray = MortalRay()

    def wait(*_, **__):
        raise RayError("The head is gone.\nA long trace.")

    def kill(handle):
        ray.killed.append(handle)
        raise RayError("It cannot be reached.")

    ray.wait, ray.kill = wait, kill
    with pytest.raises(BackendError) as error:
        work(ray, 3, ScriptedLLM("x"))
    assert str(error.value) == "The cluster failed: The head is gone."
    assert len(ray.killed) == 1


def test_a_step_that_cannot_be_apart_is_worked_here():
    class Here(Ask):
        apart = ""

    ray, llm = MortalRay(), ScriptedLLM(lambda _: "1")
    assert len(asked(work(ray, 3, llm, step=Here()))) == 3
    assert (ray.opened, llm.calls) == ([], 3)


# --- how many workers, and how many questions for each


def job(n, threads=1, batch=1, apart="rows"):
    return SimpleNamespace(
        step=Ask(),
        run=run_of(n),
        work=SimpleNamespace(batch=batch, parallel=True, apart=apart),
        asker=SimpleNamespace(listened=False, retry=QUICK, llm=None),
        todo=[f"q{i}" for i in range(n)],
        threads=threads,
    )


def started(place, there, n=9):
    ray = MortalRay()
    ray.cluster_resources = lambda: there
    drive = _Cluster(job(n), ray, place, _Opener())
    drive.end()
    return len(drive._workers), ray.options


@pytest.mark.parametrize(
    ("place", "there", "n_workers"),
    [
        (Place("ray"), {"CPU": 3.0}, 3),
        (Place("ray"), {"CPU": 2.9, "GPU": 8.0}, 2),
        (Place("ray"), {"CPU": 0.0}, 1),
        (Place("ray"), {}, 1),
        (Place("ray"), {"CPU": 64.0}, 9),  # no more than there are questions
        (Place("ray", 2), {"CPU": 64.0}, 2),
        (Place("ray", 4), {"CPU": 1.0}, 4),  # the others begin when a node joins
        (Place("ray", gpus_per_worker=0.5), {"CPU": 64.0, "GPU": 2.0}, 4),
        (Place("ray", gpus_per_worker=2), {"CPU": 64.0, "GPU": 3.0}, 1),
        (Place("ray", gpus_per_worker=1), {"CPU": 64.0}, 1),
    ],
)
def test_as_many_workers_are_started_as_fit(place, there, n_workers):
    found, options = started(place, there)
    assert found == n_workers
    assert options == {
        "max_restarts": -1, "max_concurrency": 2, "num_cpus": 1, "num_gpus": place.gpus_per_worker,
    }  # fmt: skip


def drive_of(n, workers=1, **more):
    drive = _Cluster(job(n, **more), MortalRay(), Place("ray", workers), _Opener())
    drive.end()
    return drive


@pytest.mark.parametrize(
    ("n", "workers", "threads", "batch", "share"),
    [
        (100, 1, 1, 1, 16),  # the most
        (40, 1, 1, 1, 10),  # a quarter of what waits
        (100, 2, 1, 1, 12),  # for each worker
        (7, 2, 1, 1, 1),
        (1, 1, 1, 1, 1),
        (6, 1, 4, 1, 4),  # as many as it can ask at once
        (6, 1, 2, 2, 4),
        (3, 1, 4, 1, 3),
        (400, 1, 4, 1, 64),
    ],
)
def test_a_worker_gets_few_questions_at_a_time_and_fewer_towards_the_end(n, workers, threads, batch, share):
    drive = drive_of(n, workers, threads=threads, batch=batch)
    first = drive._workers[0]
    got = drive._share(first)
    assert got.ids == tuple(f"q{i}" for i in range(share)) == tuple(first.ids)
    assert got.run().queries["query_id"].to_list() == list(got.ids)
    assert len(drive._waiting) == n - share


def test_a_worker_gets_more_questions_once_half_are_done():
    drive = drive_of(100)
    (one,) = drive._workers
    drive._share(one)
    given = []
    for _ in range(9):
        one.ids.popitem()
        more = drive._share(one)
        given.append(more and len(more.ids))
    assert given == [None] * 7 + [8, None]


def test_a_worker_with_as_many_as_it_asks_at_once_waits_for_no_more():
    drive = drive_of(28, threads=4)
    (one,) = drive._workers
    assert len(drive._share(one).ids) == 7
    given = []
    for _ in range(4):
        one.ids.popitem()
        more = drive._share(one)
        given.append(more and len(more.ids))
    assert given == [None, None, None, 2]


def test_a_worker_is_answered_while_it_holds_questions():
    drive, sent = drive_of(2), []
    (one,) = drive._workers
    drive._job.stop = SimpleNamespace(is_set=lambda: False)
    drive._job.answered = lambda: True
    one.actor = SimpleNamespace(turn=SimpleNamespace(remote=lambda letter: sent.append(letter) or len(sent)))
    drive._waiting.clear()
    one.talks, one.ids = True, {"q0": None}
    drive._write()
    drive._write()  # it has not said anything since
    assert [(letter.share, letter.found, letter.answered) for letter in sent] == [(None, {}, True)]
    one.talks, one.ids = True, {}
    drive._write()  # nothing is left for it
    assert len(sent) == 1 and one.talks


def test_a_worker_that_has_not_reported_holds_up_none_that_has():
    drive, waits = drive_of(8, workers=3), [["a"], ["b"]]

    def wait(refs, num_returns, timeout):
        done = waits.pop(0)
        return done, [ref for ref in refs if ref not in done]

    reports = {"a": Report(idle=True), "b": Report()}
    drive._ray = SimpleNamespace(
        wait=wait, get=lambda refs: [reports[ref] for ref in refs], exceptions=MortalRay.exceptions
    )
    drive._job.asker.cache = CompletionCache()
    drive._replies = {ref: _Reply(at, True) for at, ref in enumerate("abc")}
    assert drive._heard([]) == [(0, reports["a"]), (1, reports["b"])]
    assert drive._replies == {"c": _Reply(2, True)}


def test_a_question_of_a_worker_that_died_is_asked_alone():
    drive = drive_of(20, workers=2)
    one, other = drive._workers
    greeted = []
    drive._greet = greeted.append
    held = drive._share(one).ids
    assert held == ("q0", "q1")
    assert drive._lost(0) == [] and one.ids == {} and list(drive._alone) == ["q0", "q1"]
    assert greeted == [0]
    for query_id in held:
        assert drive._share(one).ids == (query_id,)
        assert drive._share(one) is None  # nothing beside it
        one.ids.clear()
    assert drive._share(other).ids == ("q2", "q3")
    assert drive._share(one).ids == ("q4", "q5")


def test_a_part_that_was_done_twice_counts_once():
    drive = drive_of(8)
    (one,) = drive._workers
    heard = []
    drive._job.asker.notes_elsewhere = {}
    drive._job.answered = lambda: True
    drive._job.work.hear = lambda ids, told: heard.append((ids, told))
    drive._share(one)
    assert list(one.ids) == ["q0", "q1"]

    def part(query_id, told=None):
        return SimpleNamespace(ids=(query_id,), told=told)

    report = Report(
        parts=[part("q0", "said"), part("q7"), part("q1")], notes=("No seed.",), counts={"calls": 0}
    )
    assert [each.ids for each in drive._taken(0, report)] == [("q0",), ("q1",)]
    assert (heard, one.ids, one.talks) == ([(("q0",), "said")], {}, True)
    assert list(drive._job.asker.notes_elsewhere) == ["No seed."]
    assert one.letter.answered
    assert drive._taken(0, report) == []


def test_a_returned_question_goes_to_another_worker_once_the_model_has_answered():
    drive = drive_of(8)
    (one,) = drive._workers
    drive._share(one)
    back = Report(returned=[(("q1",), BackendError("Busy."))])
    drive._job.answered = lambda: False
    with pytest.raises(BackendError, match="Busy"):
        drive._back(one, back)
    drive._job.answered = lambda: True
    drive._back(one, back)
    assert (list(one.ids), list(drive._alone)) == (["q0"], ["q1"])
    with pytest.raises(BackendError, match="Broken"):
        drive._back(one, Report(error=BackendError("Broken.")))
    # After a stop what an idle worker held is done with.
    drive._back(one, Report(idle=True))
    assert list(one.ids) == ["q0"]
    drive._told_to_stop = True
    drive._back(one, Report())
    assert list(one.ids) == ["q0"]
    drive._back(one, Report(idle=True))
    assert one.ids == {}


# --- what a worker gets of the run


def mixed_run():
    ids = [f"q{i}" for i in range(6)]
    queries = pd.DataFrame({"query_id": ids, "question": [f"What is {i}?" for i in ids]})
    places = [(i, f"p{n}") for n in (2, 1) for i in ("q5", "q0", "q3", "q1", "q4")]  # and none of q2
    passages = pd.DataFrame(places, columns=["query_id", "passage_id"])
    passages = passages.assign(text=passages["query_id"] + passages["passage_id"], retrieval_rank=1.0)
    return Run.create({"source": "upload", "name": "mixed"}, queries=queries, passages=passages)


@pytest.mark.parametrize(
    "ids",
    [
        ["q0"],
        ["q5"],
        ["q2"],
        ["q1", "q2", "q3"],
        ["q5", "q0", "q1"],
        ["q4", "q1", "q3", "q0"],
        list("012345"),
    ],
)
def test_a_worker_gets_the_rows_of_its_questions(ids):
    ids = [one if one.startswith("q") else f"q{one}" for one in ids]
    run = mixed_run()
    found = _RowsOf(SimpleNamespace(run=run, work=SimpleNamespace(apart="rows")), MortalRay())(ids)()
    assert found.queries["query_id"].to_list() == sorted(ids)
    assert dict(found.manifest) == dict(run.manifest)
    for name in run:
        mine = run[name][run[name]["query_id"].isin(ids)]
        order = mine["query_id"].argsort(kind="stable")
        expected = mine.iloc[order].reset_index(drop=True)
        pd.testing.assert_frame_equal(found[name].reset_index(drop=True), expected, check_dtype=len(mine) > 0)


def test_a_worker_that_needs_the_whole_run_gets_it_once():
    run = mixed_run()
    rows = _RowsOf(SimpleNamespace(run=run, work=SimpleNamespace(apart="run")), MortalRay())
    assert rows(["q1"]) == rows(["q2"])
    assert rows(["q1"])().passages.equals(run.passages)


# --- the model, and the cluster


def test_a_model_is_opened_there_by_its_name_or_as_it_was_sent(monkeypatch):
    opened = []
    monkeypatch.setattr("core.pipeline.cluster.open_llm", lambda *given, **more: opened.append((given, more)))
    _opener(None, ModelChoice("embedded", "m"))()
    _opener(None, ModelChoice("openai", "m", "http://there"))()
    assert opened == [(("embedded", "m"), {}), (("openai", "m"), {"base_url": "http://there"})]
    assert _opener(None, None)() is None


class FakeRay:
    """A module that can be connected to."""

    def __init__(self, initialized=False):
        self.initialized, self.done = initialized, []

    def is_initialized(self):
        return self.initialized

    def init(self, **options):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.done.append(options)

    def shutdown(self):
        self.done.append("shut down")


def reached(monkeypatch, place, environ, ray=None, processors=3):
    ray = ray or FakeRay()
    system = SimpleNamespace(environ=environ, cpu_count=lambda: processors, pathsep=os.pathsep)
    monkeypatch.setattr("core.pipeline.cluster.os", system)
    monkeypatch.setattr("core.pipeline.cluster._ray", lambda: ray)
    with executor(place, {}):
        ray.done.append("in use")
    return ray.done


PACKAGE = Path(core.__file__).parent
QUIET = {"log_to_driver": False, "logging_level": "ERROR"}


@pytest.mark.parametrize(
    ("workers", "processors", "cpus"), [(None, 3, 3), (2, 3, 3), (5, 3, 5), (None, None, 1)]
)
def test_a_ray_of_its_own_is_started_on_this_machine(monkeypatch, workers, processors, cpus):
    environ = {"PYTHONPATH": "/mine"}
    done = reached(monkeypatch, Place("ray", workers), environ, processors=processors)
    path = f"{PACKAGE.parent}{os.pathsep}/mine"
    options = {
        "address": "local", "include_dashboard": False, "num_cpus": cpus, **QUIET,
        "runtime_env": {"env_vars": {"PYTHONPATH": path}},
    }  # fmt: skip
    assert done == [options, "in use", "shut down"]
    assert environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_the_path_of_a_worker_here_is_that_of_the_package_alone_where_there_is_no_other(monkeypatch):
    done = reached(monkeypatch, Place("ray"), {"RAY_USAGE_STATS_ENABLED": "1"})
    assert done[0]["runtime_env"] == {"env_vars": {"PYTHONPATH": str(PACKAGE.parent)}}


@pytest.mark.parametrize(
    ("place", "environ", "address"),
    [
        (Place("ray"), {"RAY_ADDRESS": "10.0.0.1:6379"}, "10.0.0.1:6379"),
        (Place("ray://h:10001"), {}, "ray://h:10001"),
        (Place("ray://h:10001"), {"RAY_ADDRESS": "elsewhere"}, "ray://h:10001"),
    ],
)
def test_a_cluster_elsewhere_gets_the_package_along(monkeypatch, place, environ, address):
    done = reached(monkeypatch, place, environ)
    assert done[0] == {"address": address, "runtime_env": {"py_modules": [str(PACKAGE)]}, **QUIET}


def test_a_ray_that_the_program_uses_already_stays_as_it_is(monkeypatch):
    assert reached(monkeypatch, Place("ray"), {}, FakeRay(initialized=True)) == ["in use"]


def test_what_the_program_does_on_a_signal_stays(monkeypatch):
    def mine(*_):
        return None

    before = signal.signal(signal.SIGTERM, mine)
    try:
        reached(monkeypatch, Place("ray"), {})
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_cluster_that_cannot_be_reached_is_not_shut_down(monkeypatch):
    ray = FakeRay()

    def init(**_):
        raise OSError("no route")

    ray.init = init
    with pytest.raises(
        BackendError, match=r"The cluster ray://h:1 cannot be reached \(OSError\); check the address"
    ):
        reached(monkeypatch, Place("ray://h:1"), {}, ray)
    assert ray.done == []


def test_an_error_while_it_is_used_shuts_it_down(monkeypatch):
    ray = FakeRay()
    monkeypatch.setattr("core.pipeline.cluster._ray", lambda: ray)
    with suppress(KeyError), executor(Place("ray://h:1"), {}):
        raise KeyError("mine")
    assert ray.done[-1] == "shut down"


def test_each_step_is_worked_with_its_own_model(monkeypatch):
    ray = MortalRay()
    ray.is_initialized = lambda: True
    ray.cloudpickle = SimpleNamespace(dumps=lambda model: model.name.encode())
    monkeypatch.setattr("core.pipeline.cluster._ray", lambda: ray)
    found = []
    monkeypatch.setattr("core.pipeline.cluster._in_workers", lambda *given: found.append(given))
    place = Place("ray")
    with executor(place, {"ask": ScriptedLLM("x", name="mine"), "other": None}) as on:
        on(SimpleNamespace(step=Ask()))
    ((_, used, where, opener),) = found
    assert (used, where, opener) == (ray, place, _Opener(pickled=b"mine"))
