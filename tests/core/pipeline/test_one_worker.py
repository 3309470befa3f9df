"""One worker of a cluster, without Ray: what it opens, reports, looks up and gives back."""

import threading
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from core.errors import BackendError, InputError
from core.llm.cache import row_of
from core.llm.types import Completion
from core.pipeline import RetryPolicy
from core.pipeline.worker import Letter, Report, Share, Worker, _InTurn, _Store
from tests.core.pipeline.test_executing import Ask, Together, run_of
from tests.scripted import ScriptedLLM

QUICK = RetryPolicy(attempts=2, first_wait=0.0, longest_wait=0.0, budget=5.0)


def one_worker(step=None, llm=None, threads=1, ahead=False, listened=False):
    return Worker(step or Ask(), lambda: llm, threads, ahead, listened, QUICK)


def reports(worker, n, answered=False, run=None):
    """What a worker reports until it has no question left; the cache knows nothing of what it looks up."""
    share = Share(tuple(f"q{i}" for i in range(n)), run or (lambda: run_of(n)))
    found = [worker.turn(Letter(answered, share))]
    while not found[-1].idle:
        found.append(worker.turn(Letter(answered, found={ticket: {} for ticket in found[-1].wanted})))
    return found


def all_of(reports, name):
    return [one for report in reports for one in getattr(report, name)]


def test_a_worker_opens_its_model_once_and_names_its_facts():
    opened = []
    worker = Worker(Ask(), lambda: opened.append(1) or ScriptedLLM("x", name="m"), 1, False, False, QUICK)
    for _ in range(2):
        assert worker.ready() == {"backend": "", "name": "m", "options": {}}
    assert opened == [1]
    assert one_worker().ready() is None

    def closed():
        raise BackendError("No such model.")

    assert str(Worker(Ask(), closed, 1, False, False, QUICK).ready()) == "No such model."


@pytest.mark.parametrize(
    ("threads", "ahead", "n"), [(1, False, 1), (2, False, 2), (1, True, 4), (2, True, 8)]
)
def test_a_worker_has_a_thread_for_each_question_it_may_look_up(threads, ahead, n):
    before = set(threading.enumerate())
    one_worker(llm=ScriptedLLM("x"), threads=threads, ahead=ahead).ready()
    assert len(set(threading.enumerate()) - before) == n


def test_a_worker_reports_all_it_has_done_and_each_thing_once():
    llm = ScriptedLLM(lambda _: "0.5")
    llm.notes = ("No seed.",)
    worker = one_worker(llm=llm, listened=True)
    worker.ready()
    found = reports(worker, 3)
    assert [part.ids for part in all_of(found, "parts")] == [("q0",), ("q1",), ("q2",)]
    assert [part.rows["signals"][0]["llm_score"] for part in all_of(found, "parts")] == [0.5] * 3
    assert [one.query_id for one in all_of(found, "calls")] == ["q0", "q1", "q2"]
    assert len({row[0] for row in all_of(found, "made")}) == 3 == len(all_of(found, "made"))
    assert (all_of(found, "returned"), found[-1].error, found[-1].notes) == ([], None, ("No seed.",))
    total = {name: sum(report.counts[name] for report in found) for name in found[0].counts}
    assert (total["answers"], total["calls"], total["from_cache"]) == (3, 3, 0)
    # What was done before is not told again.
    again = reports(worker, 3)
    assert len(all_of(again, "parts")) == 3
    silent = one_worker(llm=llm)
    silent.ready()
    assert all_of(reports(silent, 1), "calls") == []


def test_a_run_is_opened_once_for_all_its_questions():
    opened = []

    @dataclass(frozen=True)
    class Opened(Ask):
        def open(self, run, asker):
            opened.append(len(run.queries))
            return super().open(run, asker)

    worker = one_worker(Opened(), ScriptedLLM(lambda _: "1"))
    worker.ready()
    first, second = lambda: run_of(2), lambda: run_of(3)
    for run in (first, first, second, second):
        reports(worker, 2, run=run)
    assert opened == [2, 3]


def test_a_run_that_cannot_be_opened_ends_the_work():
    def broken():
        raise InputError("No such table.")

    worker = one_worker(llm=ScriptedLLM("x"))
    worker.ready()
    (report,) = reports(worker, 2, run=broken)
    assert str(report.error) == "No such table." and report.idle


def test_questions_go_back_where_the_model_has_never_answered_anybody():
    for answered in (False, True):
        worker = one_worker(llm=ScriptedLLM("x", down=True))
        worker.ready()
        found = reports(worker, 1, answered)
        back = [(ids, str(error)) for ids, error in all_of(found, "returned")]
        reasons = [part.reason for part in all_of(found, "parts")]
        down = "The scripted model is down."
        assert (back, reasons) == (([], [down]) if answered else ([(("q0",), down)], []))


def test_a_mistake_of_the_program_is_reported_as_an_error():
    @dataclass(frozen=True)
    class Odd(Ask):
        def tell(self):
            raise ValueError("odd")

    worker = one_worker(Odd(), ScriptedLLM(lambda _: "1"))
    worker.ready()
    found = reports(worker, 1)
    assert str(found[-1].error) == "A worker failed (ValueError: odd)."
    assert isinstance(found[-1].error, BackendError) and all_of(found, "parts") == []


def test_a_worker_that_is_stopped_abandons_what_waits():
    llm = ScriptedLLM(lambda _: "1")
    worker = one_worker(llm=llm)
    worker.ready()
    first = worker.turn(Letter(False, Share(("q0", "q1", "q2"), lambda: run_of(3))))
    assert len(first.wanted) == 1 and not first.idle  # it waits for what the cache has
    worker.stop()
    last = worker.turn(Letter(False))
    assert (last.idle, last.parts, last.returned, last.error, llm.calls) == (True, [], [], None, 0)


def test_a_model_is_asked_by_no_more_threads_than_it_is_worth():
    rule = Together(2)
    worker = one_worker(llm=ScriptedLLM(rule), threads=2, ahead=True)
    worker.ready()
    assert len(all_of(reports(worker, 8), "parts")) == 8
    assert rule.most == 2


def test_every_kind_of_call_takes_its_turn_and_nothing_else_does():
    class Model:
        name = "m"

        def generate(self, *given, **named):
            return free(), given, named

        score = screen = count_tokens = generate

    model = _InTurn(Model(), 2)

    def free():
        return model._turns._value

    for name, left in (("generate", 1), ("score", 1), ("screen", 1), ("count_tokens", 2)):
        assert getattr(model, name)(1, two=2) == (left, (1,), {"two": 2})
    assert (model.name, free()) == ("m", 2)


def completion(text, **more):
    return Completion(text, "stop", 1, 1, 0.1, **more)


def test_what_a_worker_looks_up_is_asked_once_and_what_it_made_until_it_is_kept():
    worker = SimpleNamespace(_changed=threading.Condition(), _report=Report(), _stopped=False)
    store = _Store(worker)
    assert store.notes == ()
    store.settle({1: {"a": completion("kept")}})  # what will be asked for
    assert store.get_many(iter("ab")) == {"a": completion("kept")}
    assert worker._report.wanted == {1: ["a", "b"]}
    assert store.get_many(["b"]) == {}  # it is not there, as is known
    store.put("b", completion("made"), "m")
    store.put("c", completion("", error="busy"), "m")
    assert worker._report.made == [row_of("b", completion("made"), "m")]
    assert store.get_many(["b"]) == {"b": completion("made")}
    store.sent(worker._report.made)
    store.put("d", completion("later"))
    store.settle({2: {"b": completion("kept")}})  # what was sent is in the cache now
    assert store.get_many("bd") == {"b": completion("kept"), "d": completion("later")}
    assert worker._report.wanted == {1: ["a", "b"], 2: ["b"]}
    assert len(worker._report.made) == 2


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (Report(), False),
        (Report(counts={"calls": 1}, notes=("x",), idle=True), False),
        (Report(made=[("k",)]), True),
        (Report(parts=[None]), True),
        (Report(calls=[None]), True),
        (Report(wanted={1: ["k"]}), True),
        (Report(returned=[None]), True),
        (Report(error=BackendError("x")), True),
    ],
)
def test_a_report_of_nothing_waits(report, says):
    assert bool(report) is says
