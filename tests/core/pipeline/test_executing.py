"""Who works on the questions: as many threads as the model is worth, or the calling one."""

import threading
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import pytest

from core.errors import BackendError, Cancelled, InputError
from core.llm import CompletionCache, Message, Request
from core.llm.cache import CacheError
from core.pipeline import Call, PerQuestion, StepPlan, StepWork, fill
from core.pipeline.executing import batches, reason_of
from core.run import Run
from tests.scripted import ScriptedLLM


@dataclass(frozen=True)
class Ask(PerQuestion):
    """Asks each question once; it may not know so beforehand."""

    name: ClassVar[str] = "ask"
    title: ClassVar[str] = "Ask"
    fills: ClassVar = {"signals": ("llm_score",)}
    unknown: bool = False

    def calls(self, question):
        return [Call("ask", 1, Request((Message("user", question.query_id),)))]

    def rows(self, question, answers):
        return {"signals": [{"query_id": question.query_id, "llm_score": float(answers["ask", 1].text)}]}

    def open(self, run, asker):
        work = super().open(run, asker)
        if self.unknown:
            work.plan = lambda ids: StepPlan(about=len(ids))
        return work


def run_of(n, every=1):
    queries = pd.DataFrame({"query_id": [f"q{i}" for i in range(0, n, every)], "question": "What?"})
    return Run.create({"source": "upload"}, queries=queries)


def n_filled(run):
    return int(run["signals"]["llm_score"].notna().sum())


class Together:
    """A rule that answers when so many threads ask at once; counts the most that ever did."""

    def __init__(self, n):
        self._all, self._lock = threading.Barrier(n, timeout=10), threading.Lock()
        self._inside = self.most = 0

    def __call__(self, _):
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
        self._all.wait()
        with self._lock:
            self._inside -= 1
        return "1"


def test_as_many_questions_are_asked_at_once_as_the_model_is_worth():
    rule = Together(3)
    assert n_filled(fill(run_of(9), Ask(), llm=ScriptedLLM(rule, parallel=3))) == 9
    assert rule.most == 3


@pytest.mark.parametrize(("n", "parallel"), [(1, 4), (4, 1), (4, 0)])
def test_where_one_thread_is_enough_it_is_the_calling_one(n, parallel):
    threads = set()
    llm = ScriptedLLM(lambda _: threads.add(threading.current_thread()) or "1", parallel=parallel)
    assert n_filled(fill(run_of(n), Ask(), llm=llm)) == n
    assert threads == {threading.current_thread()}


class Bare(StepWork):
    """A step at work that says nothing about how it may be worked."""

    settings: ClassVar = {}

    def __init__(self, seen):
        self.seen = seen

    def todo(self, run):
        return ["q0", "q1", "q2"][sum(len(ids) for ids, _ in self.seen) :]

    def work(self, ids):
        self.seen.append((ids, threading.current_thread()))
        return {}


@dataclass(frozen=True)
class BareStep(Ask):
    name: ClassVar[str] = "bare"

    def open(self, run, asker):
        return Bare(self.seen)


def test_a_step_that_says_nothing_is_worked_question_by_question_in_the_calling_thread():
    seen = []
    BareStep.seen = seen
    filled = fill(run_of(3), BareStep(), llm=ScriptedLLM("x", parallel=4))
    assert seen == [((f"q{i}",), threading.current_thread()) for i in range(3)]
    facts = filled.manifest["steps"]["bare"]
    assert (facts["n_done"], facts["reasons"], facts["complete"], facts["notes"]) == (3, {}, True, [])


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_cancel_begins_no_more_questions(parallel):
    llm = ScriptedLLM(lambda _: "1", parallel=parallel)
    part = fill(run_of(60), Ask(), llm=llm, cancelled=lambda: llm.calls >= 4)
    assert 4 <= llm.calls <= 4 + parallel
    assert 4 - parallel <= n_filled(part) <= llm.calls
    assert not part.manifest["steps"]["ask"]["complete"]


def test_questions_that_the_cache_answered_count_in_neither_number():
    cache = CompletionCache()
    fill(run_of(5, every=2), Ask(), llm=ScriptedLLM(lambda _: "1"), cache=cache)
    seen = []
    llm = ScriptedLLM(lambda _: "1")
    fill(run_of(5), Ask(unknown=True), llm=llm, cache=cache, progress=lambda *told: seen.append(told))
    assert [one.messages[0].content for one in llm.requests] == ["q1", "q3"]
    # Told at the start, and with each question when it is answered and when it is finished.
    one = []
    fill(run_of(1), Ask(), llm=llm, progress=lambda *told: one.append(told))
    assert one == [(1, 1, "question 1 of 1")]  # in calls, where their number is known
    assert seen == [
        (0, 5, "question 1 of 5"),
        (0, 5, "question 1 of 5, 1 call answered, 1 from the cache"),
        (0, 4, "question 2 of 5, 1 call answered, 1 from the cache"),
        (0, 4, "question 2 of 5, 2 calls answered, 1 from the cache"),
        (1, 4, "question 3 of 5, 2 calls answered, 1 from the cache"),
        (1, 4, "question 3 of 5, 3 calls answered, 2 from the cache"),
        (1, 3, "question 4 of 5, 3 calls answered, 2 from the cache"),
        (1, 3, "question 4 of 5, 4 calls answered, 2 from the cache"),
        (2, 3, "question 5 of 5, 4 calls answered, 2 from the cache"),
        (2, 3, "question 5 of 5, 5 calls answered, 3 from the cache"),
        (2, 2, "question 5 of 5, 5 calls answered, 3 from the cache"),
    ]


def test_what_ends_the_run_and_what_one_question():
    def failing(error):
        def rule(request):
            if request.messages[0].content == "q1":
                raise error
            return "1"

        return fill(run_of(3), Ask(), llm=ScriptedLLM(rule))

    for error, said in (
        (InputError("No such thing."), "No such thing."),
        (BackendError("Broken."), "Broken."),
        (KeyError("odd"), "The model failed on this question (KeyError: 'odd')."),
    ):
        found = failing(error)
        assert found.manifest["steps"]["ask"]["reasons"] == {said: 1}
        assert n_filled(found) == 2
    with pytest.raises(CacheError, match="full"):
        failing(CacheError("The disk is full."))
    assert failing(Cancelled("Stopped.")).manifest["steps"]["ask"]["complete"] is False


def test_a_reason_is_one_sentence():
    assert reason_of(BackendError("Gone.")) == "Gone."
    assert reason_of(ValueError("odd"), "The retriever") == (
        "The retriever failed on this question (ValueError: odd)."
    )


def test_batches_are_full_but_the_last():
    assert list(batches("abcde", 2)) == [("a", "b"), ("c", "d"), ("e",)]
    assert list(batches("ab", 2)) == [("a", "b")]
    assert list(batches("", 2)) == []
